"""What is remembered in a repository of the workspaces that were made from it, so that a crash leaves no question open.

The notes are beside git's own files, which is where a branch and its worktree are. The database knows what was handed
out; these know what was begun.
"""

import asyncio
import fcntl
import json
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from typing import Any, cast

from rookery.core.errors import ServiceUnavailable
from rookery.engine.workspace_names import digest, is_ours
from rookery.files.git import Repository, is_hash, small_text

FOLDER = "rookery"
WAIT_S = 60.0
_LOOK_AGAIN_S = 0.05


@dataclass(frozen=True, slots=True)
class Record:
    """The branch that is an issue's own, where it began, and its folder. `used`: an agent may have worked there."""

    issue_id: str
    branch: str
    base: str
    path: str = ""
    used: bool = False


def read_record(repository: Repository, issue_id: str) -> Record | None:
    """What is remembered of an issue; None if that is nothing that we wrote."""
    try:
        found: Any = json.loads(small_text(_file(repository, issue_id)))
        record = Record(**found)
    except (ValueError, TypeError, RecursionError):
        return None
    values = cast(dict[str, Any], found)
    if not all(isinstance(value, bool if name == "used" else str) for name, value in values.items()):
        return None
    ours = is_ours(record.branch) and is_hash(record.base)
    here = not record.path or (os.path.isabs(record.path) and record.path.endswith(f"-{digest(issue_id)}"))
    return record if record.issue_id == issue_id and ours and here else None


def write_record(repository: Repository, record: Record) -> None:
    """Remember it, in place of what was there, at once."""
    path = _file(repository, record.issue_id)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    # Only whoever holds the lock writes it. A link that an agent put there would lead to a file of its choice.
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    with open(os.open(f"{path}.new", flags, 0o600), "w", encoding="utf-8") as file:
        json.dump(asdict(record), file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(f"{path}.new", path)


def forget_record(repository: Repository, issue_id: str) -> None:
    if os.path.lexists(_file(repository, issue_id)):
        os.unlink(_file(repository, issue_id))


@asynccontextmanager
async def held(repository: Repository, about: str) -> AsyncGenerator[int]:
    """Nobody else on this machine makes or removes the same meanwhile. The open file is the lock, also for programs
    that inherit it."""
    lock = _open_lock(os.path.join(repository.common_dir, FOLDER, "locks"), about)
    try:
        await _take(lock, repository)
        yield lock
    finally:
        os.close(lock)


def _open_lock(folder: str, about: str) -> int:
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        os.makedirs(folder, exist_ok=True)
        # Few files for any number of issues: two that share one wait for each other.
        return os.open(os.path.join(folder, digest(about)[:2]), flags, 0o600)
    except OSError as error:
        raise ServiceUnavailable(
            f"nothing can be written to {folder}: {error.strerror}", hint="look at the room and the rights there"
        ) from None


async def _take(lock: int, repository: Repository) -> None:
    loop = asyncio.get_running_loop()
    until = loop.time() + WAIT_S
    while True:
        try:
            return fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if loop.time() >= until:
                raise ServiceUnavailable(
                    f"somebody else makes or removes a workspace of {repository.folder}", hint="it is tried again"
                ) from None
        await asyncio.sleep(_LOOK_AGAIN_S)


def _file(repository: Repository, issue_id: str) -> str:
    return os.path.join(repository.common_dir, FOLDER, f"{digest(issue_id)}.json")
