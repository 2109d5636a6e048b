"""Starts the processes that take files apart, hands them files, and lets them go when nobody needs them."""

import asyncio
import contextlib
import marshal
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import rookery
from rookery.core.errors import ServiceUnavailable
from rookery.domains.code.reading import Answer
from rookery.domains.code.worker import receive, send

MODULE = "rookery.domains.code.worker"
ANSWER_LIMIT_S = 60.0
IDLE_S = 300.0
"""How long a process waits for more. A start takes longer than a changed file."""
SYSTEM_PATHS = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
"""Without these Python itself may not start."""
LAST_WORDS = 300
Wanted = Sequence[tuple[str, str]]
"""Paths, each with the hash that is known of it, or nothing."""


class WorkerLost(Exception):
    """The process ended, or said nothing for too long. `why`: the last that it said."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


class Worker:
    """One process. For one thread at a time."""

    def __init__(self) -> None:
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as the process
        # It has no need for what this process may know: of the environment it gets where our code is. A session of
        # its own keeps the signals of a terminal away, which would look as if a file had brought it down.
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-m", MODULE],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._said,
                cwd="/",
                env={"PYTHONPATH": os.pathsep.join(_places()), **_system_paths()},
                start_new_session=True,
            )
        except OSError:
            self._said.close()
            raise

    def read(self, root: str, wanted: Wanted) -> Answer:
        """What the files say; those that are gone are left out. Raises WorkerLost."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        late = threading.Timer(ANSWER_LIMIT_S, self._process.kill)
        late.daemon = True
        late.start()
        try:
            send(self._process.stdin, marshal.dumps((root, list(wanted))))
            body = receive(self._process.stdout)
            answer = None if body is None else marshal.loads(body)
        except (OSError, ValueError, EOFError, TypeError):
            answer = None
        finally:
            late.cancel()
        if answer is None:
            raise WorkerLost(self._ended())
        return answer

    def _ended(self) -> str:
        """End it, and tell what it said last, or how it ended."""
        last = ""
        # Somebody else may have ended it.
        with contextlib.suppress(OSError, ValueError), self._said as said:
            said.seek(max(0, said.seek(0, os.SEEK_END) - LAST_WORDS))
            last = said.read().decode(errors="replace").strip().rpartition("\n")[2]
        self.end()
        return last or f"it ended with {self._process.returncode}"

    def end(self) -> None:
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._said):
            if stream is not None:
                _close(stream)


class Workers:
    """Processes that are kept for a while. Safe from any thread."""

    def __init__(self) -> None:
        self._idle: list[Worker] = []
        self._lock = threading.Lock()
        self._closed = False
        self._timer: threading.Timer | None = None

    def take(self) -> Worker:
        """One that is idle, or a new one."""
        with self._lock:
            if self._idle:
                return self._idle.pop()
        return Worker()

    def proven(self, root: str) -> Worker:
        """A new one that has answered already, so that what it is handed next is to blame for its end. Raises
        ServiceUnavailable if none can run here."""
        worker = Worker()
        try:
            worker.read(root, [])
        except WorkerLost as lost:
            raise ServiceUnavailable(
                f"no process that parses code can run: {lost.why}",
                hint="the owner looks at memory, and installs 'rookery[code]' again",
            ) from None
        return worker

    async def begun(self, start: Callable[[], Worker]) -> Worker:
        """What `start` returns in a thread. Where the caller is cancelled meanwhile, it is kept for the next."""
        lock = threading.Lock()
        started: list[Worker] = []
        waits = True

        def begin() -> None:
            worker = start()
            with lock:
                started.append(worker)
                if waits:
                    return
            self.give_back(worker)

        try:
            await asyncio.to_thread(begin)
        except asyncio.CancelledError:
            with lock:
                waits = False
                left = list(started)
            for worker in left:
                self.give_back(worker)
            raise
        return started[0]

    def warm(self, count: int) -> None:
        """Start as many as it takes for so many to be idle; they get ready by themselves. Those that cannot be started
        are missed by whoever takes one."""
        with self._lock:
            missing = 0 if self._closed else count - len(self._idle)
        with contextlib.suppress(OSError):
            for _ in range(missing):
                self.give_back(Worker())

    def give_back(self, worker: Worker) -> None:
        with self._lock:
            closed = self._closed
            if not closed:
                self._idle.append(worker)
                self._wind()
        if closed:
            worker.end()

    def _wind(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = threading.Timer(IDLE_S, self._end_idle)
        self._timer.daemon = True
        self._timer.start()

    def _end_idle(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for each in idle:
            each.end()

    def close(self) -> None:
        with self._lock:
            self._closed = True
            timer = self._timer
        if timer is not None:
            timer.cancel()
        self._end_idle()


def _places() -> list[str]:
    """Where our code is, and whatever else was put into the path of this process by hand."""
    own = str(Path(rookery.__file__).resolve().parents[1])
    return [own, *(each for each in os.environ.get("PYTHONPATH", "").split(os.pathsep) if os.path.isabs(each))]


def _system_paths() -> dict[str, str]:
    return {name: value for name in SYSTEM_PATHS if (value := os.environ.get(name))}


def _close(stream: Any) -> None:
    try:
        stream.close()
    except OSError:
        return
