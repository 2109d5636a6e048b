"""What git leaves alone in a tree, by its .gitignore files. Asks git nothing, and runs nothing."""

import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass

from pathspec import GitIgnoreSpec

from rookery.domains.code.linear import linear

MAX_BYTES = 100_000
MAX_PATTERNS = 1_000
"""Of one file. Those that come later are not followed."""
MAX_LINE = 500
TOGETHER = 100
"""So many patterns are looked for at once: while that goes on, no other thread of this process does."""
# The groups that pathspec names cannot be named twice in one expression.
_NAMED = re.compile(r"\(\?P<\w+>")
# Sets in sets and the like, which pathspec does not know and `re` warns of on stderr, for every line anew.
_ODD_SET = re.compile(r"\[[^\]]*(?:\[|--|&&|~~|\|\|)")
_BELOW = "ps_d"
"""Pathspec's name for the slash behind a folder that was matched, and with it everything below."""
Patterns = Sequence[tuple[re.Pattern[str], bool]]
"""Each with whether it ignores what it is about, or brings it back."""


@dataclass(frozen=True, slots=True)
class Rules:
    """The patterns of one .gitignore, for the paths below its folder, which is named with a slash, or empty."""

    folder: str
    patterns: Patterns
    any_of_them: Sequence[re.Pattern[str]]

    def verdict(self, path: str) -> bool | None:
        """Whether a path of the tree is ignored; None if nothing here is about it. Folders end with a slash."""
        inner = path[len(self.folder) :]
        # Nearly every path is about none of the patterns, and this look says so.
        if not any(some.match(inner) for some in self.any_of_them):
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
    patterns, any_of_them = _read(content[:MAX_BYTES])
    return Rules(folder, patterns, any_of_them) if patterns else None


# Trees are walked again and again, and most of their rules stay what they are.
@functools.lru_cache(maxsize=32)
def _read(content: bytes) -> tuple[Patterns, Sequence[re.Pattern[str]]]:
    patterns: list[tuple[re.Pattern[str], bool]] = []
    # Git knows no other ends of lines.
    for line in content.decode(errors="replace").split("\n"):
        if len(patterns) >= MAX_PATTERNS:
            break
        patterns += _pattern(line.removesuffix("\r"))
    written = [f"(?:{_NAMED.sub('(?:', pattern.pattern)})" for pattern, _ in patterns]
    starts = range(0, len(written), TOGETHER)
    return patterns, [re.compile("|".join(written[start : start + TOGETHER])) for start in starts]


def _pattern(line: str) -> Patterns:
    """The pattern of a line, if it has one that is not endless."""
    try:
        means = len(line) <= MAX_LINE and not _ODD_SET.search(line)
        read = GitIgnoreSpec.from_lines([line]).patterns if means else ()
        return [
            (re.compile(linear(each.regex.pattern)), each.include)  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
            for each in read
            if each.regex is not None and each.include is not None  # pyright: ignore[reportUnknownMemberType]
        ]
    except (ValueError, re.error):
        return ()


def ignored(path: str, rules: tuple[Rules, ...]) -> bool:
    """Whether the tree's rules leave a path out. The deepest .gitignore that says anything decides."""
    for each in reversed(rules):
        verdict = each.verdict(path)
        if verdict is not None:
            return verdict
    return False
