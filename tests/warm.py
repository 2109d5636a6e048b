"""Processes under test that are real in everything but the loading of the product's modules (see warm_start.py)."""

import atexit
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from subprocess import DEVNULL, PIPE
from typing import IO, Any

import rookery
from tests.warm_start import LENGTH

ROOT = Path(__file__).parents[1]
SOURCE = Path(rookery.__file__).parents[1]
START_LIMIT_S = 60.0
STDERR = 2


def start(
    command: Sequence[str],
    *,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    stdin: int | IO[Any] = DEVNULL,
    stdout: int | IO[Any] = DEVNULL,
    stderr: int | IO[Any] = STDERR,
    text: bool = False,
) -> "Started":
    """A process for `[sys.executable, "-m" or "-c", …]`, warm where the system can do that. No pipe is buffered."""
    env, cwd = {**os.environ} if env is None else dict(env), cwd or Path.cwd()
    files: dict[str, Any] = {"stdin": stdin, "stdout": stdout, "stderr": stderr, "text": text}
    if hasattr(os, "pidfd_open"):
        return WarmProcess(command, env, cwd, **files)
    return subprocess.Popen(command, env=env, cwd=cwd, bufsize=1 if text else 0, **files)


def run(command: Sequence[str], *, env: Mapping[str, str], limit_s: float) -> subprocess.CompletedProcess[str]:
    """What such a process printed and how it ended."""
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        process = start(command, env=env, stdout=output, stderr=errors)
        try:
            code = process.wait(limit_s)
        finally:
            process.kill()
            process.wait()
        for file in (output, errors):
            file.seek(0)
        return subprocess.CompletedProcess(list(command), code, output.read(), errors.read())


class WarmProcess:
    """As much of `subprocess.Popen` as tests use."""

    def __init__(
        self,
        command: Sequence[str],
        env: Mapping[str, str],
        cwd: Path,
        *,
        stdin: int | IO[Any],
        stdout: int | IO[Any],
        stderr: int | IO[Any],
        text: bool,
    ) -> None:
        assert command[0] == sys.executable
        assert command[1] in ("-m", "-c")
        self.args = list(command)
        self.returncode: int | None = None
        self._lock = threading.Lock()
        theirs: list[int] = []
        self.stdin = _pipe(stdin, theirs, "w", text)
        self.stdout = _pipe(stdout, theirs, "r", text)
        self.stderr = _pipe(stderr, theirs, "r", text)
        ended, told = os.pipe()
        theirs.append(told)
        self._ended: IO[bytes] = open(ended, "rb", buffering=0)  # noqa: SIM115
        try:
            self.pid = _starter().start({"command": self.args[1:], "env": env, "cwd": str(cwd)}, theirs)
        finally:
            for file in theirs:
                os.close(file)

    def poll(self) -> int | None:
        return self._look(0)

    def wait(self, timeout: float | None = None) -> int:
        code = self._look(timeout)
        if code is None:
            raise subprocess.TimeoutExpired(self.args, timeout or 0)
        return code

    def communicate(self, timeout: float | None = None) -> tuple[Any, Any]:
        """Close its input, and take what it prints until it ends."""
        if self.stdin is not None:
            self.stdin.close()
        said = [None if pipe is None or pipe.closed else pipe.read() for pipe in (self.stdout, self.stderr)]
        for pipe in (self.stdout, self.stderr):
            if pipe is not None:
                pipe.close()
        self.wait(timeout)
        return said[0], said[1]

    def _look(self, timeout: float | None) -> int | None:
        if self.returncode is not None:
            return self.returncode
        # Not select: a long run has more open files than that takes.
        looking = select.poll()
        looking.register(self._ended)
        if looking.poll(None if timeout is None else timeout * 1000):
            with self._lock:
                if self.returncode is None:
                    # Empty if the process that made it was killed, which no test does.
                    self.returncode = int(self._ended.read())
                    self._ended.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def _pipe(given: int | IO[Any], theirs: list[int], mode: str, text: bool) -> IO[Any] | None:
    """Our end of a pipe if one is wanted; the process's own file goes into `theirs`."""
    if given == DEVNULL:
        theirs.append(os.open(os.devnull, os.O_RDWR))
    elif given == PIPE:
        reading, writing = os.pipe()
        own, other = (writing, reading) if mode == "w" else (reading, writing)
        theirs.append(other)
        return open(own, mode, encoding="utf-8", buffering=1) if text else open(own, f"{mode}b", buffering=0)
    else:
        theirs.append(os.dup(given if isinstance(given, int) else given.fileno()))
    return None


class _Starter:
    """Our side of the process that has the modules."""

    def __init__(self) -> None:
        self._door, other = socket.socketpair()
        self._door.settimeout(START_LIMIT_S)
        self._lock = threading.Lock()
        command = [sys.executable, "-m", "tests.warm_start", str(other.fileno())]
        env = {**os.environ, "PYTHONPATH": str(SOURCE)}
        self._process = subprocess.Popen(command, cwd=ROOT, env=env, stdin=DEVNULL, pass_fds=[other.fileno()])
        other.close()
        self._number()
        atexit.register(self.stop)

    def stop(self) -> None:
        """It ends when its socket closes, which it does however this process ends."""
        self._door.close()
        self._process.wait(START_LIMIT_S)

    def start(self, order: dict[str, Any], files: list[int]) -> int:
        body = json.dumps(order).encode()
        with self._lock:
            socket.send_fds(self._door, [LENGTH.pack(len(body))], files)
            self._door.sendall(body)
            return self._number()

    def _number(self) -> int:
        answer = b""
        while len(answer) < LENGTH.size:
            part = self._door.recv(LENGTH.size - len(answer))
            assert part, "the process that starts others has ended"
            answer += part
        return LENGTH.unpack(answer)[0]


@cache
def _starter() -> _Starter:
    return _Starter()


Started = WarmProcess | subprocess.Popen[Any]
