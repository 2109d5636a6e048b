"""What git leaves alone in a tree, by its .gitignore files. Asks git nothing, and runs nothing."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from pathspec import GitIgnoreSpec

MAX_BYTES = 100_000
# The groups that pathspec names cannot be named twice in one expression.
_NAMED = re.compile(r"\(\?P<\w+>")
_BELOW = "ps_d"
"""Pathspec's name for the slash behind a folder that was matched, and with it everything below."""


@dataclass(frozen=True, slots=True)
class Rules:
    """The patterns of one .gitignore, for the paths below its folder, which is named with a slash, or empty."""

    folder: str
    patterns: Sequence[tuple[re.Pattern[str], bool]]
    any_of_them: re.Pattern[str]

    def verdict(self, path: str) -> bool | None:
        """Whether a path of the tree is ignored; None if nothing here is about it. Folders end with a slash."""
        inner = path[len(self.folder) :]
        # Nearly every path is about none of the patterns, and this one look says so.
        if self.any_of_them.match(inner) is None:
            return None
        for pattern, ignores in reversed(self.patterns):
            found = pattern.match(inner)
            if found is not None and _is_about(found, inner):
                return ignores
        return None


def _is_about(found: re.Match[str], path: str) -> bool:
    """Whether a pattern is about the path itself. Pathspec's are also about everything below a folder, which git's are
    not: who does not enter an ignored folder has no need of that, and `!folder/` would bring back all that is in it."""
    if _BELOW not in found.re.groupindex:
        # `folder/**` is about what is in it alone.
        return not found[0].endswith("/") or found.end() < len(path)
    return found.end(_BELOW) in (-1, len(path))


def rules_of(content: bytes, folder: str) -> Rules | None:
    """The rules of a .gitignore. Lines that mean nothing are skipped, as git does; None if there are no others."""
    patterns: list[tuple[re.Pattern[str], bool]] = []
    for line in content[:MAX_BYTES].decode(errors="replace").splitlines():
        try:
            read = GitIgnoreSpec.from_lines([line]).patterns
        except ValueError:
            continue
        for each in read:
            regex: re.Pattern[str] | None = each.regex  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
            if regex is not None and each.include is not None:
                patterns.append((regex, each.include))  # pyright: ignore[reportUnknownArgumentType]
    if not patterns:
        return None
    together = "|".join(f"(?:{_NAMED.sub('(?:', pattern.pattern)})" for pattern, _ in patterns)
    return Rules(folder, patterns, re.compile(together))


def ignored(path: str, rules: tuple[Rules, ...]) -> bool:
    """Whether the tree's rules leave a path out. The deepest .gitignore that says anything decides."""
    for each in reversed(rules):
        verdict = each.verdict(path)
        if verdict is not None:
            return verdict
    return False
