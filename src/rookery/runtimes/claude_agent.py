"""One agent that Claude Code runs: its turns, and how it ends."""

import asyncio
import contextlib
import logging
import os
import secrets
import shutil
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from claude_agent_sdk import (
    ClaudeAgentOptions,
    ClaudeSDKClient,
    ClaudeSDKError,
    CLIConnectionError,
    CLIJSONDecodeError,
    HookMatcher,
    PermissionMode,
    ProcessError,
    ResultError,
    ResultMessage,
)

from rookery.core.actor import Mode
from rookery.core.errors import NotFound, ServiceUnavailable
from rookery.identity.binding import stricter
from rookery.lifecycle.sessions import Outcome
from rookery.runtimes.claude_asking import WATCHED, Asking
from rookery.runtimes.claude_events import Reading, given, taken
from rookery.runtimes.claude_failures import Failure, of_end, of_result, of_service, short
from rookery.runtimes.claude_launch import ClaudeConfig, command_line, environment, permission_mode, write_files
from rookery.runtimes.claude_process import ClaudeProcess
from rookery.server.inprocess import CallStatus, ToolServer, allowed_tool_names, create_tool_server
from rookery.sessions.events import DONE, SessionEvent, done
from rookery.sessions.port import OURS, Host, Launch, Reason

if TYPE_CHECKING:
    from rookery.app import Platform

MOST_WAITING = 2000
"""Events that nobody has taken yet; then Claude Code waits until somebody does."""
INTERRUPT_S = 5.0
"""How long a turn may go on after it was told to end; then the program is ended."""
ANSWER_S = 4.0
"""How long it may take to say that it acts in another mode now."""
PAUSE_S = 0.5
"""How far a call is, is told no more often than that."""
log = logging.getLogger("rookery.claude")


@dataclass(slots=True)
class _Turn:
    interrupted: bool = False
    over: asyncio.Event = field(default_factory=asyncio.Event)


