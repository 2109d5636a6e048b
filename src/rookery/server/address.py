"""Where the server of a home listens, for programs that were not told: its port may come from its environment alone."""

import contextlib
import os
import socket
from collections.abc import Generator

from rookery.relay import socket_path

PATIENCE_S = 2.0


@contextlib.contextmanager
def published_port(home: str, port: int) -> Generator[None]:
    """Let other programs of this user find the port while the block runs."""
    path = _path(home)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="ascii") as file:
        file.write(str(port))
    try:
        yield
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)


def running_port(home: str) -> int | None:
    """The port of the server that runs on this home; None if none does, or if it does not say."""
    try:
        with open(_path(home), encoding="ascii") as file:
            text = file.read(6)
    except (OSError, ValueError):
        return None
    # A server that was killed leaves the file behind.
    return int(text) if text.isdigit() and is_live(socket_path(home)) else None


def is_live(path: str) -> bool:
    """Whether somebody listens on this unix socket."""
    with socket.socket(socket.AF_UNIX) as caller:
        caller.settimeout(PATIENCE_S)
        try:
            caller.connect(path)
        except OSError:
            return False
        return True


def _path(home: str) -> str:
    return os.path.join(home, "port")
