"""The copies of memory files on disk: each whole, for the server's user alone, and never written through a link."""

import contextlib
import hashlib
import logging
import os
import re
import secrets
import stat
import time
from collections.abc import Generator, Sequence
from typing import Any

import sqlalchemy as sa

from rookery.core.errors import ConfigurationError
from rookery.db.database import Database
from rookery.domains.memory.file_store import MemoryFiles, Shelf
from rookery.identity.store import DEFAULT_TENANT

ROOT = ("data", "memory")
TENANTS = "_tenants"
ROUNDS = 20
# Nobody takes so long over one file; what is older was left by a process that died.
ABANDONED_S = 600.0
_PLAIN_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_UNFINISHED = re.compile(r"\.[A-Za-z0-9_-]+\.md\.[0-9a-f]{16}\.tmp")
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# A FIFO without a writer would hold the reader forever.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
log = logging.getLogger("rookery.memory")


def folder_of(shelf: Shelf) -> str:
    """Where the copies of a shelf are, from the home folder on. No two shelves share a folder."""
    return "/".join(_parts(shelf))


def _parts(shelf: Shelf) -> tuple[str, ...]:
    own = (*ROOT, shelf.scope_slug, shelf.profile)
    return own if shelf.tenant == DEFAULT_TENANT else (*ROOT, TENANTS, _name_of(shelf.tenant), *own[len(ROOT) :])


def _name_of(tenant: str) -> str:
    """A folder's name for a tenant, whose own name can be anything that a token says."""
    if _PLAIN_NAME.fullmatch(tenant):
        return tenant
    return "_" + hashlib.sha256(tenant.encode()).hexdigest()[:32]


class Copies:
    """The copies below one home folder. Blocks; for threads. What cannot be written is a ConfigurationError."""

    def __init__(self, home: str) -> None:
        self._home = home

    def prepare(self, shelf: Shelf) -> None:
        """Make the folder of a shelf if need be, and refuse one that is no folder of ours."""
        with self._folder(shelf):
            pass

    def bring(self, shelf: Shelf, rows: Sequence[sa.Row[Any]]) -> int:
        """Write the copies that differ from their rows, and say how many.

        Whoever reads the rows again afterwards, and finds nothing left to write, knows that rows and copies agree,
        also if others wrote meanwhile: the last to put a copy in place has looked at the row after that.
        """
        with self._folder(shelf) as folder:
            differing = [row for row in rows if not _is(folder, row.filename, row.content)]
            for row in differing:
                put_in_place(folder, row.filename, row.content)
            return len(differing)

    def sweep(self, shelf: Shelf) -> None:
        """Take away what processes that died while writing have left."""
        with self._folder(shelf) as folder:
            for name in os.listdir(folder):
                with contextlib.suppress(FileNotFoundError):
                    if _UNFINISHED.fullmatch(name) and _age_s(folder, name) > ABANDONED_S:
                        os.unlink(name, dir_fd=folder)

    @contextlib.contextmanager
    def _folder(self, shelf: Shelf) -> Generator[int]:
        """The open folder of a shelf."""
        try:
            folder = _open_folder(self._home, _parts(shelf))
            try:
                yield folder
            finally:
                os.close(folder)
        except OSError as error:
            raise ConfigurationError(
                f"the memory folder {folder_of(shelf)} cannot be written: {error.strerror}",
                hint="in the server's home folder it must be a folder that the server owns, reached without links",
            ) from error


def repair_copies(database: Database, home: str) -> int:
    """Make every copy what its row says, and say how many were not. For the start of a server; it blocks.

    A folder that cannot be written is logged and left: the rows are what counts.
    """
    copies, mended = Copies(home), 0
    for shelf in database.direct(lambda tx: MemoryFiles(tx).shelves()):
        try:
            for _ in range(ROUNDS):
                written = copies.bring(shelf, database.direct(lambda tx, shelf=shelf: MemoryFiles(tx).of(shelf)))
                mended += written
                if not written:
                    break
            copies.sweep(shelf)
        except ConfigurationError as error:
            log.warning("memory files were not repaired: %s", error.message)
    return mended


def _open_folder(home: str, parts: Sequence[str]) -> int:
    # The home itself may be reached through links: whoever set it up chose them.
    folder = os.open(home, _FOLDER & ~os.O_NOFOLLOW)
    try:
        for part in parts:
            with contextlib.suppress(FileExistsError):
                os.mkdir(part, 0o700, dir_fd=folder)
            inner = os.open(part, _FOLDER, dir_fd=folder)
            os.close(folder)
            folder = inner
    except BaseException:
        os.close(folder)
        raise
    return folder


def _is(folder: int, name: str, content: bytes) -> bool:
    """Whether the copy is a plain file of ours with this content."""
    try:
        file = os.open(name, _FILE, dir_fd=folder)
    except OSError:
        return False
    with os.fdopen(file, "rb") as stream:
        found = os.fstat(file)
        if not stat.S_ISREG(found.st_mode) or stat.S_IMODE(found.st_mode) != 0o600 or found.st_size != len(content):
            return False
        return stream.read(len(content) + 1) == content


def put_in_place(folder: int, name: str, content: bytes) -> None:
    """Put the whole file in place at once; whoever reads meanwhile sees the old one."""
    unfinished = f".{name}.{secrets.token_hex(8)}.tmp"
    try:
        with os.fdopen(os.open(unfinished, _NEW, 0o600, dir_fd=folder), "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        os.rename(unfinished, name, src_dir_fd=folder, dst_dir_fd=folder)
        os.fsync(folder)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(unfinished, dir_fd=folder)
        raise


def _age_s(folder: int, name: str) -> float:
    return time.time() - os.stat(name, dir_fd=folder, follow_symlinks=False).st_mtime
