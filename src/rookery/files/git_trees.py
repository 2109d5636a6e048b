"""What a commit holds: its files with git's hash of each. Nothing of the working tree is read."""

from collections.abc import Sequence
from dataclasses import dataclass

from rookery.files.git import Repository, borrowed

MAX_LISTING = 64_000_000
"""So many bytes the names of all files of a commit may take: some hundred thousand files."""
_FILE_MODES = (b"100644", b"100755", b"100664")


@dataclass(frozen=True, slots=True)
class TreeFile:
    """A regular file of a commit. `blob` is git's hash of its content."""

    path: str
    blob: str
    size: int


def tree_files(repository: Repository, commit: str) -> list[TreeFile]:
    """The regular files of a commit, by path. Links, submodules and names that are not UTF-8 are left out."""
    with borrowed(repository, commit) as git:
        listed = git.objects("ls-tree", "-r", "-l", "-z", "--full-tree", commit, limit=MAX_LISTING)
    return [file for entry in listed.split(b"\0") if (file := _file(entry)) is not None]


def blob_at(repository: Repository, commit: str, path: str) -> str | None:
    """Git's hash of one file of a commit; None if there is no regular file of that name."""
    with borrowed(repository, commit) as git:
        listed = git.objects("ls-tree", "-l", "-z", "--full-tree", commit, "--", path)
    found = (_file(entry) for entry in listed.split(b"\0"))
    return next((file.blob for file in found if file is not None and file.path == path), None)


def texts_among(repository: Repository, commit: str, paths: Sequence[str]) -> set[str]:
    """Those of the files that have text in them: neither binary, as git tells it, nor empty."""
    if not paths:
        return set()
    with borrowed(repository, commit) as git:
        named = ("--literal-pathspecs", "grep", "-I", "-l", "-z", "--no-color", "-e", "", commit, "--", *paths)
        found = git.objects(*named, limit=MAX_LISTING, accept=(0, 1))
    # Each name comes with the commit before it.
    names = (entry.removeprefix(commit.encode() + b":") for entry in found.split(b"\0") if entry)
    return {name.decode("utf-8", "replace") for name in names}


def _file(entry: bytes) -> TreeFile | None:
    about, tab, name = entry.partition(b"\t")
    parts = about.split()
    if not tab or len(parts) != 4 or parts[0] not in _FILE_MODES:
        return None
    try:
        return TreeFile(name.decode(), parts[2].decode(), int(parts[3]))
    except ValueError:
        return None
