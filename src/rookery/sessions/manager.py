"""Starts agents and goes on with them: each message is a turn, one at a time, with the same tools each time.

Whoever wants something of a session writes it into its row; the process in which its agent lives sees to it. So there
may be several of these on one database, one in each process that does deferred work.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args

from rookery.core.actor import Actor, Mode
from rookery.core.call import Calls
from rookery.core.errors import ConfigurationError, Conflict, NotFound, RookeryError, ServiceUnavailable
from rookery.db.database import Database
from rookery.db.tx import Tx
from rookery.identity.renewing import Renewal
from rookery.identity.resolve import Resolver
from rookery.identity.tables import EPOCH
from rookery.lifecycle.sessions import Session
from rookery.sessions.asking import Asker, Interactions
from rookery.sessions.control import Controls
from rookery.sessions.ending import Said, failed
from rookery.sessions.folders import OwnFolders, inside, place_here, places_of, real_folder
from rookery.sessions.foreign_tools import OUR_PREFIX
from rookery.sessions.gate_asks import GateAsks
from rookery.sessions.log import SessionLog
from rookery.sessions.lost import is_busy, run_of
from rookery.sessions.opening import Opening, Ways, open_session
from rookery.sessions.port import AgentRuntime, Launch
from rookery.sessions.pulse import Limits
from rookery.sessions.redaction import Redaction
from rookery.sessions.rights import Rights
from rookery.sessions.sending import sent
from rookery.sessions.servers import Servers, checked_servers
from rookery.sessions.store import NewSession, Origin, Row, SessionRows, binding_of, is_unattended
from rookery.sessions.tables import ENDED
from rookery.sessions.turn import STOPPED, Turn
from rookery.sessions.warm import Warm, WarmAgents, over_or_paused
from rookery.sessions.writing import Kept
from rookery.settings import Settings

CLOSE_S = 15.0
"""So long everything has to stop."""
HISTORY_LOST = "what was said before in this session is lost to the agent: it begins anew"
_ORIGINS: tuple[Origin, ...] = get_args(Origin)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What a turn is held to beyond its time, and whether its agent is kept for the next one."""

    max_turns: int | None = None
    budget_usd: float | None = None
    keep: bool = False


