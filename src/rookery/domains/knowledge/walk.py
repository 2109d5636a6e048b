"""Finds the files of a tree that could become documents. No link is followed, and nothing hidden is entered."""

import os
from collections.abc import Iterator, Sequence

from pathspec import GitIgnoreSpec

from rookery.core.errors import InvalidParams
from rookery.domains.knowledge.extract import KINDS

MAX_FILES = 50_000
LEFT_OUT = frozenset({"node_modules", "__pycache__", "site-packages"})


def patterns(globs: Sequence[str]) -> GitIgnoreSpec:
    """The patterns, which are read as those of .gitignore; one that means nothing is refused."""
    try:
        return GitIgnoreSpec.from_lines(globs)
    except ValueError as error:
        raise InvalidParams(f"globs: {error}", hint="write them as in .gitignore, such as docs/**/*.md") from None


def is_hidden(parts: Sequence[str]) -> bool:
    """Whether any part of a path is one that people keep out of sight, or that others installed."""
    return any(part.startswith(".") or part in LEFT_OUT for part in parts)


def covered(parts: Sequence[str], folders: Sequence[str], globs: Sequence[str]) -> bool:
    """Whether a file belongs to a vault of these folders and patterns. Without any, everything does that is not hidden.

    `parts` are those of a path inside the root.
    """
    if is_hidden(parts):
        return False
    wanted = [tuple(part for part in folder.split("/") if part not in ("", ".")) for folder in folders]
    if wanted and not any(tuple(parts[: len(folder)]) == folder for folder in wanted):
        return False
    return not globs or patterns(globs).match_file("/".join(parts))


def files_below(root: str, parts: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """The files at or below a place inside `root` whose names say that they can be read, in the order of their names.

    A file that is named itself is always one of them, and so is a folder that cannot be entered.
    """
    place = os.path.join(root, *parts)
    if not os.path.isdir(place) or os.path.islink(place):
        yield tuple(parts)
        return
    try:
        with os.scandir(place) as found:
            entries = sorted(found, key=lambda entry: entry.name)
    except OSError:
        yield tuple(parts)
        return
    for entry in entries:
        if is_hidden((entry.name,)) or entry.is_symlink():
            continue
        if entry.is_dir():
            yield from files_below(root, (*parts, entry.name))
        elif entry.is_file() and os.path.splitext(entry.name)[1].lower() in KINDS:
            yield (*parts, entry.name)
