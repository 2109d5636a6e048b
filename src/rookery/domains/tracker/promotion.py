"""Copies an approved artifact into the project's documentation. Reads and writes files; blocks."""

import contextlib
import os
import secrets

from rookery.core.errors import ValidationFailed
from rookery.domains.tracker.artifact import promotion_target

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def promote(root: str | None, target: str, content: str) -> str:
    """Write `content` to `target` inside the project and say so; or say why not.

    The same text again changes nothing. A file with another text stays: what people wrote there is theirs.
    """
    if root is None or not os.path.isdir(root):
        return f"The artifact was not copied to {target}: the project has no folder on this machine."
    try:
        *folders, name = promotion_target(root, target).split("/")
        return _write(root, folders, name, content.encode(), target)
    except ValidationFailed as error:
        return f"The artifact was not copied to {target}: {error.message}."
    except OSError as error:
        return f"The artifact was not copied to {target}: {error.strerror}."


def _write(root: str, folders: list[str], name: str, content: bytes, target: str) -> str:
    folder = os.open(os.path.realpath(root), _FOLDER)
    try:
        for part in folders:
            inner = _enter(folder, part)
            os.close(folder)
            folder = inner
        there = _read(folder, name)
        if there is not None and there != content:
            return f"The artifact was not copied to {target}: a file with another text is there."
        if there is None:
            _put(folder, name, content)
        return f"The artifact was copied to {target}."
    finally:
        os.close(folder)


def _enter(folder: int, part: str) -> int:
    with contextlib.suppress(FileExistsError):
        os.mkdir(part, dir_fd=folder)
    return os.open(part, _FOLDER, dir_fd=folder)


def _read(folder: int, name: str) -> bytes | None:
    try:
        file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    except FileNotFoundError:
        return None
    with open(file, "rb") as stream:
        return stream.read()


def _put(folder: int, name: str, content: bytes) -> None:
    temporary = f".{name}.{secrets.token_hex(8)}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with open(os.open(temporary, flags, 0o644, dir_fd=folder), "wb") as stream:
            stream.write(content)
        os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(temporary, dir_fd=folder)
        raise
