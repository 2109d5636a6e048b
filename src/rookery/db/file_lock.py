"""Who may write to an SQLite file: one at a time, and whoever dies makes room."""

import contextlib
import fcntl
from typing import TextIO


class FileLock:
    """The advisory lock beside the database file. Closing it, or dying, gives it back. Opened when first taken."""

    def __init__(self, path: str) -> None:
        self._path = f"{path}.lock"
        self._file: TextIO | None = None

    def _open(self) -> TextIO:
        if self._file is None:
            self._file = open(self._path, "a", encoding="utf-8")  # noqa: SIM115 - lives as long as its writer
        return self._file

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()

    def acquire(self) -> None:
        """Wait for the lock."""
        fcntl.flock(self._open(), fcntl.LOCK_EX)

    def try_acquire(self) -> bool:
        """Take the lock if nobody has it."""
        try:
            fcntl.flock(self._open(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def release(self) -> None:
        # Whoever replaces a lost writer has closed the file, which gave the lock back already.
        with contextlib.suppress(ValueError):
            fcntl.flock(self._open(), fcntl.LOCK_UN)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
