"""One agent that a client program runs. Each turn is a process of its own, which goes on with the client's session."""

import asyncio
import contextlib
import os
import secrets
import shutil
import tempfile
from collections.abc import AsyncGenerator, Coroutine, Mapping
from contextlib import aclosing
from pathlib import Path
from typing import Any

from rookery.core.actor import Mode
from rookery.core.errors import Conflict, RookeryError
from rookery.identity.binding import stricter
from rookery.runtimes.command_client import (
    Client,
    Invocation,
    Turn,
    all_servers,
    environment,
    write_scope_file,
)
from rookery.runtimes.command_failures import Failure, of_end, of_words, short
from rookery.runtimes.command_lines import Line
from rookery.runtimes.command_process import Program
from rookery.runtimes.command_reading import Reader, Wanted, told
from rookery.sessions.events import SessionEvent, done
from rookery.sessions.port import Host, Launch, Reason

INTERRUPT_S = 5.0
"""How long a program may take to end after it was interrupted; then it is killed."""
EXIT_S = 10.0
"""How long it may go on after it has said everything."""


class CommandAgent:
    """Lives between its turns without a process: it can be resumed."""

    def __init__(
        self,
        client: Client,
        home: str,
        environ: Mapping[str, str],
        launch: Launch,
        host: Host,
        native_id: str | None = None,
    ) -> None:
        self._client, self._home, self._environ = client, home, environ
        self._launch, self._host = launch, host
        self._native_id = native_id
        self._used: tuple[int, int] | None = (0, 0) if native_id is None else None
        self._mode: Mode = launch.mode
        self._running: _Running | None = None
        self._stopped = False

    @property
    def native_id(self) -> str | None:
        return self._native_id

    @property
    def alive(self) -> bool:
        return not self._stopped

    async def send(self, text: str) -> None:
        if self._stopped:
            raise Conflict("the agent was stopped", hint="start it again")
        if self._running is not None:
            raise Conflict("the agent is in the middle of a turn", hint="wait for its end, or interrupt it")
        self._running = _Running(self._client, self._launch, self._host, self._mode)
        await self._running.begin(self._home, self._environ, text, self._native_id, self._used)

    async def events(self) -> AsyncGenerator[SessionEvent, None]:
        running = self._running
        if running is None:
            raise Conflict("the agent does nothing", hint="send it a message first")
        try:
            async with aclosing(running.events()) as events:
                async for event in events:
                    self._native_id = running.native_id
                    yield event
        finally:
            await running.end()
            self._used = running.total or self._used
            self._running = None

    async def set_mode(self, mode: Mode) -> None:
        self._mode = mode
        if self._running is not None:
            self._running.set_mode(mode)

    async def interrupt(self) -> None:
        if self._running is not None:
            self._running.interrupt()

    async def stop(self) -> None:
        self._stopped = True
        if self._running is not None:
            await self._running.stop()
        if self._launch.cwd is None:
            # What the agent has left there stays.
            with contextlib.suppress(OSError):
                os.rmdir(_own_path(self._home, self._launch.session))


