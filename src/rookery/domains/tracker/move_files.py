"""Carries an issue's artifact files from one project's folder to another's. No symbolic link is followed on the way."""

import os
import secrets
import shutil
import stat
from collections.abc import Mapping, Sequence
from contextlib import suppress

from rookery.core.errors import Conflict, ValidationFailed

TICKETS = ("docs", "tickets")
MAX_FILES = 200
MAX_FOLDERS = 50
MAX_BYTES = 20_000_000
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# A FIFO without a writer would hold the reader forever.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def read_tickets(root: str, identifier: str) -> dict[str, bytes]:
    """The regular files below the issue's folder, by their path in it. Links are left out; too much is refused."""
    folders = _descend(os.path.realpath(root), (*TICKETS, identifier))
    try:
        return _read(folders[-1]) if len(folders) == len(TICKETS) + 2 else {}
    finally:
        _close(folders)


def _descend(root: str, parts: Sequence[str]) -> list[int]:
    """Open the folders on a path, from `root` to the last one that is there, can be read and is no link."""
    folders: list[int] = []
    with suppress(OSError):
        folders.append(os.open(root, _FOLDER))
        for part in parts:
            folders.append(os.open(part, _FOLDER, dir_fd=folders[-1]))
    return folders


def _close(folders: Sequence[int]) -> None:
    for folder in folders:
        os.close(folder)


def _read(folder: int) -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    room = MAX_BYTES
    for seen, (path, _, names, inner) in enumerate(os.fwalk(".", dir_fd=folder, follow_symlinks=False), start=1):
        if seen > MAX_FOLDERS or len(files) + len(names) > MAX_FILES:
            raise _too_much(f"more than {MAX_FILES} files or {MAX_FOLDERS} folders")
        for name in names:
            content = _content(name, inner, room)
            if content is None:
                continue
            room -= len(content)
            if room < 0:
                raise _too_much(f"more than {MAX_BYTES:,} bytes")
            files[os.path.normpath(os.path.join(path, name))] = content
    return files


def _content(name: str, folder: int, room: int) -> bytes | None:
    try:
        descriptor = os.open(name, _FILE, dir_fd=folder)
    except OSError:
        return None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return None
        with open(descriptor, "rb", closefd=False) as file:
            return file.read(room + 1)
    finally:
        os.close(descriptor)


def _too_much(what: str) -> ValidationFailed:
    return ValidationFailed(
        f"the issue's artifact folder has {what}", hint="remove from it what is no artifact, then move the issue"
    )


class Staged:
    """Files that wait beside their destination: `publish` puts them there at once, `discard` leaves no trace."""

    def __init__(self, root: str, files: Mapping[str, bytes]) -> None:
        """Write the files to a hidden folder in the project's docs/tickets, which is made if it is not there."""
        self.count = len(files)
        self._name = f".moving-{secrets.token_hex(8)}"
        self._folders: list[int] = []
        self._made: list[tuple[int, str]] = []
        self._waiting = True
        try:
            self._folders.append(os.open(os.path.realpath(root), _FOLDER))
            for part in TICKETS:
                self._enter(part)
            os.mkdir(self._name, dir_fd=self._folders[-1])
            for path, content in files.items():
                self._write(path, content)
        except OSError as failure:
            self.discard()
            raise Conflict(
                f"the artifact files cannot be copied to the target project: {failure.strerror}",
                hint="the server must be able to write docs/tickets in its folder",
            ) from failure
        except BaseException:
            self.discard()
            raise

    def publish(self, identifier: str) -> bool:
        """Rename to the issue's own folder. False, and nothing there is touched, if one with files exists already."""
        tickets = self._folders[-1]
        try:
            os.rename(self._name, identifier, src_dir_fd=tickets, dst_dir_fd=tickets)
        except OSError:
            return False
        self._waiting = False
        return True

    def discard(self) -> None:
        """Remove what was not published, and let go of the folders. Harmless when repeated."""
        if self._waiting and self._folders:
            shutil.rmtree(self._name, ignore_errors=True, dir_fd=self._folders[-1])
            for parent, name in reversed(self._made):
                with suppress(OSError):
                    os.rmdir(name, dir_fd=parent)
        _close(self._folders)
        self._folders = []

    def _enter(self, part: str) -> None:
        parent = self._folders[-1]
        with suppress(FileExistsError):
            os.mkdir(part, dir_fd=parent)
            self._made.append((parent, part))
        try:
            self._folders.append(os.open(part, _FOLDER, dir_fd=parent))
        except OSError:
            raise Conflict(
                f"{part} in the target project's folder is a link or no folder",
                hint="artifacts are copied to docs/tickets only if both are plain folders",
            ) from None

    def _write(self, path: str, content: bytes) -> None:
        folder = os.path.join(self._name, os.path.dirname(path))
        tickets = self._folders[-1]
        made = ""
        for part in os.path.normpath(folder).split(os.sep):
            made = os.path.join(made, part)
            with suppress(FileExistsError):
                os.mkdir(made, dir_fd=tickets)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with open(os.open(os.path.join(self._name, path), flags, 0o644, dir_fd=tickets), "wb") as file:
            file.write(content)
