"""The mark by which a process of an agent's session is known, and where it is looked for.

Whatever the platform starts for an agent has the mark in its environment, and so has whatever that starts in turn.
A process can take the mark off itself, but not off those it comes from. One that leaves its family (a daemon) and
takes the mark off is not known any more: that takes another user or a container.
"""

import os
from collections.abc import Mapping

from rookery.relay import SESSION_MARK

MOST_ANCESTORS = 1_000
_MARK = os.fsencode(SESSION_MARK) + b"="


def marked(environment: Mapping[str, str], session: str) -> dict[str, str]:
    """The environment for a process that runs for this session."""
    return {**environment, SESSION_MARK: session}


def in_session(pid: int | None = None) -> bool:
    """Whether a process, this one if none is named, runs in a session: it or one that it comes from has the mark.

    Where the system does not show other processes, only our own environment counts.
    """
    if pid is None:
        if SESSION_MARK in os.environ:
            return True
        pid = os.getpid()
    for _ in range(MOST_ANCESTORS):
        if pid <= 0:
            return False
        if any(part.startswith(_MARK) for part in _read(f"/proc/{pid}/environ").split(b"\0")):
            return True
        pid = _parent(pid)
    # No person sits that deep; somebody hides.
    return True


def visible(pid: int) -> bool:
    """Whether the process is there and can be looked at; True where the system shows none at all."""
    return os.path.exists(f"/proc/{pid}/stat") if os.path.exists("/proc/self/stat") else True


def _parent(pid: int) -> int:
    """The process that it comes from; 0 if none is known."""
    # The name, which may contain anything, stands in brackets.
    fields = _read(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    return int(fields[1]) if len(fields) > 1 else 0


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""
