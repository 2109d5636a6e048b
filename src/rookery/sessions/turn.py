"""One turn of a session: from its message to exactly one `done`, whatever happens on the way."""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from rookery.core.actor import Actor
from rookery.core.errors import RookeryError, TimedOut
from rookery.db.database import Database
from rookery.db.tx import Tx
from rookery.lifecycle.pauses import Pause, Pauses
from rookery.lifecycle.session_store import SessionRuns
from rookery.lifecycle.sessions import Outcome
from rookery.sessions.asking import Stage
from rookery.sessions.ending import Ending, Said, ending_of, failed, said_of, turn_input, unreachable
from rookery.sessions.events import DONE, EventName, SessionEvent, done
from rookery.sessions.log import SessionLog
from rookery.sessions.patience import Patience
from rookery.sessions.pulse import Limits, Pulse
from rookery.sessions.store import Row, SessionRows
from rookery.sessions.turn_end import end_turn, has_done
from rookery.sessions.turn_log import TurnLog
from rookery.sessions.warm import Warm, stop_agent
from rookery.sessions.wishes import Wishes
from rookery.sessions.writing import Kept

log = logging.getLogger("rookery.sessions")
LAST_WORDS_S = 0.5
"""An agent that was stopped has so long to say what it has cost."""
WHY_S = 1.0
"""So long we look for the reason why a turn is stopped before it is stopped without one."""
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
        self._paused_with: tuple[str | None, str | None] = (row.project_id, row.agent)
        self._database = database
        self._log = TurnLog(record, row.tenant, row.id, run_id)
        self._limits = limits
        self._agent = agent
        self._over = over
        self._stops = stops
        self._keep = keep
        self._patience = Patience(database, row.tenant, row.id, run_id)
        self._wishes = Wishes(database, row, run_id, now=now, end=self.end, tell=self.tell)
        self._ending: asyncio.Future[Ending] = asyncio.get_running_loop().create_future()
        self._finished = asyncio.Event()
        self.outcome = Outcome("failed", turns=0)
        self._resumed = row.native_id is not None
        self._began = False
        self._open: dict[str, str] = {}
        self._pulse = Pulse(limits)
        self._told_error = False
        self._last: Ending | None = None
        self._listening: asyncio.Task[None] | None = None
        self._obeying: asyncio.Task[None] | None = None
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
            ending = failed("stopped", reason="stopped")
            try:
                ending = await self._why_stopped()
            finally:
                self.end(ending)
        await self._finished.wait()

    async def _why_stopped(self) -> Ending:
        """Nobody says why a session is stopped, but its deadline is on record, and what is paused."""
        if self._stops():
            return failed(STOPPED, reason="stopped", lost=True)
        with contextlib.suppress(RookeryError, TimeoutError):
            async with asyncio.timeout(WHY_S):
                (left_ms, lasts_ms), pause = await self._database.read(self._limits_now)
            if left_ms <= 0 < lasts_ms:
                return failed(f"it did not end within {lasts_ms / 1000:g} s", reason="timed_out")
            if pause is not None:
                return failed(f"stopped: {pause.said}", reason="stopped")
        return failed("stopped", reason="stopped")

    def _limits_now(self, tx: Tx) -> tuple[tuple[int, int], Pause | None]:
        time_left = SessionRuns(tx, self._tenant).time_of(self.run_id)
        return time_left, Pauses(tx, self._tenant).holding(*self._paused_with)

    @property
    def stage(self) -> Stage:
        return Stage(run_id=self.run_id, message_id=self.said.id, patience=self._patience, put=self._log.put)

    @property
    def under_way(self) -> bool:
        """Whether anything can still happen in it."""
        return not self._ending.done()

    def call(self) -> None:
        """Somebody may want something of the session."""
        self._wishes.call()

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
        self._obeying = asyncio.create_task(self._wishes.obey())
        try:
            async with asyncio.timeout(limit_s):
                await self._start()
        except TimeoutError as error:
            late = TimedOut(f"the agent did not start within {limit_s:g} s", hint="see whether its runtime is well")
            await self._seen_out(failed(late.message, reason="stalled"))
            raise late from error
        except asyncio.CancelledError:
            await self._seen_out(None)
            raise
        except Exception as error:
            await self._seen_out(failed(said_of(error)))
            raise
        self._pulse.rest()
        self._playing = asyncio.create_task(self._play(), name=f"turn of {self.id}")

    async def _seen_out(self, ending: Ending | None) -> None:
        """Wait for its end, which comes also if nobody waits any more. None: it was stopped."""
        self._playing = asyncio.create_task(self._finish(ending), name=f"turn of {self.id}")
        await asyncio.shield(self._playing)

    async def _start(self) -> None:
        """Tell the agent what was said, unless the turn ends before that."""
        starting = asyncio.create_task(self._tell_first())
        try:
            await asyncio.wait([starting, self._ending], return_when=asyncio.FIRST_COMPLETED)
        finally:
            ended = not self.under_way
            starting.cancel()
            # What it has started by then is stopped with the turn, so it has to be known.
            (trouble,) = await asyncio.gather(starting, return_exceptions=True)
        if trouble is not None and not ended:
            raise trouble

    async def _tell_first(self) -> None:
        self._log.keep(turn_input(self.said))
        # What nobody could read afterwards is not begun.
        await self._log.written()
        await self._tell_agent(anew=False)

    async def _tell_agent(self, *, anew: bool) -> None:
        self._wishes.warm = warm = await self._agent(self, anew)
        await self._wishes.hold()
        if self.under_way:
            warm.host.stage = self.stage
            await warm.agent.send(self.said.text)
            self._began = True

    async def _play(self) -> None:
        watching = asyncio.create_task(self._watch())
        if self._began:
            self._listening = asyncio.create_task(self._listen())
        try:
            ending = await self._ending
        except asyncio.CancelledError:
            ending = failed(STOPPED, reason="stopped", lost=True)
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
        await self._finish(ending)

    async def _listen(self) -> None:
        """Keep what the agent says, until it says that it is done. One that has lost the history is asked anew."""
        try:
            ending = await self._heard_out()
            if ending is None and self.under_way:
                await self._stop_agent()
                self._resumed = False
                await self._tell_agent(anew=True)
                ending = await self._heard_out() if self.under_way else None
            self._last = ending or failed("the agent cannot begin anew")
            self.end(self._last)
        except Exception as error:
            if not isinstance(error, RookeryError):
                log.exception("the agent of %s broke", self.id)
            self.end(failed(said_of(error)))

    async def _heard_out(self) -> Ending | None:
        """How the agent says that it ended; None if it has never heard of the session that it was to go on with."""
        warm = self._wishes.warm
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
        if event.name == "tool_call_end":
            self._open[call_id] = str(data.get("tool", ""))
        elif event.name == "tool_result":
            self._open.pop(call_id, None)
        elif event.name == "error":
            self._told_error = True
        if (shown := warm.redaction.shown(event)) is not None:
            self._log.keep(shown)
        if event.name == "session_status":
            self._wishes.learn(warm, data)
            for text in unreachable(data.get("servers") or ()):
                self._log.put("system", {"text": text})
        self._wishes.learn_id(warm)

    async def _watch(self) -> None:
        """End the turn if nothing is heard of the agent while nobody else is to blame."""
        while True:
            await asyncio.sleep(self._limits.look_s)
            if (trouble := self._log.trouble()) is not None:
                self.end(failed(trouble))
            if self._patience.waits:
                self._pulse.rest()
            elif (limit_s := self._pulse.overdue_s(tool_works=bool(self._open))) is not None:
                self.end(failed(f"nothing was heard of the agent for {limit_s:g} s", reason="stalled"))

    async def _finish(self, ending: Ending | None) -> None:
        """Everything that has to follow, once. Nothing is raised, and nothing can keep it from ending."""
        kept: Warm | None = None
        try:
            self.end(ending or await self._why_stopped())
            ending = self._ending.result()
            self.outcome = ending.outcome
            if self._obeying is not None:
                self._obeying.cancel()
                await asyncio.gather(self._obeying, return_exceptions=True)
            kept = await self._let_agent_go(ending)
            ending = await self._with_last_words(ending)
            self._tell_error(ending)
            self.outcome = ending.outcome
            await self._tell_end(ending)
        except Exception:
            log.exception("the end of a turn of %s went wrong", self.id)
        finally:
            self.end(failed(STOPPED, reason="stopped", lost=True))
            try:
                self._over(self, kept)
            finally:
                self._finished.set()

    async def _let_agent_go(self, ending: Ending) -> Warm | None:
        """The agent if it can be kept; else it is stopped, and so is what it asked for."""
        warm = self._wishes.warm
        if warm is None:
            return None
        await warm.host.let_go(stay_open=ending.lost)
        self._wishes.learn_id(warm)
        if ending.by_agent and self._keep and warm.agent.alive:
            self._wishes.warm = None
            return warm
        await self._stop_agent()
        return None

    async def _stop_agent(self) -> None:
        warm, self._wishes.warm = self._wishes.warm, None
        if warm is not None:
            await stop_agent(warm.agent, self.id)

    async def _with_last_words(self, ending: Ending) -> Ending:
        """What an agent that was stopped says of what it has cost counts, whatever else it says."""
        if self._listening is not None:
            await asyncio.wait([self._listening], timeout=0.0 if ending.by_agent else LAST_WORDS_S)
            self._listening.cancel()
            await asyncio.gather(self._listening, return_exceptions=True)
            # One that was to begin anew may have come meanwhile.
            await self._stop_agent()
        if ending.by_agent or self._last is None:
            return ending
        stalled = ending.outcome.stalled
        outcome = replace(self._last.outcome, status="failed", error=ending.outcome.error, stalled=stalled)
        return replace(ending, outcome=outcome)

    def _tell_error(self, ending: Ending) -> None:
        expected = ending.reason in ("completed", "interrupted")
        if ending.outcome.error and not (expected or self._told_error):
            self._log.try_to_keep(SessionEvent("error", {"message": ending.outcome.error}))

    async def _tell_end(self, ending: Ending) -> None:
        """Keep how it ended, together with its `done`; where that cannot be, the `done` follows when it can."""
        last = done(ending.outcome, ending.reason)
        # The `done` is the last event of a turn, so nothing may be left to be written before it.
        at_once = await self._log.flush()
        self.noted = await self._note_end(ending, [last] if at_once else [])
        if not (self.noted and at_once):
            self._log.try_to_keep(last)
            await self._log.flush()

    async def _note_end(self, ending: Ending, events: Sequence[SessionEvent]) -> bool:
        tried = False

        def work(tx: Tx) -> list[Kept]:
            # What could not be written, as it seemed, may have been.
            return [] if tried and has_done(tx, self._tenant, self.run_id) else self.note_end(tx, ending, events)

        for pause_s in PAUSES_S:
            try:
                self._log.told(await self._database.change(work))
                return True
            except RookeryError as error:
                log.warning("the end of a turn of %s cannot be written: %s", self.id, error.message)
                if not error.retryable:
                    break
                tried = True
                await asyncio.sleep(pause_s)
        return False

    def note_end(self, tx: Tx, ending: Ending | None = None, events: Sequence[SessionEvent] = ()) -> list[Kept]:
        """Keep how it ended, with these events unless its `done` is there; what was kept is returned.

        Without an `ending` it is the one that counts, and all that is known of it by now.
        """
        ending = ending or replace(self._ending.result(), outcome=self.outcome)
        error = ending.outcome.error if ending.reason != "interrupted" else None
        self._wishes.note(tx)
        kept = end_turn(tx, self._tenant, self.id, self.run_id, ending.outcome, error or None, events)
        if self.said.id is not None:
            SessionRows(tx, self._tenant).end_message(self.said.id, "lost" if ending.lost else "done", self.run_id)
        return kept