class _Running:
    """A turn that is under way."""

    def __init__(self, client: Client, launch: Launch, host: Host, mode: Mode) -> None:
        self._client, self._launch, self._host = client, launch, host
        self._mode: Mode = mode
        self._began_in: Mode = mode
        self._mark = secrets.token_hex(16)
        self._folder: Path | None = None
        self._program: Program | None = None
        self._invocation = Invocation(words=())
        self._reader = Reader()
        self._failure: Failure | None = None
        self._ends_as: Reason | None = None
        self._notes: list[SessionEvent] = []
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def native_id(self) -> str | None:
        lost = self._failure is not None and self._failure.code == "lost"
        return None if lost else self._reader.tally.native_id

    @property
    def total(self) -> tuple[int, int] | None:
        return self._reader.tally.total

    async def begin(
        self,
        home: str,
        environ: Mapping[str, str],
        text: str,
        native_id: str | None,
        before: tuple[int, int] | None,
    ) -> None:
        """Start the program. What goes wrong is told by the events."""
        self._reader.tally.native_id = native_id
        try:
            folder = self._folder = await asyncio.to_thread(_new_folder, home, self._launch.session)
            cwd = self._launch.cwd or await asyncio.to_thread(_own_folder, home, self._launch.session)
            servers = all_servers(home, self._launch, self._mark, environ)
            scope_file = await asyncio.to_thread(write_scope_file, folder, self._launch)
            turn = Turn(
                launch=self._launch,
                mode=self._began_in,
                prompt=text,
                folder=folder,
                servers=servers,
                scope_file=scope_file,
                native_id=native_id,
                before=before,
            )
            self._reader = self._client.reader(turn)
            self._invocation = await asyncio.to_thread(self._client.invocation, turn)
            await self._start(turn, cwd, environ)
        except RookeryError as error:
            self._failure = Failure(f"{error.message} ({error.hint})" if error.hint else error.message, "not_started")
        except OSError as error:
            self._failure = Failure(f"{self._client.title} cannot be started: {_why(error)}", "not_started")
        finally:
            # Whoever stopped it meanwhile has not seen everything of it.
            if self._ends_as == "stopped":
                await self.end()

    async def _start(self, turn: Turn, cwd: str, environ: Mapping[str, str]) -> None:
        first, *rest = self._invocation.words
        program = shutil.which(first, path=environ.get("PATH"))
        if program is None:
            self._failure = Failure(f"There is no {first} on this machine: {self._client.install}", "missing")
            return
        if not os.path.isdir(cwd):
            self._failure = Failure(f"The folder {cwd} is not there.", "not_started")
            return
        if self._ends_as is not None:
            return
        self._program = Program(turn.folder, self._mark)
        env = environment(self._client, environ, self._launch.session, self._mark, turn.scope_file)
        env |= self._invocation.environment
        told = self._invocation.input
        await self._program.start([program, *rest], cwd, env, None if self._invocation.asks else told)
        if self._invocation.asks:
            self._spawn(self._program.tell(told))
        # While it was being started nobody could be told.
        if self._ends_as is not None:
            self._program.kill()
        elif self._mode != self._began_in:
            self.set_mode(self._mode)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def events(self) -> AsyncGenerator[SessionEvent, None]:
        """What happens, to the end of the turn, which is told once."""
        if self._program is not None:
            async with aclosing(self._read(self._program)) as events:
                async for event in events:
                    yield event
        for note in self._taken_notes():
            yield note
        failure, tally = self._verdict(), self._reader.tally
        if self._ends_as is not None:
            yield done(tally.outcome(self._ends_as), self._ends_as)
        elif failure is not None:
            self._failure = failure
            yield SessionEvent("error", {"message": failure.message, "code": failure.code})
            yield done(tally.outcome(failure.message), "failed")
        else:
            yield done(tally.outcome(), "completed")

    async def _read(self, program: Program) -> AsyncGenerator[SessionEvent, None]:
        tally, leaving = self._reader.tally, False
        async with aclosing(program.lines()) as lines:
            async for line in lines:
                for event in self._events_of(line):
                    yield event
                wanted, tally.wanted = tally.wanted, []
                for each in wanted:
                    self._spawn(self._answer(program, each))
                if tally.over and not leaving:
                    leaving = True
                    program.end_input()
                    self._spawn(self._kill_later(program, EXIT_S))
        await program.ended(EXIT_S)
        await program.end()

    def _events_of(self, line: Line) -> list[SessionEvent]:
        if line.cut:
            said = f"{self._client.title} printed a line of {line.size} bytes, which was left out: {line.text}"
            return [told(said)]
        return [*self._reader.read(line.text), *self._taken_notes()]

    async def _answer(self, program: Program, wanted: Wanted) -> None:
        """Ask whoever decides, and pass the answer on. That may take hours, and ends with the turn."""
        allowed = self._launch.allowed if self._mode != "ask" else ()
        await program.tell(await self._client.reply(wanted, self._host, allowed))

    def _verdict(self) -> Failure | None:
        """What is wrong with how the turn ended; None if nothing is."""
        title, tally, program = self._client.title, self._reader.tally, self._program
        if self._failure is not None or program is None:
            return self._failure
        if tally.error:
            return Failure(tally.error, tally.code) if tally.code else of_words(title, tally.error, tally.status)
        code = 0 if program.killed and tally.over else program.exit_code
        if code or (self._reader.ends_turns and not tally.over):
            return of_end(title, code, program.errors)
        return None

    def _taken_notes(self) -> list[SessionEvent]:
        notes, self._notes = self._notes, []
        return notes

    def set_mode(self, mode: Mode) -> None:
        """Programs that ask are told at the next tool. The others act as they were started."""
        self._mode = mode
        if self._invocation.asks or self._program is None:
            return
        title = self._client.title
        if stricter(self._began_in, mode) != self._began_in:
            self._notes.append(told(f"{title} cannot begin to act in mode {mode} within a turn, so the turn ends."))
            self.interrupt()
        else:
            self._notes.append(told(f"{title} acts in mode {mode} from its next turn on."))

    def interrupt(self) -> None:
        if self._ends_as is not None:
            return
        self._ends_as = "interrupted"
        if self._program is not None:
            self._program.interrupt()
            self._spawn(self._kill_later(self._program, INTERRUPT_S))

    async def _kill_later(self, program: Program, after_s: float) -> None:
        if not await program.ended(after_s):
            program.kill()

    async def stop(self) -> None:
        self._ends_as = "stopped"
        await self.end()

    async def end(self) -> None:
        """Nothing of the turn is left: no process, no file, nobody who waits."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._program is not None:
            await self._program.end()
        folder, self._folder = self._folder, None
        if folder is not None:
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)


def _new_folder(home: str, session: str) -> Path:
    """For the files of one turn. Not where temporary files are: some clients read no settings in places like that."""
    parent = Path(home) / "sessions"
    parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    return Path(tempfile.mkdtemp(prefix=f"{_safe(session)}.", dir=parent))


def _own_folder(home: str, session: str) -> str:
    """Where an agent works that was given no folder: always the same, since clients find their sessions by it."""
    folder = _own_path(home, session)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return str(folder)


def _own_path(home: str, session: str) -> Path:
    return Path(home) / "sessions" / _safe(session)


def _safe(session: str) -> str:
    return "".join(each if each.isascii() and (each.isalnum() or each in "-_") else "_" for each in session)[:100]


def _why(error: OSError) -> str:
    return short(f"{error.strerror}: {error.filename}" if error.filename else str(error))
