"""The objects of a simulated repository: files, trees and commits by their hashes, and what follows from them."""

import difflib
import hashlib
import json
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

Tree = Mapping[str, str]
"""The hash of each file, by path."""


@dataclass(frozen=True, slots=True)
class Commit:
    tree: str
    parents: tuple[str, ...]
    message: str


@dataclass(slots=True)
class Objects:
    """What a repository has, and its branches."""

    blobs: dict[str, bytes] = field(default_factory=dict[str, bytes])
    trees: dict[str, Tree] = field(default_factory=dict[str, Tree])
    commits: dict[str, Commit] = field(default_factory=dict[str, Commit])
    refs: dict[str, str] = field(default_factory=dict[str, str])
    indexes: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])
    """What is staged in each working tree, by its git folder."""

    def blob(self, content: bytes) -> str:
        name = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
        self.blobs[name] = content
        return name

    def tree(self, files: Tree) -> str:
        name = hashlib.sha1(json.dumps(sorted(files.items())).encode()).hexdigest()
        self.trees[name] = dict(files)
        return name

    def commit(self, tree: str, parents: Sequence[str], message: str) -> str:
        made = Commit(tree, tuple(parents), message)
        name = hashlib.sha1(repr(made).encode()).hexdigest()
        self.commits[name] = made
        return name

    def files(self, commit: str) -> Tree:
        return self.trees[self.commits[commit].tree]

    def ancestors(self, *tips: str) -> list[str]:
        """The commits and all before them, nearest first."""
        seen, waiting = dict[str, None](), deque(tips)
        while waiting:
            at = waiting.popleft()
            if at not in seen:
                seen[at] = None
                waiting.extend(self.commits[at].parents)
        return list(seen)

    def merge_base(self, one: str, other: str) -> str | None:
        """A commit that both have, of which no other such commit is a descendant."""
        theirs = set(self.ancestors(other))
        common = [commit for commit in self.ancestors(one) if commit in theirs]
        below = {each for commit in common for each in self.ancestors(*self.commits[commit].parents)}
        return next((commit for commit in common if commit not in below), None)

    def changed(self, old: Tree, new: Tree) -> list[str]:
        return sorted(path for path in {*old, *new} if old.get(path) != new.get(path))

    def merged(self, base: str | None, ours: str, theirs: str) -> tuple[str, list[str]]:
        """The tree of both sides, and the files that both have changed, each in its own way."""
        before: Tree = self.files(base) if base is not None else {}
        left, right = self.files(ours), self.files(theirs)
        files, conflicts = dict(left), list[str]()
        for path in self.changed(before, right):
            if left.get(path) == right.get(path):
                continue
            if left.get(path) != before.get(path):
                conflicts.append(path)
            elif path in right:
                files[path] = right[path]
            else:
                files.pop(path, None)
        return self.tree(files), conflicts

    def patch(self, old: Tree, new: Tree) -> str:
        return "".join(
            part for path in self.changed(old, new) for part in self._patch(path, old.get(path), new.get(path))
        )

    def _patch(self, path: str, old: str | None, new: str | None) -> Iterator[str]:
        nothing = "0" * 40
        yield f"diff --git a/{path} b/{path}\n"
        if old is None:
            yield "new file mode 100644\n"
        elif new is None:
            yield "deleted file mode 100644\n"
        yield f"index {old or nothing}..{new or nothing}{' 100644' if old and new else ''}\n"
        before, after = (self.blobs[each].decode().splitlines() if each else [] for each in (old, new))
        names = ("/dev/null" if old is None else f"a/{path}", "/dev/null" if new is None else f"b/{path}")
        yield from (f"{line}\n" for line in difflib.unified_diff(before, after, *names, lineterm=""))

    def counted(self, old: Tree, new: Tree) -> list[tuple[str, int, int]]:
        """Added and deleted lines of each file that differs."""
        found: list[tuple[str, int, int]] = []
        for path in self.changed(old, new):
            lines = list(self._patch(path, old.get(path), new.get(path)))
            body = [line for line in lines if not line.startswith(("+++", "---"))]
            found.append((path, sum(each[0] == "+" for each in body), sum(each[0] == "-" for each in body)))
        return found
