"""Two runs beside each other: their steps aligned, and where they first part. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import Any

Step = Mapping[str, Any]
SHOWN_KINDS = ("input", "thinking", "text", "tool", "ask", "error", "result")
"""What an agent or its tools did. Lines of status and the like say nothing of how two runs differ."""
MOST_STEPS = 500


@dataclass(frozen=True, slots=True)
class Pair:
    """A step of each run, or of one alone. `differs` if they are not of one kind, or came out otherwise."""

    a: Step | None
    b: Step | None
    differs: bool
    first: bool = False


@dataclass(frozen=True, slots=True)
class ToolPair:
    """How two runs have used one tool; None where a run has not."""

    tool: str
    a: Mapping[str, Any] | None
    b: Mapping[str, Any] | None

    @property
    def differs(self) -> bool:
        a, b = self.a or {}, self.b or {}
        return (a.get("calls"), a.get("failed")) != (b.get("calls"), b.get("failed"))


def aligned(a: Sequence[Step], b: Sequence[Step]) -> list[Pair]:
    """The steps in pairs, in the order of both. The first pair that differs is marked."""
    ours, theirs = _shown(a), _shown(b)
    matcher = SequenceMatcher(None, [_key(each) for each in ours], [_key(each) for each in theirs], autojunk=False)
    pairs: list[Pair] = []
    for tag, a1, a2, b1, b2 in matcher.get_opcodes():
        if tag == "equal":
            both = zip(ours[a1:a2], theirs[b1:b2], strict=True)
            pairs += [Pair(left, right, left["outcome"] != right["outcome"]) for left, right in both]
        else:
            pairs += [Pair(left, right, differs=True) for left, right in zip_longest(ours[a1:a2], theirs[b1:b2])]
    parted = next((at for at, pair in enumerate(pairs) if pair.differs), None)
    return [Pair(pair.a, pair.b, pair.differs, at == parted) for at, pair in enumerate(pairs)]


def tool_pairs(a: Sequence[Mapping[str, Any]], b: Sequence[Mapping[str, Any]]) -> list[ToolPair]:
    """The tools of both runs, those used most first."""
    ours, theirs = {each["tool"]: each for each in a}, {each["tool"]: each for each in b}
    pairs = [ToolPair(tool, ours.get(tool), theirs.get(tool)) for tool in {**ours, **theirs}]
    return sorted(pairs, key=lambda pair: (-sum(each["calls"] for each in (pair.a, pair.b) if each), pair.tool))


def _shown(steps: Sequence[Step]) -> list[Step]:
    return [each for each in steps if each["kind"] in SHOWN_KINDS][:MOST_STEPS]


def _key(step: Step) -> tuple[str, str]:
    return step["kind"], step["tool"]
