"""A worker: takes jobs that are due, runs them, and sleeps until the next is due or somebody calls."""

import asyncio
import contextlib
import logging
import os
import random
import secrets
import socket
import time
from collections import Counter
from dataclasses import replace
from typing import NamedTuple

from rookery.core.errors import RookeryError
from rookery.db.tx import Tx
from rookery.jobs.attempt import Attempt, Why
from rookery.jobs.claims import Claimant, Claims, Row, purge
from rookery.jobs.running import Ground
from rookery.jobs.store import CANCEL, WAKE

log = logging.getLogger("rookery.jobs")
LONGEST_SLEEP_S = 60.0
SPIN_S = 0.02
"""What is due but not to be had, since another worker is just taking it, is looked at again after about so long."""
TROUBLE_S = 1.0
PURGE_S = 3600.0
GRACE_S = 1.0
SPARE = 4
"""So many brief jobs may run beside a full number of which that many take long: a moment's work never waits hours."""
LATER = 4
"""Of each later step so many jobs, but no more than of all others, have places of their own: those before them may
be waiting for them."""


def worker_name() -> str:
    """A name that no other worker has, past or present."""
    return f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"


def _complain(what: str, error: Exception) -> None:
    """Say what cannot be done just now; where, if nobody foresaw it."""
    if isinstance(error, RookeryError):
        log.warning("%s: %s", what, error.message)
    else:
        log.error("%s", what, exc_info=error)


class Opening(NamedTuple):
    """Room for so many jobs of some kinds."""

    room: int
    claimant: Claimant


def _soonest(tx: Tx, openings: list[Opening]) -> int | None:
    """Milliseconds until there may be something to take; None: until somebody defers something."""
    waits = (Claims(tx, opening.claimant).wait_ms() for opening in openings)
    return min((wait_ms for wait_ms in waits if wait_ms is not None), default=None)


