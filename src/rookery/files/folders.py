"""Removing folders that programs have filled, whatever they left there."""

import os
import shutil
from collections.abc import Callable


def remove_folder(folder: str) -> None:
    """Remove a folder with all that is in it, also what cannot be written; nothing if it is not there."""
    if os.path.lexists(folder):
        _remove(folder, folder, set())


def _remove(top: str, folder: str, mended: set[str]) -> None:
    shutil.rmtree(folder, onerror=lambda remove, path, failed: _make_writable(top, mended, remove, path))


def _make_writable(top: str, mended: set[str], remove: Callable[[str], object], path: str) -> None:
    """Tools keep folders that cannot be written, or not even read, such as caches of packages; they go as well."""
    if path != top:
        # What is around the folder is somebody else's.
        os.chmod(os.path.dirname(path), 0o700)
    if os.path.islink(path):
        os.unlink(path)
    elif os.path.isdir(path) and path not in mended:
        mended.add(path)
        os.chmod(path, 0o700)
        _remove(top, path, mended)
    elif os.path.isdir(path):
        # It has been made writable, and still cannot be removed.
        os.rmdir(path)
    else:
        remove(path)
