"""Ends what a command has left behind outside its process group: daemons, and whatever began a session of its own."""

import contextlib
import os
import signal
import time

# Not among the names of our settings, which a command that is Rookery itself would read.
RUN_MARK = "RUN_OF_ROOKERY"
LIMIT_S = 2.0
_PAUSE_S = 0.01


def end_marked(mark: str) -> None:
    """Kill every process whose RUN_MARK is this one, until none is left or two seconds are over. Blocks.

    A process that is not shown to us, or that began with the mark taken off, is not found; where the system has no
    /proc, none is.
    """
    wanted = os.fsencode(f"{RUN_MARK}={mark}")
    deadline = time.monotonic() + LIMIT_S
    # One that was about to start another has done so meanwhile, hence once more.
    while (found := _marked(wanted)) and time.monotonic() < deadline:
        for pid in found:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(_PAUSE_S)


def _marked(wanted: bytes) -> list[int]:
    try:
        names = os.listdir("/proc")
    except OSError:
        return []
    pids = (int(name) for name in names if name.isdecimal())
    return [pid for pid in pids if wanted in _environment(pid)]


def _environment(pid: int) -> list[bytes]:
    """What the process began with. Nothing for one that has ended, or that is not ours."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return file.read().split(b"\0")
    except OSError:
        return []