class Worker:
    """Runs jobs on the event loop it is started on. Any number of workers may share a database."""

    def __init__(
        self,
        ground: Ground,
        *,
        concurrency: int = 16,
        lease_s: float = 20.0,
        queues: tuple[str, ...] = (),
        keep_days: int = 30,
        grace_s: float = GRACE_S,
    ) -> None:
        self.name = worker_name()
        self.running: dict[tuple[int, int], Attempt] = {}
        self._ground = ground
        self._database = ground.database
        self._concurrency = concurrency
        self._lease_s = lease_s
        self._keep_days = keep_days
        self._grace_s = grace_s
        self._claimant = Claimant(self.name, round(lease_s * 1000), tuple(sorted(ground.kinds)), queues)
        brief = tuple(name for name in self._claimant.kinds if not ground.kinds[name].lasting)
        self._brief = replace(self._claimant, kinds=brief)
        steps = sorted({kind.step for kind in ground.kinds.values() if kind.step}, reverse=True)
        self._later = {
            step: replace(
                self._claimant, kinds=tuple(name for name in self._claimant.kinds if ground.kinds[name].step == step)
            )
            for step in steps
        }
        self._places = min(LATER, concurrency)
        self._called = asyncio.Event()
        self._look_now = asyncio.Event()
        self._stopping = False
        self._locked_first = False
        self._plenty = False

    async def run(self) -> None:
        """Work until `stop`, then give back what is unfinished."""
        loop = asyncio.get_running_loop()

        def wake(name: str) -> None:
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(self._wake, name)

        deaf = self._database.on_wake(wake)
        helpers = [asyncio.create_task(each) for each in (self._keep(), self._lose(), self._tidy())]
        try:
            while not self._stopping:
                await self._turn()
        finally:
            deaf()
            await self._let_go()
            for helper in helpers:
                helper.cancel()
            await asyncio.gather(*helpers, return_exceptions=True)

    def stop(self, *, at_once: bool = False) -> None:
        """Take nothing more; `run` returns when what runs has ended or, `at_once` or after a while, was given back."""
        self._stopping = True
        self._called.set()
        if at_once:
            self._grace_s = 0
            self._stop_all("stopping")

    def _wake(self, name: str) -> None:
        self._called.set()
        if name == WAKE:
            self._plenty = True
        if name in (CANCEL, ""):
            self._look_now.set()

    async def _turn(self) -> None:
        """Take what there is room for, or wait until there may be something to take."""
        self._called.clear()
        openings = self._openings()
        if not openings:
            await self._called.wait()
            return
        try:
            # Where there was something just now, or something has come, asking first would only take time.
            if self._plenty:
                self._plenty = await self._take(openings)
                return
            wait_ms = await self._database.read(lambda tx: _soonest(tx, openings))
            if wait_ms is not None and wait_ms <= 0:
                self._plenty = await self._take(openings)
                if not self._plenty:
                    await self._sleep(random.uniform(SPIN_S / 2, SPIN_S * 2))
                return
        except Exception as error:
            _complain("no jobs can be taken", error)
            await self._sleep(TROUBLE_S)
            return
        # A millisecond more, since the clock's have been rounded.
        sleep_s = LONGEST_SLEEP_S if wait_ms is None else min((wait_ms + 1) / 1000, LONGEST_SLEEP_S)
        if not await self._sleep(sleep_s):
            self._plenty = sleep_s < LONGEST_SLEEP_S

    def _openings(self) -> list[Opening]:
        """How many jobs may be taken, and of which kinds; empty if none."""
        running = Counter(attempt.kind.step for attempt in self.running.values())
        later = sum(min(running[step], self._places) for step in self._later)
        room = self._concurrency - len(self.running) + later
        if room > 0:
            return [Opening(room, self._claimant)] if self._claimant.kinds else []
        lasting = sum(attempt.kind.lasting for attempt in self.running.values())
        openings = [Opening(self._places - running[step], claimant) for step, claimant in self._later.items()]
        openings.append(Opening(room + min(SPARE, lasting - later), self._brief))
        return [opening for opening in openings if opening.room > 0 and opening.claimant.kinds]

    async def _take(self, openings: list[Opening]) -> bool:
        self._locked_first = not self._locked_first
        first = self._locked_first
        asked = time.monotonic()

        def take(tx: Tx) -> list[Row]:
            # Told to stop since this turn began: what was just given back would come back to us.
            return [
                row
                for opening in ([] if self._stopping else openings)
                for row in Claims(tx, opening.claimant).take(opening.room, locked_first=first)
            ]

        taken = await self._database.change(take)
        for row in taken:
            attempt = Attempt(row, self._ground, kept=asked)
            self.running[attempt.name] = attempt
            attempt.start(self._ended)
        return bool(taken)

    def _ended(self, attempt: Attempt) -> None:
        self.running.pop(attempt.name, None)
        self._called.set()

    async def _sleep(self, seconds: float) -> bool:
        """Whether somebody called before the time was over."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                return await self._called.wait()
        return False

    async def _keep(self) -> None:
        """Show signs of life, and stop what was cancelled or is no longer ours."""
        beat_s = self._lease_s / 4
        due = time.monotonic() + beat_s
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(due - time.monotonic()):
                    await self._look_now.wait()
            self._look_now.clear()
            beat = time.monotonic() >= due
            if beat:
                due = time.monotonic() + beat_s
            try:
                async with asyncio.timeout(2 * beat_s):
                    await self._look_after(beat=beat)
            except TimeoutError:
                log.warning("leases could not be renewed: no answer within %g s", 2 * beat_s)
            except Exception as error:
                _complain("leases could not be renewed", error)

    async def _lose(self) -> None:
        """Stop what could not be kept, a quarter before somebody else can be at it. Does not wait for the database."""
        beat_s = self._lease_s / 4
        while True:
            now = time.monotonic()
            left = [(attempt.kept + 3 * beat_s - now, attempt) for attempt in self.running.values()]
            for left_s, attempt in left:
                if left_s <= 0:
                    attempt.stop("lost")
            # What is taken meanwhile may have been asked for a while before.
            await asyncio.sleep(min([beat_s / 2, *(left_s for left_s, _ in left if left_s > 0)]))

    async def _look_after(self, *, beat: bool) -> None:
        mine = dict(self.running)
        asked = time.monotonic()
        ids = [job_id for job_id, _ in mine]
        if not mine:
            return
        if beat:
            kept = await self._database.change(lambda tx: Claims(tx, self._claimant).beat(ids))
        else:
            # A write would be heard by whoever looks when somebody writes, this worker among them.
            kept = await self._database.read(lambda tx: Claims(tx, self._claimant).look(ids))
        for name, attempt in mine.items():
            if name not in kept:
                attempt.stop("lost")
                continue
            if beat:
                attempt.kept = asked
            if kept[name]:
                attempt.stop("cancelled")

    async def _tidy(self) -> None:
        """Forget what has been over for long, a little at a time."""
        while True:
            try:
                while await self._database.change(lambda tx: purge(tx, self._keep_days)):
                    await asyncio.sleep(0)
            except Exception as error:
                _complain("old jobs could not be removed", error)
            await asyncio.sleep(PURGE_S * random.uniform(0.5, 1.5))

    def _stop_all(self, why: Why) -> None:
        for attempt in list(self.running.values()):
            attempt.stop(why)

    async def _let_go(self) -> None:
        """Give running jobs a moment, then back to the queue."""
        waiting = [asyncio.create_task(attempt.ended()) for attempt in self.running.values()]
        if waiting:
            await asyncio.wait(waiting, timeout=self._grace_s)
            self._stop_all("stopping")
            await asyncio.wait(waiting, timeout=10)
