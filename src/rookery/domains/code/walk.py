"""Finds the source files of a tree. No link is followed, nothing hidden or ignored is entered."""

import os
import stat
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from rookery.core.admission import storable
from rookery.domains.code.grammars import available
from rookery.domains.code.ignoring import MAX_BYTES, Rules, ignored, rules_of

MAX_FILES = 100_000
MAX_FILE = 512 * 1024
"""Bytes. What is larger was made by a program."""
INSTALLED = frozenset({"node_modules", "__pycache__", "site-packages", "bower_components"})
MADE = frozenset({"build", "dist", "vendor"})
"""Left out as well, but only in the project's own folder: further down they are often somebody's package."""
ENVIRONMENT = "pyvenv.cfg"
MAX_DEPTH = 64
"""Folders in folders. Nobody writes more, and rules take their time with every one."""
MAX_PATTERNS = 20_000
"""Of all .gitignore files of a tree. Those that are found later are not followed."""


@dataclass(slots=True)
class Tree:
    """The files of a tree with their times of change and sizes. `more`: there were more than are taken.

    `rules` has those of every folder that any are about.
    """

    files: dict[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])
    rules: dict[str, tuple[Rules, ...]] = field(default_factory=dict[str, tuple[Rules, ...]])
    more: bool = False


class Walk:
    """One walk. `enter` is called with each folder before it is read, so that no change after that is missed."""

    def __init__(self, root: str, enter: Callable[[str], None], check: Callable[[], None]) -> None:
        self.root = root
        self.found = Tree()
        self._enter = enter
        self._check = check
        self._endings = available()
        self._patterns_left = MAX_PATTERNS

    def run(self) -> Tree:
        waiting: list[tuple[str, tuple[Rules, ...]]] = [("", ())]
        while waiting and not self.found.more:
            folder, rules = waiting.pop()
            self._check()
            self._enter(folder)
            try:
                with os.scandir(os.path.join(self.root, folder)) as entries:
                    here = list(entries)
            except OSError:
                continue
            self._folder(folder, here, rules, waiting)
        return self.found

    def _folder(
        self,
        folder: str,
        entries: Sequence["os.DirEntry[str]"],
        rules: tuple[Rules, ...],
        waiting: list[tuple[str, tuple[Rules, ...]]],
    ) -> None:
        hidden = {entry.name for entry in entries if entry.name in (".gitignore", ENVIRONMENT)}
        if ENVIRONMENT in hidden and folder:
            return
        if ".gitignore" in hidden:
            rules = (*rules, *self._own_rules(folder))
        if rules:
            self.found.rules[folder] = rules
        for entry in entries:
            if rules:
                self._check()
            name = entry.name
            if name.rpartition(".")[2].lower() in self._endings and entry.is_file(follow_symlinks=False):
                self._file(folder + name, entry, rules)
            elif entry.is_dir(follow_symlinks=False) and not left_out(name, top=not folder):
                inner = f"{folder}{name}/"
                if folder.count("/") < MAX_DEPTH and not (rules and ignored(inner, rules)):
                    waiting.append((inner, rules))

    def _own_rules(self, folder: str) -> tuple[Rules, ...]:
        """The rules of a folder, if it has some and the tree has not too many already."""
        if self._patterns_left <= 0:
            return ()
        own = rules_of(_small(os.path.join(self.root, folder, ".gitignore")), folder)
        if own is None:
            return ()
        self._patterns_left -= len(own.patterns)
        return (own,)

    def _file(self, path: str, entry: "os.DirEntry[str]", rules: tuple[Rules, ...]) -> None:
        if is_hidden(entry.name) or (rules and ignored(path, rules)):
            return
        try:
            seen = entry.stat(follow_symlinks=False)
        except OSError:
            return
        if seen.st_size > MAX_FILE:
            return
        if len(self.found.files) >= MAX_FILES:
            self.found.more = True
            return
        self.found.files[path] = (seen.st_mtime_ns, seen.st_size)


def is_hidden(name: str) -> bool:
    """Whether a name is one that people keep out of sight, or that no database can store."""
    return name[:1] == "." or not (name.isascii() or storable(name))


def left_out(name: str, *, top: bool) -> bool:
    """Whether a folder is never entered. `top`: it is in the project's own folder."""
    return is_hidden(name) or name in INSTALLED or (top and name in MADE)


def look_at(root: str, paths: Iterable[str], rules: Mapping[str, tuple[Rules, ...]]) -> dict[str, tuple[int, int]]:
    """Those of some paths that are files of the tree now, as a walk would find them."""
    found: dict[str, tuple[int, int]] = {}
    for path in paths:
        folder, _, name = path.rpartition("/")
        above = rules.get(f"{folder}/" if folder else "", ())
        if is_hidden(name) or (above and ignored(path, above)):
            continue
        try:
            seen = os.lstat(os.path.join(root, path))
        except OSError:
            continue
        if stat.S_ISREG(seen.st_mode) and seen.st_size <= MAX_FILE:
            found[path] = (seen.st_mtime_ns, seen.st_size)
    return found


def _small(path: str) -> bytes:
    """The first bytes of a regular file that is no link; nothing for anything else."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return os.read(file, MAX_BYTES) if stat.S_ISREG(os.fstat(file).st_mode) else b""
    finally:
        os.close(file)
