"""The lock of a home folder: whoever has it is the only server there, or keeps servers out."""

import contextlib
import fcntl
import os
from collections.abc import Generator

from rookery.core.errors import Conflict


@contextlib.contextmanager
def server_lock(home: str, *, hint: str) -> Generator[None]:
    """Hold the lock during the block; refused with `hint` while a server runs on the home."""
    with open(os.path.join(home, "server.lock"), "a+", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            holder = lock.read().strip() or "unknown"
            raise Conflict(f"a server is already running on {home} (process {holder})", hint=hint) from None
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        yield
