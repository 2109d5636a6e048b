"""Configuration files on disk: read, and replaced whole or not at all."""

import contextlib
import fcntl
import os
from collections.abc import Sequence
from errno import EACCES
from pathlib import Path

from rookery.cli.connect.clients import Client
from rookery.cli.connect.plans import Plan, plan
from rookery.cli.connect.servers import Launch, Remote, UnusableError

ATTEMPTS = 20


def connect_files(client: Client, server: Launch | Remote, files: Sequence[Path], fresh_mode: int) -> Plan:
    """Carry out the plan for these files, which share a folder, and return it.

    Runs beside each other wait; a file that something else changes meanwhile is read again. A file is
    replaced whole or not at all and keeps its mode; a link keeps pointing where it did.
    """
    files[0].parent.mkdir(parents=True, exist_ok=True)
    folder = os.open(files[0].parent, os.O_RDONLY)
    try:
        # Some network file systems cannot lock a folder; replace still looks before it writes.
        with contextlib.suppress(OSError):
            fcntl.flock(folder, fcntl.LOCK_EX)
        for _ in range(ATTEMPTS):
            found = {path: read(path) for path in files}
            planned = plan(client, server, found)
            settled = planned.happens in ("unchanged", "conflict")
            if settled or replace(planned, found[planned.path], fresh_mode):
                return planned
    finally:
        os.close(folder)
    raise UnusableError(f"{files[0]} keeps being changed by something else")


def read(path: Path) -> str | None:
    """The text of a file, None if it is not there."""
    try:
        return path.read_bytes().decode()
    except FileNotFoundError:
        return None
    except UnicodeDecodeError as error:
        raise UnusableError(f"{path} is not UTF-8 text (byte {error.start})") from None


def replace(planned: Plan, before: str | None, fresh_mode: int) -> bool:
    """Write the planned text, unless the file no longer says what it said before: then False."""
    target = Path(os.path.realpath(planned.path))
    target.parent.mkdir(parents=True, exist_ok=True)
    if before is not None and not os.access(target, os.W_OK):
        raise PermissionError(EACCES, "it is read-only", str(target))
    draft = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, fresh_mode), "wb") as stream:
            stream.write(planned.text.encode())
            stream.flush()
            if before is not None:
                status = target.stat()
                with contextlib.suppress(PermissionError):
                    os.fchown(stream.fileno(), status.st_uid, status.st_gid)
                os.fchmod(stream.fileno(), status.st_mode & 0o7777)
            os.fsync(stream.fileno())
        if read(planned.path) != before:
            return False
        os.replace(draft, target)
        return True
    finally:
        draft.unlink(missing_ok=True)
