"""What this process knows of the trees that it indexes: whether anything in them has changed since the last look."""

import asyncio
import contextlib
import threading
import time
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

from rookery.domains.code.grammars import available
from rookery.domains.code.ignoring import Rules
from rookery.domains.code.noticing import Notices
from rookery.domains.code.texts import DefinedTexts
from rookery.domains.code.walk import Tree, Walk, left_out
from rookery.domains.code.workers import Workers

MAX_TREES = 32
REWALK_S = 60.0
"""However quiet it was: the kernel tells nothing of files that are mapped into memory or changed elsewhere."""
UNTOLD_S = 1.0
"""Where the kernel tells nothing at all, a walk is good for this long."""


@dataclass(slots=True)
class Watched:
    """One tree. Whoever indexes it holds `lock`."""

    root: str
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    notices: Notices | None = None
    rules: dict[str, tuple[Rules, ...]] = field(default_factory=dict[str, tuple[Rules, ...]])
    more: bool = False
    """There are more files than are indexed."""
    stale: bool = True
    """What was noticed has not been worked off, so all has to be looked at."""
    _walked: float = 0.0

    def changed(self) -> set[str] | None:
        """The paths that may have changed since the last call; None if that can be any."""
        since = time.monotonic() - self._walked
        if self.stale or since > REWALK_S:
            return None
        if self.notices is None:
            return None if since > UNTOLD_S else set()
        return self.notices.changed(_counts)

    def walk(self, check: Callable[[], None]) -> Tree:
        """Find all files. From then on changes are noticed. Blocks."""
        started = time.monotonic()
        if self.notices is None:
            with contextlib.suppress(OSError):
                self.notices = Notices(self.root)
        try:
            found = Walk(self.root, self._enter, check).run()
        except OSError:
            self.close()
            found = Walk(self.root, self._enter, check).run()
        self.rules, self.more, self._walked = found.rules, found.more, started
        return found

    def _enter(self, folder: str) -> None:
        if self.notices is not None:
            self.notices.enter(folder)

    def close(self) -> None:
        if self.notices is not None:
            self.notices.close()
            self.notices = None


def _counts(name: str, is_folder: bool) -> bool:
    return not left_out(name, top=False) if is_folder else name.rpartition(".")[2].lower() in available()


class Trees:
    """The trees of one platform, and the processes that read their files."""

    def __init__(self) -> None:
        self.workers = Workers()
        self.texts = DefinedTexts()
        self._watched: OrderedDict[tuple[str, str], Watched] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, project_id: str, root: str) -> Watched:
        """The tree of a project. Those that were not asked for in a long time are forgotten."""
        key = (project_id, root)
        with self._lock:
            found = self._watched.get(key)
            if found is None:
                found = self._watched[key] = Watched(root)
            self._watched.move_to_end(key)
            if len(self._watched) > MAX_TREES:
                oldest = next(iter(self._watched))
                if not self._watched[oldest].lock.locked():
                    self._watched.pop(oldest).close()
        return found

    def close(self) -> None:
        self.workers.close()
        with self._lock:
            for each in self._watched.values():
                each.close()
            self._watched.clear()


_OF: "weakref.WeakKeyDictionary[Hashable, Trees]" = weakref.WeakKeyDictionary()


def trees_of(platform: Hashable) -> Trees:
    """The trees of a platform. They go when it does."""
    found = _OF.get(platform)
    if found is None:
        found = _OF[platform] = Trees()
        weakref.finalize(platform, found.close)
    return found
