"""One turn of a session: from its message to exactly one `done`, whatever happens on the way."""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any

from rookery.core.actor import Actor, Mode
from rookery.core.errors import DatabaseError, RookeryError, TimedOut
from rookery.db.database import Database
from rookery.db.tx import Tx
from rookery.lifecycle.session_store import SessionRuns
from rookery.lifecycle.sessions import Outcome
from rookery.sessions.asking import Stage
from rookery.sessions.ending import Ending, Said, ending_of, failed, said_of, unreachable
from rookery.sessions.events import DONE, EventName, SessionEvent, done
from rookery.sessions.log import SessionLog
from rookery.sessions.patience import Patience
from rookery.sessions.pulse import Limits, Pulse
from rookery.sessions.store import Row, SessionRows
from rookery.sessions.tables import ENDED
from rookery.sessions.turn_log import TurnLog
from rookery.sessions.warm import Warm, stop_agent

log = logging.getLogger("rookery.sessions")
LOOK_S = 5.0
"""However deaf we are, a wish is seen after so long."""
INTERRUPT_S = 10.0
"""So long an agent that was interrupted has to end its turn."""
LAST_WORDS_S = 0.5
"""An agent that was stopped has so long to say what it has cost."""
PAUSES_S = (0.1, 0.3, 1.0)
STOPPED = "the server was stopped"
UNKNOWN = "lost"
"""The code of the error with which a runtime says, in the turn itself, that it does not know the session any more."""