class AgentSessions:
    """The sessions of one process. `default` is the runtime of sessions for which none was chosen."""

    def __init__(
        self,
        calls: Calls,
        database: Database,
        resolver: Resolver,
        settings: Settings,
        runtimes: Mapping[str, AgentRuntime],
        default: str | None,
    ) -> None:
        self.log = SessionLog(database)
        self.runtimes = runtimes
        self.default = default
        self.turns: dict[str, Turn] = {}
        self.warm = WarmAgents(settings.session_idle_s, settings.session_warm)
        self.closing = False
        self._calls = calls
        self._database = database
        self._resolver = resolver
        self._rights = Rights(resolver)
        self._limits = Limits(first_event_s=settings.session_first_event_s, stall_s=settings.session_stall_s)
        self._roots = settings.session_roots
        self._own_folders = OwnFolders(settings.home)
        self._controls = Controls(database)
        self._servers = Servers()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._looking: asyncio.Task[None] | None = None
        self._look_again = False
        self._gate_asks = GateAsks(database, lambda session_id: self.turns.get(session_id or ""))
        calls.events.subscribe(self._gate_asks.heard)
        calls.tap = self._tapped

    @property
    def ways(self) -> Ways:
        """What can be started here, and where: for `open_session`."""
        return Ways(runtimes=frozenset(self.runtimes), default=self.default, roots=self._roots)

    def set_mcp_servers(self, servers: Mapping[str, Mapping[str, Any]], allowed: Sequence[str] | None = None) -> None:
        """Give these MCP servers to every agent that is started from now on, besides our own.

        `allowed` are tools of theirs that need no question where the session's mode allows something by itself, each
        by its whole name. ValidationFailed for a wildcard that is not our own server's.
        """
        self._servers = checked_servers(servers, allowed)

    async def renew(self, actor: Actor) -> Actor:
        """The agent of a session with the rights and the mode that it has now: for each of its calls."""

        epoch = self._database.epoch(EPOCH)

        def look(tx: Tx) -> Actor | None:
            row = SessionRows(tx, actor.tenant).find(actor.session) if actor.session is not None else None
            if row is None or row.agent != actor.agent or actor.kind != "agent":
                return None
            return self._actor_of(tx, row, actor, epoch)

        found = await self._database.read(look)
        return found or await Renewal(self._database, self._resolver)(actor)

    async def actor_of(self, row: Row) -> Actor:
        """The agent of a session as it is now."""
        return await self._database.read(lambda tx: self._actor_of(tx, row))

    def _actor_of(self, tx: Tx, row: Row, like: Actor | None = None, epoch: int | None = None) -> Actor:
        if row.state == ENDED:
            raise Conflict(f"the session {row.id} has ended", hint="start another one")
        binding = binding_of(row)
        if like is not None and like.within is not None:
            # Whoever serves it may have left out some of its tools.
            binding = replace(binding, within=like.within & (binding.within or like.within))
        actor = self._rights.of(tx, binding, epoch)
        unattended = actor.unattended or is_unattended(row)
        return replace(actor, run=row.run_id, phase=like.phase if like is not None else None, unattended=unattended)

    async def start_session(
        self,
        actor: Actor,
        prompt: str,
        *,
        key: str,
        cwd: str | None = None,
        max_turns: int | None = None,
        budget_usd: float | None = None,
        model: str | None = None,
    ) -> Session:
        """Let an agent do one task, for a job: see `lifecycle.sessions.Runtime`. Its session is called as the key."""
        living = self.turns.get(key)
        if living is not None:
            return living
        default = self.default
        if default is None or actor.run is None:
            raise ConfigurationError("no agent can be started here", hint="set runtime, and start it by a run")

        def keep(tx: Tx) -> Row:
            run = run_of(tx, actor.tenant, actor.run)
            kind = run.kind if run is not None and run.kind in _ORIGINS else "work"
            new = NewSession(
                actor=replace(actor, session=key),
                runtime=default,
                mode=actor.mode,
                opened_by=actor.subject,
                origin=kind,
                title=prompt.strip().partition("\n")[0].removeprefix("# "),
                model=model,
                cwd=cwd or place_here(tx, actor),
                id=key,
            )
            rows = SessionRows(tx, actor.tenant)
            if is_busy(tx, actor.tenant, rows.create(new)):
                raise Conflict(f"the session {key} is at work in another process", hint="wait for its end")
            # A turn that was lost has ended it.
            return rows.create(new)

        row = await self._database.change(keep)
        bounds = Bounds(max_turns=max_turns, budget_usd=budget_usd)
        said = Said(text=prompt, sent_by=row.origin)
        return await self.begin(row, replace(actor, session=key), said, bounds)

    async def begin(
        self, row: Row, actor: Actor, said: Said, bounds: Bounds, made: Callable[[Turn], None] | None = None
    ) -> Turn:
        """Begin a turn of a session that is at none. `actor` has the run of the turn.

        `made` is handed the turn before anything of it can go wrong: whatever does is told in the session as well.
        """
        if self.closing:
            # Whoever wants it is about to be stopped as well, and begins again later.
            await asyncio.sleep(CLOSE_S)
            raise ServiceUnavailable(STOPPED, hint="it is tried again")
        if row.id in self.turns:
            raise ServiceUnavailable(f"the session {row.id} is at another turn", hint="it is tried again")
        self._loop = asyncio.get_running_loop()
        run_id = actor.run or ""
        tenant: str = row.tenant
        began = await self._database.change(lambda tx: SessionRows(tx, tenant).began(row, run_id))
        if began is None:
            raise Conflict(f"the session {row.id} has ended", hint="start another one")

        async def now() -> Actor:
            return await self.renew(actor)

        def stops() -> bool:
            return self.closing

        async def agent(turn: Turn, anew: bool) -> Warm:
            return await self._agent(began, actor, turn, bounds, anew=anew)

        def over(turn: Turn, warm: Warm | None) -> None:
            self._over(turn, warm)
            if not bounds.keep and turn.outcome.status == "done":
                # Else it may be begun again by now, in another process and in the same folder.
                self._own_folders.remove_empty(turn.id)

        turn = Turn(
            self._database,
            self.log,
            self._limits,
            began,
            run_id,
            said,
            agent=agent,
            now=now,
            over=over,
            stops=stops,
            keep=bounds.keep,
        )
        if made is not None:
            made(turn)
        self.turns[row.id] = turn
        self._controls.add(row.id, turn.call)
        await turn.begin()
        return turn

    def _over(self, turn: Turn, warm: Warm | None) -> None:
        if self.turns.get(turn.id) is turn:
            del self.turns[turn.id]
            self._controls.remove(turn.id)
        if warm is None:
            return
        if self.closing:
            self.warm.stop(turn.id, warm)
            return
        self.warm.keep(turn.id, warm)
        if turn.id in self.warm:
            self._controls.add(turn.id, lambda: self._look_at_warm(turn.id))
            # It may have been ended between the last look of the turn and this.
            self._look_at_warm(turn.id)

    def _look_at_warm(self, session_id: str) -> None:
        if session_id not in self.warm:
            self._controls.remove(session_id)
            return
        self._look_again = True
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._stop_ended())

    async def _stop_ended(self) -> None:
        """Stop the agents of sessions that were ended or paused while they had nothing to do."""
        while self._look_again:
            self._look_again = False
            ids = list(self.warm)
            # Else it is seen with the next message, or when its time is over.
            with contextlib.suppress(RookeryError):
                for session_id in await self._database.read(lambda tx, ids=ids: over_or_paused(tx, ids)):
                    self.warm.drop(session_id)

    async def _agent(self, row: Row, actor: Actor, turn: Turn, bounds: Bounds, *, anew: bool) -> Warm:
        """The agent of the session: the one that is here, the one that it was before, or a new one."""
        warm = self.warm.take(row.id)
        servers = self._servers
        if warm is not None and bounds.keep and row.model in warm.models and warm.servers == servers:
            return await self._in_mode(row.id, warm, actor.mode)
        if warm is not None:
            self.warm.stop(row.id, warm)
        runtime = self._runtime(row.runtime)
        launch, host = await self._launch(row, actor, bounds, servers)
        agent = None
        if row.native_id is not None and not anew:
            with contextlib.suppress(NotFound):
                agent = await runtime.resume(launch, host, row.native_id)
        if agent is None:
            if row.native_id is not None or row.turns > 0:
                turn.tell("system", {"text": HISTORY_LOST})
            agent = await runtime.start(launch, host)
        return Warm(agent, host, actor.mode, {row.model}, Redaction(self._calls.registry), servers)

    async def _in_mode(self, session_id: str, warm: Warm, mode: Mode) -> Warm:
        """The agent that was kept, in the mode of now. One that does not take it is stopped."""
        try:
            if warm.mode != mode:
                await warm.agent.set_mode(mode)
                warm.mode = mode
        except BaseException:
            self.warm.stop(session_id, warm)
            raise
        return warm

    def _runtime(self, name: str) -> AgentRuntime:
        runtime = self.runtimes.get(name)
        if runtime is None:
            known = ", ".join(sorted(self.runtimes)) or "none"
            raise ConfigurationError(f"this server has no runtime {name}", hint=f"it has: {known}")
        if runtime.missing is not None:
            raise ConfigurationError(f"the runtime {name} cannot start agents here", hint=runtime.missing)
        return runtime

    async def _launch(self, row: Row, actor: Actor, bounds: Bounds, servers: Servers) -> tuple[Launch, Interactions]:
        def prepare(tx: Tx) -> tuple[str, str, str]:
            pass_key = SessionRows(tx, row.tenant).new_pass(row.id)
            # A prompt of the orchestrator has the notes of the profile already, as far as its budget lets it.
            noted = actor if row.origin != "orchestrator" else replace(actor, profile=None)
            return pass_key, self._resolver.prompt_additions(tx, noted), self._folder(tx, row, actor)

        pass_key, instructions, folder = await self._database.change(prepare)
        allowed = servers.allowed_besides(row.servers)
        launch = Launch(
            session=row.id,
            actor=actor,
            mode=actor.mode,
            cwd=folder,
            model=row.model,
            max_turns=bounds.max_turns,
            budget_usd=bounds.budget_usd,
            instructions=instructions,
            servers={**servers.servers, **row.servers},
            allowed=allowed,
            pass_key=pass_key,
        )

        async def now() -> Actor:
            return await self.renew(actor)

        asker = Asker(
            tenant=row.tenant,
            session_id=row.id,
            folder=folder,
            unattended=row.origin != "user" or is_unattended(row),
            now=now,
            listed=frozenset(allowed),
        )
        return launch, Interactions(self._calls, self._database, asker)

    def _folder(self, tx: Tx, row: Row, actor: Actor) -> str:
        """Where the agent works. What was inside the allowed folders may be a way out of them by now."""
        if row.cwd is None:
            return self._own_folders.made(row.id)
        if row.origin != "user":
            return real_folder(row.cwd)
        return inside(row.cwd, (*self._roots, *places_of(tx, actor)))

    async def ensure(self, opener: Actor, opening: Opening, session_id: str | None = None) -> Row:
        """The session of that id, ours or the runtime's, if the opener knows of it; else a new one as it is wanted."""

        def work(tx: Tx) -> Row:
            rows = SessionRows(tx, opener.tenant, opener.closed)
            found = rows.find(session_id) if session_id is not None else None
            return found or open_session(tx, self._resolver, self.ways, opener, opening)

        return await self._database.change(work)

    def send_message(self, opener: Actor, session_id: str, text: str) -> AsyncGenerator[Kept]:
        """Tell the agent something when its turn has come, and give what happens in that turn, up to its `done`.

        Nothing is sent before the first event is asked for. Conflict if the message is taken back before its turn.
        """
        return sent(self._database, self.log, opener, session_id, text)

    def _tapped(self, actor: Actor, tool: str, text: str) -> None:
        """From any thread: a tool of ours shows a line."""
        loop = self._loop
        if loop is not None and actor.session in self.turns:
            # A loop that has ended has no turns.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(self._status, actor.session, tool, text)

    def _status(self, session_id: str, tool: str, text: str) -> None:
        turn = self.turns.get(session_id)
        if turn is not None:
            turn.status(f"{OUR_PREFIX}{tool}", text)

    def stop_soon(self) -> None:
        """Begin nothing more: whoever does deferred work here stops now, and with that the turns."""
        self.closing = True

    async def close(self) -> None:
        """End every turn and every agent. What they asked stays open, and the next message resumes them."""
        self.stop_soon()
        turns = list(self.turns.values())
        for turn in turns:
            turn.end(failed(STOPPED, reason="stopped", lost=True))
        with contextlib.suppress(TimeoutError, RookeryError):
            async with asyncio.timeout(CLOSE_S):
                await asyncio.gather(*(turn.wait() for turn in turns))
                await self.warm.close()
        self._controls.close()
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.gather(self._looking, return_exceptions=True)
        await self._gate_asks.close()
        await self.log.close()
