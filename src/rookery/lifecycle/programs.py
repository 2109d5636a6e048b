"""Running the owner's commands in a folder, with a time limit, until nothing of them is left."""

import asyncio
import contextlib
import os
import secrets
import signal
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rookery.files.pipes import read_pipe
from rookery.lifecycle.leftovers import RUN_MARK, end_marked
from rookery.lifecycle.session_mark import marked

OUTPUT_CHARACTERS = 2000
_DRAIN_S = 2.0
_PIECE = 65_536
# What stands before a command: a companion that ends the whole group when the worker is no more, however it ended. The
# worker holds the other end of the standard input, and writes nothing.
_LEASH = 'exec 3<&0 </dev/null; { read -r _ <&3; kill -s KILL 0; } >/dev/null 2>&1 & exec 3<&-; exec "$@"'
_KEPT = ("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR")
_KEYS = "SSH_AUTH_SOCK"


@dataclass(frozen=True, slots=True)
class Ran:
    """How a program ended. `output` is the end of what it printed, errors included.

    `exit_code` is None if it could not be started or was stopped, and negative if a signal ended it.
    """

    ok: bool
    output: str
    exit_code: int | None = None


def environment() -> dict[str, str]:
    """What commands see of ours. What an agent wrote may be run by them: no secret of ours is in it, nor the way to the
    owner's keys, but the mark of a session, which no person's door takes."""
    kept = {name: value for name, value in os.environ.items() if name in _KEPT or name.startswith(("LC_", "XDG_"))}
    return marked({**kept, "CI": "1", "GIT_TERMINAL_PROMPT": "0"}, "work")


async def run_command(command: str, folder: str, limit_s: float, keep: int = OUTPUT_CHARACTERS) -> Ran:
    """The same for a command line of the shell, which cannot use the owner's ssh keys: it may run what agents wrote."""
    return await _run(("sh", "-c", command), folder, limit_s, keep, {})


async def run_program(words: Sequence[str], folder: str, limit_s: float, keep: int = OUTPUT_CHARACTERS) -> Ran:
    """Run a program in `folder`. When this returns or is cancelled, or we are killed, its process group is gone.

    So is what left the group, unless it took the mark of the run off or we are killed. Of what it prints, the last
    `keep` characters are kept. It can use the owner's ssh keys.
    """
    keys = {_KEYS: os.environ[_KEYS]} if _KEYS in os.environ else {}
    return await _run(words, folder, limit_s, keep, keys)


async def _run(words: Sequence[str], folder: str, limit_s: float, keep: int, more: Mapping[str, str]) -> Ran:
    # No two runs have the same: by it is known what a run has left behind.
    mark = secrets.token_hex(16)
    # A pipe of our own, since asyncio takes a process for running while anybody holds one of its pipes open.
    ours, theirs = os.pipe()
    leash, hand = os.pipe()
    tail = Tail(keep)
    reading = asyncio.create_task(tail.read(ours))
    try:
        process = await asyncio.create_subprocess_exec(
            *("sh", "-c", _LEASH, "sh", *words),
            cwd=folder,
            env={**environment(), **more, RUN_MARK: mark},
            stdin=leash,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
    except BaseException as error:
        os.close(hand)
        if not isinstance(error, OSError):
            raise
        return Ran(False, f"{words[0]} cannot be started: {error.strerror}")
    finally:
        os.close(theirs)
        os.close(leash)
    late = False
    try:
        async with asyncio.timeout(limit_s):
            await process.wait()
    except TimeoutError:
        late = True
    finally:
        kill_group(process.pid)
        os.close(hand)
        await process.wait()
        await asyncio.to_thread(end_marked, mark)
        # What is not ours to end may hold the pipe open for as long as it likes.
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(reading, _DRAIN_S)
    if late:
        return Ran(False, f"{tail.text}\nstopped after {limit_s:g} s".strip())
    return Ran(process.returncode == 0, tail.text or f"exit code {process.returncode}", process.returncode)


def kill_group(group: int) -> None:
    """End every process of the group; nothing if there is none."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


class Tail:
    """The end of a stream, however much comes."""

    def __init__(self, keep: int) -> None:
        self._keep_characters = keep
        self._pieces: deque[bytes] = deque()
        self._size = 0

    async def read(self, end: int) -> None:
        """Read the pipe to its end, and close it."""
        async with read_pipe(end) as stream:
            while piece := await stream.read(_PIECE):
                self._keep(piece)

    def _keep(self, piece: bytes) -> None:
        self._pieces.append(piece)
        self._size += len(piece)
        while self._size - len(self._pieces[0]) >= self._keep_characters * 4:
            self._size -= len(self._pieces.popleft())

    @property
    def text(self) -> str:
        whole = b"".join(self._pieces).decode(errors="replace").replace("\0", "")
        return whole.strip()[-self._keep_characters :]
