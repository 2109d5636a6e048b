"""A worker: takes jobs that are due, runs them, and sleeps until the next is due or somebody calls."""

import asyncio
import contextlib
import logging
import os
import random
import secrets
import socket
import time

from rookery.core.errors import RookeryError
from rookery.jobs.attempt import Attempt, Why
from rookery.jobs.claims import Claimant, Claims, purge
from rookery.jobs.running import Ground
from rookery.jobs.store import CANCEL

log = logging.getLogger("rookery.jobs")
LONGEST_SLEEP_S = 60.0
SPIN_S = 0.02
"""What is due but not to be had, since another worker is just taking it, is looked at again after about so long."""
TROUBLE_S = 1.0
PURGE_S = 3600.0
GRACE_S = 1.0


def worker_name() -> str:
    """A name that no other worker has, past or present."""
    return f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"


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
        self._called = asyncio.Event()
        self._beat_now = asyncio.Event()
        self._stopping = False
        self._locked_first = False
        self._plenty = False
        self._kept = time.monotonic()

    async def run(self) -> None:
        """Work until `stop`, then give back what is unfinished."""
        loop = asyncio.get_running_loop()

        def wake(name: str) -> None:
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(self._wake, name)

        deaf = self._database.on_wake(wake)
        helpers = [asyncio.create_task(self._keep()), asyncio.create_task(self._tidy())]
        try:
            while not self._stopping:
                await self._turn()
        finally:
            deaf()
            await self._let_go()
            for helper in helpers:
                helper.cancel()
            await asyncio.gather(*helpers, return_exceptions=True)

    def stop(self) -> None:
        """Take nothing more; `run` returns when what runs has ended or was given back."""
        self._stopping = True
        self._called.set()

    def _wake(self, name: str) -> None:
        self._called.set()
        if name in (CANCEL, ""):
            self._beat_now.set()

    async def _turn(self) -> None:
        """Take what there is room for, or wait until there may be something to take."""
        self._called.clear()
        room = self._concurrency - len(self.running)
        if room < 1 or not self._claimant.kinds:
            await self._called.wait()
            return
        try:
            # Where there was something just now, there is probably more.
            if self._plenty:
                self._plenty = await self._take(room)
                return
            wait_ms = await self._database.read(lambda tx: Claims(tx, self._claimant).wait_ms())
            if wait_ms is not None and wait_ms <= 0:
                self._plenty = await self._take(room)
                if not self._plenty:
                    await self._sleep(random.uniform(SPIN_S / 2, SPIN_S * 2))
                return
        except RookeryError as error:
            log.warning("no jobs can be taken: %s", error.message)
            await self._sleep(TROUBLE_S)
            return
        await self._sleep(LONGEST_SLEEP_S if wait_ms is None else min(wait_ms / 1000, LONGEST_SLEEP_S))

    async def _take(self, room: int) -> bool:
        self._locked_first = not self._locked_first
        first = self._locked_first
        taken = await self._database.change(lambda tx: Claims(tx, self._claimant).take(room, locked_first=first))
        for row in taken:
            attempt = Attempt(row, self._ground)
            self.running[attempt.name] = attempt
            attempt.start(self._ended)
        return bool(taken)

    def _ended(self, attempt: Attempt) -> None:
        self.running.pop(attempt.name, None)
        self._called.set()

    async def _sleep(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._called.wait()

    async def _keep(self) -> None:
        """Show signs of life, and stop what was cancelled or is no longer ours."""
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._lease_s / 4):
                    await self._beat_now.wait()
            self._beat_now.clear()
            if not self.running:
                self._kept = time.monotonic()
                continue
            try:
                await self._beat()
            except RookeryError as error:
                log.warning("leases could not be renewed: %s", error.message)
                if time.monotonic() - self._kept > self._lease_s:
                    # Somebody else may be at them by now.
                    self._stop_all("lost")

    async def _beat(self) -> None:
        mine = dict(self.running)
        asked = time.monotonic()
        kept = await self._database.change(lambda tx: Claims(tx, self._claimant).beat())
        self._kept = asked
        for name, attempt in mine.items():
            if name not in kept:
                attempt.stop("lost")
            elif kept[name]:
                attempt.stop("cancelled")

    async def _tidy(self) -> None:
        """Forget what has been over for long, a little at a time."""
        while True:
            try:
                while await self._database.change(lambda tx: purge(tx, self._keep_days)):
                    await asyncio.sleep(0)
            except RookeryError as error:
                log.warning("old jobs could not be removed: %s", error.message)
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
