"""Reads files of a tree that agents write to. Nothing is followed out of it, whoever moves links meanwhile."""

import os
import stat
from collections.abc import Sequence
from pathlib import Path

from rookery.core.errors import RookeryError, ValidationFailed

MAX_PATH = 1000
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
# A FIFO without a writer would hold the reader forever, and a terminal must not become ours.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


def path_parts(text: str, what: str) -> tuple[str, ...]:
    """The components of a relative path. Refuses what is absolute, leads upwards, or is not a plain path."""
    hint = "give a path relative to the project's root, with / between the folders and without .."
    if not text or len(text) > MAX_PATH:
        raise ValidationFailed(f"{what} must have 1 to {MAX_PATH} characters", hint=hint)
    if "\\" in text or not text.isprintable():
        raise ValidationFailed(f"{what} has a backslash or a character that cannot be printed", hint=hint)
    if text.startswith(("/", "~")):
        raise ValidationFailed(f"{what} {text} is not relative", hint=hint)
    parts = tuple(part for part in text.split("/") if part not in ("", "."))
    if ".." in parts:
        raise ValidationFailed(f"{what} {text} leads upwards (..)", hint=hint)
    if any(part.lower() == ".git" for part in parts):
        raise ValidationFailed(f"{what} {text} leads into .git", hint="that folder belongs to git")
    return parts


def inside(root: str, parts: Sequence[str], under: Sequence[str], what: str) -> str:
    """Where `parts` lead when every link is followed: below the folder `under`, which itself is in `root`.

    What does not exist yet is fine. A link that leads out is refused, wherever on the way it is.
    """
    real_root = os.path.realpath(root)
    base = os.path.realpath(os.path.join(real_root, *under))
    path = os.path.realpath(os.path.join(real_root, *parts))
    if not _is_below(base, real_root) or not _is_below(path, base):
        raise ValidationFailed(
            f"{what} {'/'.join(parts)} leads out of {'/'.join(under) or 'the tree'} through a symbolic link",
            hint="put the file itself there instead of a link",
        )
    return path


def read_inside(
    root: str, path: str, limit: int, what: str, error: type[RookeryError] = ValidationFailed
) -> bytes | None:
    """The bytes of the regular file `path` in `root`, at most `limit`, or None if there is none.

    `path` comes from `inside` and has no links left; one that appears in between is not followed. One that is not below
    `root`, or leads upwards on its way, is refused.
    """
    real_root = os.path.realpath(root)
    parts = Path(path).relative_to(real_root).parts if Path(path).is_relative_to(real_root) else ()
    if not parts or ".." in parts:
        raise error(f"{what} leads out of the tree", hint="name a file in the tree, without ..")
    try:
        file = open_inside(real_root, parts)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as failure:
        raise error(f"{what} cannot be read: {failure.strerror}", hint="make it a readable regular file") from failure
    try:
        found = os.fstat(file)
        if not stat.S_ISREG(found.st_mode):
            raise error(f"{what} is not a regular file", hint="write a plain file there")
        with os.fdopen(file, "rb", closefd=False) as stream:
            content = stream.read(limit + 1)
    finally:
        os.close(file)
    if len(content) > limit:
        raise error(
            f"{what} is too long ({max(found.st_size, len(content))} bytes, maximum {limit})", hint="shorten it"
        )
    return content


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def open_inside(root: str, parts: Sequence[str]) -> int:
    """The file that these names lead to, opened for reading. A link on the way is an OSError, and so is a gap."""
    folder = os.open(root, _FOLDER)
    try:
        for part in parts[:-1]:
            inner = os.open(part, _FOLDER | os.O_NOFOLLOW, dir_fd=folder)
            os.close(folder)
            folder = inner
        return os.open(parts[-1], _FILE, dir_fd=folder)
    finally:
        os.close(folder)
