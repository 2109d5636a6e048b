"""Notices which files of a tree have changed since the last look, as far as the system tells (inotify, so on Linux).

The kernel queues a change before the program that made it goes on, so whoever looks afterwards sees it: no answer is
older than the question. Elsewhere, and where the kernel has no room for more, there is nothing here to ask, and trees
are walked instead.
"""

import ctypes
import errno
import os
import struct
from collections.abc import Callable

_CHANGES = 0x2 | 0x4 | 0x8 | 0x40 | 0x80 | 0x100 | 0x200 | 0x400 | 0x800
"""IN_MODIFY, ATTRIB, CLOSE_WRITE, MOVED_FROM, MOVED_TO, CREATE, DELETE, DELETE_SELF, MOVE_SELF."""
_ONLY_FOLDERS = 0x01000000 | 0x02000000 | 0x04000000
"""IN_ONLYDIR, DONT_FOLLOW, EXCL_UNLINK."""
_SELF, _LOST, _GONE, _FOLDER = 0x400 | 0x800, 0x4000, 0x8000, 0x40000000
"""Of the watched folder itself; the queue was too short; a watch has ended; it was a folder."""
_CAME_OR_WENT = 0x40 | 0x80 | 0x100 | 0x200
_EVENT = struct.Struct("iIII")
_READ = 1 << 16
MAX_PATHS = 500
"""More changes than this are found faster by a walk."""


class Notices:
    """What is told about the folders that were entered. Not for two threads at once."""

    def __init__(self, root: str) -> None:
        """Raises OSError where changes are not told."""
        self.root = root
        library = ctypes.CDLL(None, use_errno=True)
        try:
            start, self._add = library.inotify_init1, library.inotify_add_watch
        except AttributeError:
            raise OSError(errno.ENOSYS, "there is no inotify here") from None
        self._file: int = start(os.O_NONBLOCK | os.O_CLOEXEC)
        if self._file < 0:
            raise OSError(ctypes.get_errno(), "inotify cannot be started")
        self._folders: dict[int, str] = {}

    def enter(self, folder: str) -> None:
        """Be told of changes in a folder of the tree, named with a slash at its end. Raises OSError if that fails."""
        path = os.fsencode(os.path.join(self.root, folder))
        watch: int = self._add(self._file, path, _CHANGES | _ONLY_FOLDERS)
        if watch >= 0:
            self._folders[watch] = folder
        elif ctypes.get_errno() in (errno.ENOSPC, errno.ENOMEM):
            raise OSError(ctypes.get_errno(), "no more folders can be watched")

    def changed(self, counts: Callable[[str, bool], bool]) -> set[str] | None:
        """The paths of changed files that count; None if a folder came or went that counts, or nobody knows what did.

        `counts` is asked by name, and whether it is a folder's.
        """
        paths: set[str] = set()
        unclear = False
        while events := self._events():
            at = 0
            while at < len(events):
                watch, mask, _, length = _EVENT.unpack_from(events, at)
                at += _EVENT.size + length
                name = os.fsdecode(events[at - length : at].rstrip(b"\0"))
                folder = self._folders.get(watch)
                if mask & _GONE:
                    self._folders.pop(watch, None)
                elif mask & (_LOST | _SELF) or name == ".gitignore":
                    unclear = True
                elif mask & _FOLDER:
                    unclear = unclear or (bool(mask & _CAME_OR_WENT) and counts(name, True))
                elif folder is not None and counts(name, False):
                    paths.add(folder + name)
        return None if unclear or len(paths) > MAX_PATHS else paths

    def _events(self) -> bytes:
        try:
            return os.read(self._file, _READ)
        except BlockingIOError:
            return b""

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
