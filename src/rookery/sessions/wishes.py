"""What people want of a session while its turn goes on: its row says so, and the agent is told.

What is learnt of the agent meanwhile is noted there.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from rookery.core.actor import Actor, Mode
from rookery.core.errors import RookeryError
from rookery.db.database import Database
from rookery.db.tx import Tx
from rookery.identity.binding import stricter
from rookery.identity.tables import EPOCH
from rookery.lifecycle.pauses import Pauses
from rookery.sessions.ending import Ending, failed, said_of
from rookery.sessions.events import EventName
from rookery.sessions.store import Row, SessionRows
from rookery.sessions.tables import ENDED
from rookery.sessions.warm import Warm

log = logging.getLogger("rookery.sessions")
LOOK_S = 5.0
"""However deaf we are, a wish is seen after so long."""
AGAIN_S = 1.0
INTERRUPT_S = 10.0
"""So long an agent that was interrupted has to end its turn, and one whose mode is changed to take the other."""

LOOKING_ON = "the agent only looks on, and is stopped soon"
RESUMED = "it was resumed, and the agent goes on"


class Wishes:
    """Sees to it that the agent of one turn obeys. `warm` is that agent, as soon as there is one.

    `now` is the agent with the rights and the mode of this moment.
    """

    def __init__(
        self,
        database: Database,
        row: Row,
        run_id: str,
        *,
        now: Callable[[], Awaitable[Actor]],
        end: Callable[[Ending], None],
        tell: Callable[[EventName, Mapping[str, Any]], None],
    ) -> None:
        self.warm: Warm | None = None
        self._id: str = row.id
        self._tenant: str = row.tenant
        self._run_id = run_id
        self._database = database
        self._now = now
        self._end = end
        self._tell = tell
        self._interrupts: int = row.interrupts
        self._wanted: Mode = row.mode
        self._refused: Mode | None = None
        self._paused = ""
        self._epoch: int | None = None
        self._native_id: str | None = row.native_id
        self._notes: dict[str, Any] = {}
        self._models: set[str | None] = set()
        self._called = asyncio.Event()
        self._holding = asyncio.Lock()

    def call(self) -> None:
        """Somebody may want something of the session, or something of it has to be noted."""
        self._called.set()

    def learn(self, warm: Warm, data: Mapping[str, Any]) -> None:
        """Note soon what an agent said of its model and of how much it remembers."""
        kept = {"model": "model", "context_tokens": "context_tokens", "context_max_tokens": "context_max"}
        known = {column: data[name] for name, column in kept.items() if data.get(name) is not None}
        if "model" in known:
            warm.models.add(known["model"])
            self._models = warm.models
        if known:
            self._notes |= known
            self.call()

    def learn_id(self, warm: Warm) -> None:
        """Note soon what the runtime calls the session, if that is another name than the one that is kept."""
        native_id = warm.agent.native_id
        if native_id is not None and native_id != self._native_id:
            self._native_id = self._notes["native_id"] = native_id
            self.call()

    def note(self, tx: Tx) -> None:
        """Keep what is not on record yet."""
        self._note(tx, self._notes)

    def _note(self, tx: Tx, notes: Mapping[str, Any]) -> None:
        if notes:
            SessionRows(tx, self._tenant).note(self._id, run_id=self._run_id, models=frozenset(self._models), **notes)

    async def obey(self) -> None:
        """Do what is wanted, until the turn has to end or whoever started this ends it."""
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK_S):
                    await self._called.wait()
            self._called.clear()
            try:
                row, paused = await self._look()
                if (ending := self._over(row)) is not None:
                    self._end(ending)
                    return
                assert row is not None
                if row.interrupts > self._interrupts:
                    self._interrupts = row.interrupts
                    await self._interrupt()
                told = row.mode == self._wanted and paused == self._paused
                if not told or self._database.epoch(EPOCH) != self._epoch:
                    self._wanted = row.mode
                    await self.hold()
            except RookeryError as error:
                # It is seen to at the next look.
                self._epoch = None
                log.warning("what is wanted of %s cannot be seen to: %s", self._id, error.message)
                await asyncio.sleep(AGAIN_S)
            except Exception as error:
                log.exception("what is wanted of %s cannot be seen to", self._id)
                self._end(failed(f"nobody could look after the session: {said_of(error)}", reason="stopped"))
                return

    def _over(self, row: Row | None) -> Ending | None:
        if row is None or row.state == ENDED:
            return failed("the session was ended", reason="stopped")
        if row.run_id != self._run_id:
            return failed("another turn of the session has begun elsewhere", reason="stopped")
        return None

    async def _look(self) -> tuple[Row | None, str]:
        """The session as it is wanted and why it is paused, after what is known of it by now was noted."""
        notes, self._notes = self._notes, {}

        def work(tx: Tx) -> tuple[Row | None, str]:
            self._note(tx, notes)
            row = SessionRows(tx, self._tenant).find(self._id)
            pause = None if row is None else Pauses(tx, self._tenant).holding(row.project_id, row.agent)
            return row, "" if pause is None else pause.said

        try:
            return await (self._database.change(work) if notes else self._database.read(work))
        except BaseException:
            # Also if the turn ended meanwhile: then they are written with its end.
            self._notes = notes | self._notes
            raise

    async def _interrupt(self) -> None:
        interrupted = failed("interrupted", reason="interrupted")
        warm = self.warm
        if warm is None:
            self._end(interrupted)
            return
        asyncio.get_running_loop().call_later(INTERRUPT_S, self._end, interrupted)
        try:
            # An agent that waits for somebody hears it only once it need not wait any more.
            await asyncio.gather(warm.agent.interrupt(), warm.host.let_go())
        except Exception as error:
            log.warning("the agent of %s cannot be interrupted: %s", self._id, error)
            self._end(interrupted)

    async def hold(self) -> None:
        """Hold the agent to what it may do by now. One that cannot be held, or that may do nothing, ends its turn.

        Raises what keeps its rights from being looked up, if that passes.
        """
        warm = self.warm
        if warm is None:
            return
        async with self._holding:
            epoch = self._database.epoch(EPOCH)
            try:
                actor = await self._now()
            except RookeryError as error:
                if error.retryable:
                    raise
                self._end(failed(said_of(error), reason="stopped"))
                return
            self._epoch = epoch
            self._tell_pause(actor.paused)
            # Who is paused is asked for whatever it does with tools of its own, and is told no.
            mode: Mode = "ask" if actor.paused else actor.mode
            if mode not in (warm.mode, self._refused):
                await self._change_mode(warm, mode)

    def _tell_pause(self, paused: str) -> None:
        if paused != self._paused:
            self._paused = paused
            self._tell(
                "system", {"text": f"{paused}; the agent only looks on, and is stopped soon" if paused else RESUMED}
            )

    async def _change_mode(self, warm: Warm, mode: Mode) -> None:
        try:
            async with asyncio.timeout(INTERRUPT_S):
                await warm.agent.set_mode(mode)
        except Exception as error:
            if self._paused:
                # Whoever waits for its end stops it.
                self._refused = mode
                log.warning("the agent of %s does not take the mode %s: %s", self._id, mode, said_of(error))
            elif stricter(mode, warm.mode) == mode:
                why = f"the agent could not be held to the mode {mode}: {said_of(error)}"
                self._end(failed(why, reason="stopped"))
            else:
                self._refused = mode
                self._tell("system", {"text": f"the mode {mode} cannot be taken: {said_of(error)}"})
            return
        warm.mode, self._refused = mode, None
        self._tell("session_status", {"mode": mode})
