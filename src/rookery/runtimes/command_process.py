"""A client program at work: what it prints, what it is told, and that nothing of it is left when it is over."""

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncGenerator, Mapping, Sequence
from pathlib import Path

from rookery.files.pipes import read_pipe
from rookery.lifecycle.leftovers import RUN_MARK, end_marked
from rookery.lifecycle.programs import Tail, kill_group
from rookery.runtimes.command_lines import Line, Lines

INPUT = "input"
KEPT_ERRORS = 4000
PIECE = 65_536
DRAIN_S = 2.0
# A companion that ends everything of the program when we are no more, however we ended: it holds the other end of our
# leash as its standard input, which it reads to the end. It does not carry the mark that it looks for. The program's
# own input is opened after it, so that it is there even if that never comes.
_COMPANION = (
    'read -r _; rm -rf -- "$1"; '
    'for _ in 1 2; do kill -s KILL $(grep -lsz "^$0\\$" /proc/[0-9]*/environ | cut -d/ -f3); done; kill -s KILL 0'
)
_LEASH = (
    f'exec 3<&0 </dev/null; env -u {RUN_MARK} sh -c "$1" "$2" "$3" <&3 >/dev/null 2>&1 & '
    'exec 3<&-; input=$4; shift 4; exec "$@" <"$input"'
)


class Program:
    """Runs in a process group of its own. `folder` is the turn's; it goes with the program if we are killed."""

    def __init__(self, folder: Path, mark: str) -> None:
        self._folder = folder
        self._mark = mark
        self._process: asyncio.subprocess.Process | None = None
        self._input = _Input(folder / INPUT)
        self._errors = Tail(KEPT_ERRORS)
        self._listening: asyncio.Task[None] | None = None
        self._cleared: asyncio.Task[None] | None = None
        """Done when it has ended, and with it everything that it started."""
        self._output: int | None = None
        self._hand: int | None = None
        self._ending = asyncio.Lock()
        self.killed = False
        """Whether it was we who ended it."""

    @property
    def exit_code(self) -> int | None:
        """None while it runs; negative if a signal ended it."""
        return None if self._process is None else self._process.returncode

    @property
    def errors(self) -> str:
        """The end of what it wrote to standard error."""
        return self._errors.text

    async def start(self, words: Sequence[str], cwd: str, env: Mapping[str, str], told: bytes | None) -> None:
        """Start it, or raise OSError. What was started is ended by `end`.

        `told` is all that it can read from its standard input; if that is None, `tell` says more and more.
        """
        self._input.open(told)
        # Pipes of our own, since asyncio takes a process for running while anybody holds one of its pipes open.
        self._output, out = os.pipe()
        errors, err = os.pipe()
        leash, self._hand = os.pipe()
        self._listening = asyncio.create_task(self._errors.read(errors))
        head = (_COMPANION, f"{RUN_MARK}={self._mark}", str(self._folder), str(self._folder / INPUT))
        try:
            self._process = await asyncio.create_subprocess_exec(
                *("sh", "-c", _LEASH, "sh", *head, *words),
                cwd=cwd,
                env=dict(env),
                stdin=leash,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )
        finally:
            for each in (leash, out, err):
                os.close(each)
        self._cleared = asyncio.create_task(self._clear_up(self._process))

    async def _clear_up(self, process: asyncio.subprocess.Process) -> None:
        await process.wait()
        # What it leaves behind could hold its output open for as long as it likes.
        kill_group(process.pid)
        await asyncio.to_thread(end_marked, self._mark)

    async def lines(self) -> AsyncGenerator[Line, None]:
        """What it prints, until it has ended. Whoever does not take them lets it wait."""
        assert self._output is not None
        found, output, self._output = Lines(), self._output, None
        async with read_pipe(output, PIECE) as stream:
            while chunk := await self._piece(stream):
                for line in found.feed(chunk):
                    yield line
            for line in found.rest():
                yield line

    async def _piece(self, stream: asyncio.StreamReader) -> bytes:
        """More of its output; nothing at its end, or some time after everything of it has ended."""
        assert self._cleared is not None
        piece = asyncio.ensure_future(stream.read(PIECE))
        try:
            await asyncio.wait([piece, self._cleared], return_when=asyncio.FIRST_COMPLETED)
            await asyncio.wait([piece], timeout=DRAIN_S)
            return piece.result() if piece.done() else b""
        finally:
            piece.cancel()

    async def tell(self, data: bytes) -> None:
        """Write to its standard input. Of what it does not take until it ends, nothing is said."""
        await self._input.write(data)

    def end_input(self) -> None:
        self._input.close()

    def interrupt(self) -> None:
        """What Ctrl-C does."""
        if self._process is not None and self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(signal.SIGINT)

    def kill(self) -> None:
        """End it at once; `end` does the rest."""
        if self._process is not None and self._process.returncode is None:
            self.killed = True
            kill_group(self._process.pid)

    async def ended(self, within_s: float) -> bool:
        """Whether it ends by itself within this time."""
        if self._cleared is not None:
            await asyncio.wait([self._cleared], timeout=within_s)
        return self.exit_code is not None

    async def end(self) -> None:
        """When this returns, nothing of it is left that did not take its mark off. Also if the caller is cancelled."""
        await asyncio.shield(self._end())

    async def _end(self) -> None:
        async with self._ending:
            self.kill()
            self._input.close()
            if self._process is not None:
                await self._process.wait()
            hand, self._hand = self._hand, None
            if hand is not None:
                os.close(hand)
            tasks = [task for task in (self._cleared, self._listening) if task is not None]
            if tasks:
                await asyncio.wait(tasks, timeout=DRAIN_S)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            if self._output is not None:
                os.close(self._output)
                self._output = None


class _Input:
    """What a program reads: a file, or a named pipe.

    Of the pipe we hold both ends, so that it can be written to before it is read; it ends when we close it.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._end: int | None = None
        self._turn = asyncio.Lock()

    def open(self, told: bytes | None) -> None:
        if told is not None:
            with open(os.open(self._path, os.O_CREAT | os.O_WRONLY | os.O_EXCL, 0o600), "wb") as file:
                file.write(told)
            return
        os.mkfifo(self._path, 0o600)
        self._end = os.open(self._path, os.O_RDWR | os.O_NONBLOCK)

    async def write(self, data: bytes) -> None:
        view = memoryview(data)
        async with self._turn:
            while view and self._end is not None:
                try:
                    view = view[os.write(self._end, view[:PIECE]) :]
                except BlockingIOError:
                    await self._writable(self._end)

    async def _writable(self, end: int) -> None:
        loop, ready = asyncio.get_running_loop(), asyncio.Event()
        loop.add_writer(end, ready.set)
        try:
            await ready.wait()
        finally:
            # A number that was closed may be somebody else's by now.
            if self._end == end:
                loop.remove_writer(end)

    def close(self) -> None:
        end, self._end = self._end, None
        if end is not None:
            asyncio.get_running_loop().remove_writer(end)
            os.close(end)