class ClaudeAgent:
    """Connects once; afterwards one turn after another, until it is stopped or its program ends."""

    def __init__(
        self,
        platform: "Platform",
        config: ClaudeConfig,
        program: str,
        folder: Path,
        launch: Launch,
        host: Host,
        resumed: str | None,
    ) -> None:
        self._launch = launch
        self._asking = Asking(host, launch.mode, launch.actor.worktree)
        self._reading = Reading()
        self._reading.native_id = resumed
        self._resumed = resumed
        self._queue: asyncio.Queue[SessionEvent] = asyncio.Queue(MOST_WAITING)
        self._turn: _Turn | None = None
        self._alive = False
        self._spent = 0.0
        self._told: dict[str | None, float] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._folder = folder
        actor = replace(launch.actor, mode=launch.mode)
        ours = create_tool_server(platform, actor, on_status=self._status)
        self._server: ToolServer = ours["instance"]
        self._servers: dict[str, Any] = {**{name: dict(each) for name, each in launch.servers.items()}, OURS: ours}
        free = launch.allowed if launch.mode != "ask" else ()
        allowed = allowed_tool_names(platform, actor, existing=free)
        mark = secrets.token_hex(16)
        words = command_line(program, config, launch, self._folder, allowed, resumed)
        self._process = ClaudeProcess(words, environment(config, launch.session, mark), launch.cwd, mark)
        self._client = ClaudeSDKClient(self._options(), self._process)

    def _options(self) -> ClaudeAgentOptions:
        """What the SDK itself has to know; the rest stands on the command line."""
        watched = HookMatcher(matcher=WATCHED, hooks=[cast(Any, self._asking.before_use)])
        return ClaudeAgentOptions(
            mcp_servers=self._servers,
            can_use_tool=self._asking.may_use,
            hooks={"PreToolUse": [watched]},
            # What a message says is for the model alone: no file is read and no command run for it.
            verbatim_prompts=True,
        )

    @property
    def native_id(self) -> str | None:
        return self._reading.native_id

    @property
    def alive(self) -> bool:
        return self._alive

    @property
    def pid(self) -> int | None:
        """The process of its program, while there is one."""
        return self._process.pid

    async def connect(self) -> None:
        """Start the program and shake hands with it. What goes wrong is raised, and nothing is left of it."""
        try:
            await asyncio.to_thread(write_files, self._folder, self._launch, self._servers)
            await self._client.connect()
            # It has read them, and there may be keys of others in them.
            await self._forget_files()
        except Exception as error:
            await self._leave()
            raise self._refused(error) from error
        except BaseException:
            await self._leave()
            raise
        self._alive = True
        self._spawn(self._read())

    def _refused(self, error: Exception) -> Exception:
        said = f"{error} {self._process.complaint}"
        if self._resumed is not None and "no conversation found" in said.lower():
            return NotFound(f"Claude Code has no session {self._resumed}", hint="begin a new session")
        cwd = self._launch.cwd
        if cwd is not None and not os.path.isdir(cwd):
            return ServiceUnavailable(f"the folder {cwd} is not there", hint="name another folder")
        return ServiceUnavailable(f"Claude Code cannot be started: {short(said)}", hint="rookery doctor")

    async def send(self, text: str) -> None:
        """Begin a turn. If the program is no more, the turn fails; that is told by its events."""
        self._turn = _Turn()
        self._reading.begin()
        try:
            await self._client.query(text)
        except Exception as error:
            await self._gone(Failure(f"Claude Code takes no messages any more: {short(str(error))}", "crashed"))

    async def events(self) -> AsyncIterator[SessionEvent]:
        while True:
            event = await self._queue.get()
            yield event
            if event.name == DONE:
                return

    async def set_mode(self, mode: Mode) -> None:
        if stricter(mode, self._asking.mode) == mode:
            # What is taken away is gone at once, whether or not Claude Code hears of it.
            self._act_in(mode)
        wanted = permission_mode(mode, root=os.geteuid() == 0)
        # It lets nobody act unasked who did not begin so; then the host is asked, and allows it.
        for each in dict.fromkeys((wanted, "default")):
            try:
                async with asyncio.timeout(ANSWER_S):
                    await self._client.set_permission_mode(cast(PermissionMode, each))
            except Exception as error:
                log.info("Claude Code does not take the mode %s: %s", each, error)
            else:
                self._act_in(mode)
                return
        if self._alive:
            raise ServiceUnavailable(f"Claude Code does not take the mode {mode}", hint="stop the agent")

    def _act_in(self, mode: Mode) -> None:
        self._asking.mode = mode
        self._server.actor = replace(self._server.actor, mode=mode)

    async def interrupt(self) -> None:
        turn = self._turn
        if turn is None or turn.interrupted:
            return
        turn.interrupted = True
        self._spawn(self._end_turn_soon(turn))

    async def _end_turn_soon(self, turn: _Turn) -> None:
        try:
            async with asyncio.timeout(INTERRUPT_S):
                await self._client.interrupt()
                await turn.over.wait()
        except Exception as error:
            log.warning("a turn did not end when it was told to: %s", error)
            await self._process.close()

    async def stop(self) -> None:
        self._alive = False
        self._over(self._outcome(), "stopped")
        await self._leave()

    async def _leave(self) -> None:
        """End everything that belongs to it, also if nobody waits for that any more."""
        await asyncio.shield(self._end_everything())

    async def _end_everything(self) -> None:
        # A tool that does not heed its end keeps the SDK waiting; the program need not wait for that too.
        ends = await asyncio.gather(self._client.disconnect(), self._process.close(), return_exceptions=True)
        for error in ends:
            if isinstance(error, Exception):
                log.error("an agent did not end as it should", exc_info=error)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._forget_files()

    async def _forget_files(self) -> None:
        await asyncio.to_thread(shutil.rmtree, self._folder, ignore_errors=True)

    def _spawn(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _read(self) -> None:
        """Take what comes until the program ends."""
        failure = of_end(None, "")
        try:
            while True:
                try:
                    async for message in self._client.receive_messages():
                        await self._take(message)
                    break
                except (ProcessError, CLIConnectionError, CLIJSONDecodeError):
                    raise
                except ClaudeSDKError as error:
                    # A message that the SDK does not understand; the next may be one that it does.
                    await self._put(SessionEvent("system", {"line": short(str(error))}))
        except ResultError as error:
            failure = of_service(error.api_error_status, str(error))
        except ProcessError as error:
            failure = of_end(error.exit_code, self._process.complaint)
        except Exception as error:
            log.exception("what Claude Code says cannot be read")
            failure = Failure(f"What Claude Code says cannot be read: {short(str(error))}", "crashed")
        await self._gone(failure)

    async def _gone(self, failure: Failure) -> None:
        """The program is no more. Nothing that it started outlives the turn."""
        self._alive = False
        await self._process.close()
        turn = self._turn
        if turn is not None and turn.interrupted:
            self._over(self._outcome(), "interrupted")
        elif turn is not None:
            await self._fail(failure, self._outcome(failure.message))

    async def _take(self, message: object) -> None:
        if isinstance(message, ResultMessage):
            await self._result(message)
            return
        for event in self._reading.events(message):
            await self._put(event)
        if self._reading.unexplained():
            self._spawn(self._explain_servers())

    async def _result(self, message: ResultMessage) -> None:
        turn = self._turn
        await self._put(self._reading.status(message))
        failure = of_result(message, self._launch.max_turns)
        outcome = Outcome(
            "done" if failure is None else "failed",
            output=message.result or "" if failure is None else "",
            error="" if failure is None else failure.message,
            cost_usd=self._cost(message),
            turns=message.num_turns,
            input_tokens=taken(message.usage),
            output_tokens=given(message.usage),
        )
        if turn is not None and turn.interrupted:
            self._over(replace(outcome, status="failed", error="interrupted"), "interrupted")
        elif failure is not None:
            await self._fail(failure, outcome)
        else:
            self._over(outcome, "completed")

    def _cost(self, result: ResultMessage) -> float:
        """What the turn has cost. The total of a resumed session has in it what it cost before."""
        before, told = self._spent, result.total_cost_usd
        self._spent = before if told is None else told
        own = self._process.cost_of(result.uuid)
        return max(self._spent - before, 0.0) if own is None else own

    async def _explain_servers(self) -> None:
        """Say why a server is not connected. The first message of a turn only says that it is not."""
        with contextlib.suppress(Exception):
            told = cast("dict[str, list[dict[str, Any]]]", await self._client.get_mcp_status())
            shown = ("name", "status", "error")
            servers = [{key: each[key] for key in shown if key in each} for each in told["mcpServers"]]
            await self._put(SessionEvent("session_status", {"servers": servers}))

    async def _fail(self, failure: Failure, outcome: Outcome) -> None:
        await self._put(SessionEvent("error", {"message": failure.message, "code": failure.code}))
        self._over(outcome, "failed")

    def _outcome(self, error: str = "") -> Outcome:
        """Of a turn about whose end Claude Code has said nothing."""
        used = self._reading
        return Outcome("failed", error=error, turns=0, input_tokens=used.input_tokens, output_tokens=used.output_tokens)

    async def _put(self, event: SessionEvent) -> None:
        """Between turns nobody listens, and what is said there would be taken for part of the next."""
        if self._turn is not None:
            await self._queue.put(event)

    def _status(self, status: CallStatus) -> None:
        """How far a running call is. Its lines of status come to the session from the platform itself."""
        if status.done is None or self._turn is None or self._told_just_now(status):
            return
        part = f"{status.done:g} of {status.total:g}" if status.total is not None else f"{status.done:g}"
        text = f"{status.text} ({part})" if status.text else part
        data = {"tool": f"mcp__{OURS}__{status.tool}", "text": text}
        with contextlib.suppress(asyncio.QueueFull):
            self._queue.put_nowait(
                SessionEvent("tool_status", {**data, "call_id": status.call_id} if status.call_id else data)
            )

    def _told_just_now(self, status: CallStatus) -> bool:
        """Whether something was said a moment ago: some handlers tell each of a thousand steps."""
        now = time.monotonic()
        if now - self._told.get(status.call_id, -PAUSE_S) < PAUSE_S and status.done != status.total:
            return True
        self._told[status.call_id] = now
        return False

    def _over(self, outcome: Outcome, reason: Reason) -> None:
        """The end of the turn, told once, also to somebody who has not listened for long."""
        turn, self._turn = self._turn, None
        if turn is None:
            return
        turn.over.set()
        self._told.clear()
        while self._queue.full():
            self._queue.get_nowait()
        self._queue.put_nowait(done(outcome, reason))