class Turn:
    """A turn under way. It is a `Session` for whoever waits for its end.

    `agent` gives the one that knows what was said before, or if it is told so a new one. It is stopped with the turn
    unless it is to be kept.
    """

    def __init__(
        self,
        database: Database,
        record: SessionLog,
        limits: Limits,
        row: Row,
        run_id: str,
        said: Said,
        *,
        agent: Callable[["Turn", bool], Awaitable[Warm]],
        now: Callable[[], Awaitable[Actor]],
        over: Callable[["Turn", Warm | None], None],
        stops: Callable[[], bool],
        keep: bool,
    ) -> None:
        self.id: str = row.id
        self.run_id = run_id
        self.said = said
        self.noted = False
        self._tenant: str = row.tenant
        self._database = database
        self._log = TurnLog(record, row.tenant, row.id, run_id)
        self._limits = limits
        self._agent = agent
        self._now = now
        self._over = over
        self._stops = stops
        self._keep = keep
        self._patience = Patience(database, row.tenant, row.id, run_id)
        self._interrupts: int = row.interrupts
        self._mode: Mode = row.mode
        self._warm: Warm | None = None
        self._ending: asyncio.Future[Ending] = asyncio.get_running_loop().create_future()
        self._finished = asyncio.Event()
        self.outcome = Outcome("failed", turns=0)
        self._called = asyncio.Event()
        self._notes: dict[str, Any] = {}
        self._native_id: str | None = row.native_id
        self._resumed = row.native_id is not None
        self._open: dict[str, str] = {}
        self._pulse = Pulse(limits)
        self._told_error = False
        self._last: Ending | None = None
        self._listening: asyncio.Task[None] | None = None
        self._playing: asyncio.Task[None] | None = None

    @property
    def waited_s(self) -> float:
        """See `lifecycle.sessions.waited_of`."""
        return self._patience.unwritten_s

    async def wait(self) -> Outcome:
        await self._finished.wait()
        return self.outcome

    async def stop(self) -> None:
        """End it now, and its agent with it."""
        if self.under_way:
            self.end(await self._why_stopped())
        await self._finished.wait()

    async def _why_stopped(self) -> Ending:
        """Nobody says why a session is stopped, but its deadline is on record."""
        if self._stops():
            return failed(STOPPED, reason="stopped", lost=True)
        with contextlib.suppress(RookeryError):
            left_ms, lasts_ms = await self._database.read(lambda tx: SessionRuns(tx, self._tenant).time_of(self.run_id))
            if left_ms <= 0 < lasts_ms:
                return failed(f"it did not end within {lasts_ms / 1000:g} s", reason="timed_out")
        return failed("stopped", reason="stopped")

    @property
    def stage(self) -> Stage:
        return Stage(run_id=self.run_id, message_id=self.said.id, patience=self._patience, put=self._log.put)

    @property
    def under_way(self) -> bool:
        """Whether anything can still happen in it."""
        return not self._ending.done()

    def call(self) -> None:
        """Somebody may want something of the session."""
        self._called.set()

    def end(self, ending: Ending) -> None:
        """The first end counts."""
        if self.under_way:
            self._ending.set_result(ending)

    def tell(self, name: EventName, data: Mapping[str, Any]) -> None:
        """Something happened that is not the agent's doing. Nothing follows the end of a turn."""
        if self.under_way:
            self._log.try_to_keep(SessionEvent(name, data))

    def status(self, tool: str, text: str) -> None:
        """A tool of ours shows how far it is."""
        call_id = self.call_of(tool)
        self.tell("tool_status", {**({"call_id": call_id} if call_id else {}), "tool": tool, "text": text})

    def call_of(self, tool: str) -> str | None:
        """The call of this tool that is under way, if there is one and no more."""
        ids = [call_id for call_id, name in self._open.items() if name == tool]
        return ids[0] if len(ids) == 1 else None

    async def begin(self) -> None:
        """Tell the agent what was said. Raises what keeps it from starting, once the turn is over for that."""
        limit_s = self._limits.first_event_s
        try:
            said = {"message_id": self.said.id, "text": self.said.text, "from": self.said.sent_by}
            self._log.put("turn_input", said)
            async with asyncio.timeout(limit_s):
                # What nobody could read afterwards is not begun.
                await self._log.written()
                await self._tell_agent(anew=False)
        except TimeoutError as error:
            late = TimedOut(f"the agent did not start within {limit_s:g} s", hint="see whether its runtime is well")
            await self._finish(failed(late.message, reason="stalled"))
            raise late from error
        except asyncio.CancelledError:
            await asyncio.shield(asyncio.ensure_future(self._break_off()))
            raise
        except Exception as error:
            await self._finish(failed(said_of(error)))
            raise
        self._pulse.rest()
        self._playing = asyncio.create_task(self._play(), name=f"turn of {self.id}")

    async def _break_off(self) -> None:
        await self._finish(await self._why_stopped())

    async def _tell_agent(self, *, anew: bool) -> None:
        self._warm = await self._agent(self, anew)
        self._warm.host.stage = self.stage
        await self._warm.agent.send(self.said.text)

    async def _play(self) -> None:
        self._listening = asyncio.create_task(self._listen())
        parts = [asyncio.create_task(each) for each in (self._watch(), self._obey())]
        try:
            ending = await self._ending
        except asyncio.CancelledError:
            ending = failed(STOPPED, reason="stopped", lost=True)
        for part in parts:
            part.cancel()
        await asyncio.gather(*parts, return_exceptions=True)
        await self._finish(ending)

    async def _listen(self) -> None:
        """Keep what the agent says, until it says that it is done. One that has lost the history is asked anew."""
        try:
            ending = await self._heard_out()
            if ending is None and self.under_way:
                if self._warm is not None:
                    await stop_agent(self._warm.agent, self.id)
                self._resumed = False
                await self._tell_agent(anew=True)
                ending = await self._heard_out()
            self._last = ending or failed("the agent cannot begin anew")
            self.end(self._last)
        except Exception as error:
            if not isinstance(error, RookeryError):
                log.exception("the agent of %s broke", self.id)
            self.end(failed(said_of(error)))

    async def _heard_out(self) -> Ending | None:
        """How the agent says that it ended; None if it has never heard of the session that it was to go on with."""
        warm = self._warm
        assert warm is not None
        unknown = False
        async for event in warm.agent.events():
            self._pulse.beat()
            if event.name == DONE:
                return None if unknown else ending_of(event.data)
            unknown = unknown or (self._resumed and event.name == "error" and event.data.get("code") == UNKNOWN)
            if not unknown:
                self._take(warm, event)
        return failed("the agent's program ended without finishing the turn")

    def _take(self, warm: Warm, event: SessionEvent) -> None:
        data = event.data
        call_id = str(data.get("call_id", ""))
        if event.name in ("tool_call_start", "tool_call_end"):
            self._open[call_id] = str(data.get("tool", ""))
        elif event.name == "tool_result":
            self._open.pop(call_id, None)
        elif event.name == "error":
            self._told_error = True
        self._log.keep(event)
        if event.name == "session_status":
            self._take_status(warm, data)
        if self._learn_id(warm):
            self.call()

    def _learn_id(self, warm: Warm) -> bool:
        """Whether the runtime has another name for the session than the one that is kept."""
        native_id = warm.agent.native_id
        if native_id is None or native_id == self._native_id:
            return False
        self._native_id = self._notes["native_id"] = native_id
        return True

    def _take_status(self, warm: Warm, data: Mapping[str, Any]) -> None:
        kept = {"model": "model", "context_tokens": "context_tokens", "context_max_tokens": "context_max"}
        known = {column: data[name] for name, column in kept.items() if data.get(name) is not None}
        if "model" in known:
            warm.models.add(known["model"])
        if known:
            self._notes |= known
            self.call()
        for text in unreachable(data.get("servers") or ()):
            self._log.put("system", {"text": text})

    async def _watch(self) -> None:
        """End the turn if nothing is heard of the agent while nobody else is to blame."""
        while True:
            await asyncio.sleep(self._limits.look_s)
            if (trouble := self._log.trouble()) is not None:
                self.end(failed(trouble))
            if self._patience.waits or self._open:
                self._pulse.rest()
            elif (limit_s := self._pulse.overdue_s) is not None:
                self.end(failed(f"nothing was heard of the agent for {limit_s:g} s", reason="stalled"))

    async def _obey(self) -> None:
        """Do what people want of the session while its turn goes on."""
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK_S):
                    await self._called.wait()
            self._called.clear()
            try:
                row = await self._look()
            except RookeryError as error:
                log.warning("what is wanted of %s cannot be read: %s", self.id, error.message)
                await asyncio.sleep(1.0)
                continue
            if row is None or row.state == ENDED:
                self.end(failed("the session was ended", reason="stopped"))
                return
            warm = self._warm
            if row.interrupts > self._interrupts and warm is not None:
                self._interrupts = row.interrupts
                await self._interrupt(warm)
            if row.mode != self._mode and warm is not None:
                await self._change_mode(warm, row.mode)

    async def _look(self) -> Row | None:
        """The session as it is wanted, after what is known of it by now was noted."""
        notes, self._notes = self._notes, {}

        def work(tx: Tx) -> Row | None:
            rows = SessionRows(tx, self._tenant)
            if notes:
                rows.note(self.id, **notes)
            return rows.find(self.id)

        try:
            return await (self._database.change(work) if notes else self._database.read(work))
        except BaseException:
            # Also if the turn ended meanwhile: then they are written with its end.
            self._notes = notes | self._notes
            raise

    async def _interrupt(self, warm: Warm) -> None:
        asyncio.get_running_loop().call_later(INTERRUPT_S, self.end, failed("interrupted", reason="interrupted"))
        try:
            # An agent that waits for somebody hears it only once it need not wait any more.
            await asyncio.gather(warm.agent.interrupt(), warm.host.let_go())
        except Exception as error:
            log.warning("the agent of %s cannot be interrupted: %s", self.id, error)
            self.end(failed("interrupted", reason="interrupted"))

    async def _change_mode(self, warm: Warm, wanted: Mode) -> None:
        """What is wanted may be more than the agent has."""
        self._mode = wanted
        try:
            async with asyncio.timeout(INTERRUPT_S):
                mode = (await self._now()).mode
                await warm.agent.set_mode(mode)
            warm.mode = mode
            self.tell("session_status", {"mode": mode})
        except Exception as error:
            self.tell("system", {"text": f"the mode {wanted} cannot be taken: {said_of(error)}"})

    async def _finish(self, ending: Ending) -> None:
        """Everything that has to follow, once. Nothing is raised, and nothing can keep it from ending."""
        self.end(ending)
        ending = self._ending.result()
        self.outcome = ending.outcome
        try:
            kept = await self._let_agent_go(ending)
            ending = await self._with_last_words(ending)
            self._tell_error(ending)
            self.outcome = ending.outcome
            await self._log.flush()
            self.noted = await self._note_end(ending)
            self._log.try_to_keep(done(ending.outcome, ending.reason))
            await self._log.flush()
            self._over(self, kept)
        except Exception:
            log.exception("the end of a turn of %s went wrong", self.id)
            self._over(self, None)
        finally:
            self._finished.set()

    async def _let_agent_go(self, ending: Ending) -> Warm | None:
        """The agent if it can be kept; else it is stopped, and so is what it asked for."""
        warm, self._warm = self._warm, None
        if warm is None:
            return None
        await warm.host.let_go(stay_open=ending.lost)
        self._learn_id(warm)
        if ending.by_agent and self._keep and warm.agent.alive:
            return warm
        await stop_agent(warm.agent, self.id)
        return None

    async def _with_last_words(self, ending: Ending) -> Ending:
        """What an agent that was stopped says of what it has cost counts, whatever else it says."""
        if self._listening is not None:
            await asyncio.wait([self._listening], timeout=0.0 if ending.by_agent else LAST_WORDS_S)
            self._listening.cancel()
            await asyncio.gather(self._listening, return_exceptions=True)
        if ending.by_agent or self._last is None:
            return ending
        outcome = replace(self._last.outcome, status="failed", error=ending.outcome.error)
        return replace(ending, outcome=outcome)

    def _tell_error(self, ending: Ending) -> None:
        expected = ending.reason in ("completed", "interrupted")
        if ending.outcome.error and not (expected or self._told_error):
            self._log.try_to_keep(SessionEvent("error", {"message": ending.outcome.error}))

    async def _note_end(self, ending: Ending) -> bool:
        for pause_s in PAUSES_S:
            try:
                await self._database.change(lambda tx: self.note_end(tx, ending))
                return True
            except DatabaseError as error:
                log.warning("the end of a turn of %s cannot be written: %s", self.id, error.message)
                await asyncio.sleep(pause_s)
        return False

    def note_end(self, tx: Tx, ending: Ending | None = None) -> None:
        """Keep how it ended. Without an `ending` it is the one that counts, and all that is known of it by now."""
        ending = ending or replace(self._ending.result(), outcome=self.outcome)
        rows = SessionRows(tx, self._tenant)
        if self._notes:
            rows.note(self.id, **self._notes)
        error = ending.outcome.error if ending.reason != "interrupted" else None
        rows.turn_over(self.id, ending.outcome, error or None)
        if self.said.id is not None:
            rows.end_message(self.said.id, "lost" if ending.lost else "done", self.run_id)
