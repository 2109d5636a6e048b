"""The orchestrator as a part of a server: it leads if no other does, and ticks while it leads."""

import asyncio
import contextlib
import logging
import time
from typing import Any

from rookery.core.errors import RookeryError
from rookery.db.clock import now_ms
from rookery.db.tx import Tx
from rookery.engine.leading import LEASE_MS, LOOK_S, RESIGNED, Deposed, Leadership
from rookery.engine.tick import Report, Tick, tidy
from rookery.jobs.running import Ground
from rookery.lifecycle.issue_tables import WAKE
from rookery.lifecycle.pauses import WAKE as PAUSES
from rookery.settings import Settings

log = logging.getLogger("rookery.orchestrator")
LEAST_S = 0.1
"""So long it rests at least between two ticks, however often it is woken; and as long as the last one took."""
HEARSAY_S = 1.0
"""So long if it only knows that something was written somewhere."""
TIDY_S = 60.0
STOP_S = 3.0
"""So long what is being decided may take when the server stops."""
RESIGN_S = 1.0
BELIEVED_S = LEASE_MS / 1000 * 0.7
"""So long after its last sign of life a leader trusts its own lease."""


class Orchestrator:
    """Begun on the running loop. `ended` is done when it is over."""

    def __init__(self, ground: Ground) -> None:
        self.lead = Leadership()
        self.ticks = 0
        self._ground = ground
        self._database = ground.database
        settings: Settings = ground.calls.facts["settings"]
        self._tick_s = settings.tick_s
        self._called = asyncio.Event()
        self._stopping = asyncio.Event()
        self._vacant = asyncio.Event()
        self._kept = 0.0
        self._told: dict[str, Any] = {}
        self._until_ms: int | None = None
        self._tidied = 0.0
        self._ticked = 0.0
        self._took_s = 0.0
        self._heard = False
        self.ended = asyncio.create_task(self._run(), name="orchestrator")

    async def stop(self) -> None:
        """Let go: what is being decided is finished first, then another may lead at once."""
        self._stopping.set()
        self._called.set()
        await asyncio.wait([self.ended], timeout=STOP_S)
        if not self.ended.done():
            # Whatever it waits for, nobody waits for it: its lease runs out by itself.
            self.ended.cancel()
            await asyncio.wait([self.ended], timeout=STOP_S)

    def check(self) -> None:
        """Raise what ended it, if that was a failure."""
        if self.ended.done() and not self.ended.cancelled():
            self.ended.result()

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()

        def wake(name: str) -> None:
            if name == RESIGNED:
                with contextlib.suppress(RuntimeError):
                    loop.call_soon_threadsafe(self._vacant.set)
            if name in (WAKE, PAUSES, ""):
                with contextlib.suppress(RuntimeError):
                    loop.call_soon_threadsafe(self._hear, name)

        deaf = self._database.on_wake(wake)
        keeping = asyncio.create_task(self._keep(), name="leadership")
        try:
            while not self._stopping.is_set():
                self._called.clear()
                if self._leads:
                    await self._tick()
                await self._rest()
        finally:
            deaf()
            keeping.cancel()
            await asyncio.gather(keeping, return_exceptions=True)
            await self._resign()

    def _hear(self, name: str) -> None:
        # The empty name says only that another process has written something, as workers do all the time.
        wait_s = 0.0 if name else self._ticked + HEARSAY_S - time.monotonic()
        if wait_s <= 0:
            self._called.set()
        elif not self._heard:
            self._heard = True
            asyncio.get_running_loop().call_later(wait_s, self._called.set)

    @property
    def _leads(self) -> bool:
        return self.lead.term is not None and time.monotonic() - self._kept < BELIEVED_S

    async def _keep(self) -> None:
        """Lead if nobody else does, and show signs of life while leading."""
        while True:
            self._vacant.clear()
            await self._claim()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK_S):
                    await self._vacant.wait()

    async def _claim(self) -> None:
        asked = time.monotonic()
        try:
            async with asyncio.timeout(LOOK_S):
                term = await self._database.change(lambda tx: self.lead.claim(tx, self._told))
        except Exception as error:
            _complain("nobody can be asked who leads", error)
            return
        if term is not None:
            self._kept = asked
        if term != self.lead.term:
            log.info("leads since term %s" if term is not None else "another leads", *([term] if term else []))
            self.lead.term = term
            self._called.set()

    async def _tick(self) -> None:
        self._ticked, self._heard, self._until_ms = time.monotonic(), False, None
        try:
            report = await Tick(self._ground, self.lead).run()
            if time.monotonic() - self._tidied >= TIDY_S:
                self._tidied = time.monotonic()
                await tidy(self._ground, self.lead)
        except Deposed:
            self.lead.term = None
            return
        except Exception as error:
            _complain("a tick failed", error)
            return
        self.ticks += 1
        self._took_s = time.monotonic() - self._ticked
        await self._note(report)

    async def _note(self, report: Report) -> None:
        try:
            at_ms = await self._database.read(now_ms)
        except Exception as error:
            _complain("the clock cannot be read", error)
            return
        self._told = {"ticked_ms": at_ms, "report": report.as_json()}
        self._until_ms = None if report.until_ms is None else report.until_ms - at_ms
        if report.did_something:
            # What was done may have made room, or something to do, at once.
            self._called.set()

    async def _rest(self) -> None:
        # After a long tick no longer than usual; and whoever wants it to stop does not wait for the rest.
        await _passed(self._stopping, max(LEAST_S, min(self._took_s, self._tick_s)))
        rest_s = self._tick_s
        if self._until_ms is not None:
            rest_s = min(rest_s, max(self._until_ms / 1000, LEAST_S))
        await _passed(self._called, rest_s)

    async def _resign(self) -> None:
        if self.lead.term is None:
            return

        def work(tx: Tx) -> None:
            self.lead.resign(tx)

        try:
            async with asyncio.timeout(RESIGN_S):
                await self._database.change(work)
        except Exception as error:
            _complain("the lead could not be laid down", error)
        self.lead.term = None


async def _passed(event: asyncio.Event, most_s: float) -> None:
    """Wait for the event, but not longer than this."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(most_s):
            await event.wait()


def _complain(what: str, error: Exception) -> None:
    if isinstance(error, RookeryError | TimeoutError):
        log.warning("%s: %s", what, error)
    else:
        log.error("%s", what, exc_info=error)
