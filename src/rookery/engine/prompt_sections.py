"""Fits what an agent is told into budgets of tokens: what matters most is told, the rest is left out by name. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from rookery.domains.tracker.briefs import LONGEST
from rookery.domains.tracker.issue_markdown import IssueData, Record, issue_markdown
from rookery.domains.tracker.markdown_text import blocks, line, quoted
from rookery.fulltext.query import Term, stems

BYTES_PER_TOKEN = 4
LEAST_TOKENS = 40
"""A text of which no more than this would be told is left out instead."""
MOST_NAMED = 50
_SHORTEST = 200


def tokens(text: str) -> int:
    """About how many tokens a model takes it for."""
    return -(-len(text.encode("utf-8", "replace")) // BYTES_PER_TOKEN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """One thing worth knowing: what it is called on record, a heading of ours, and what somebody wrote."""

    name: str
    heading: str
    text: str
    relevance: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """Things of one kind, the intro that says what they are, and how many tokens all of it may take."""

    name: str
    title: str
    intro: str
    pieces: Sequence[Piece]
    budget: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """A part of a prompt as it is told, and what of it is not."""

    name: str
    text: str
    budget: int | None = None
    shown: Sequence[str] = ()
    shortened: Sequence[str] = ()
    left_out: Sequence[str] = field(default_factory=tuple[str, ...])

    @property
    def record(self) -> dict[str, Any]:
        """What is kept about it. Of very many names the first are kept, and how many there were."""
        named = {"shown": self.shown, "shortened": self.shortened, "left_out": self.left_out}
        lists = {name: list(names[:MOST_NAMED]) for name, names in named.items() if names}
        many = {f"{name}_total": len(names) for name, names in named.items() if len(names) > MOST_NAMED}
        return {"section": self.name, "tokens": tokens(self.text), "budget": self.budget, **lists, **many}


def told(section: Section) -> Told:
    """The section with the most relevant of its pieces; the first that does not fit is shortened, the others go."""
    head = blocks(f"# {section.title}", section.intro)
    shown, names, shortened = [head], list[str](), list[str]()
    ranked = sorted(section.pieces, key=lambda piece: -piece.relevance)
    for piece in ranked:
        left = section.budget - tokens(blocks(*shown)) - 1
        whole = _written(piece)
        if tokens(whole) > left:
            part = _shortened(piece, left) if left >= LEAST_TOKENS else None
            if part is not None:
                shown.append(part)
                names.append(piece.name)
                shortened.append(piece.name)
            break
        shown.append(whole)
        names.append(piece.name)
    left_out = tuple(piece.name for piece in ranked if piece.name not in set(names))
    text = blocks(*shown) if names else ""
    return Told(
        name=section.name,
        text=text,
        budget=section.budget,
        shown=tuple(names),
        shortened=tuple(shortened),
        left_out=left_out,
    )


def _written(piece: Piece, longest: int | None = None) -> str:
    return blocks(f"## {line(piece.heading)}", quoted(piece.text, longest))


def _shortened(piece: Piece, budget: int) -> str | None:
    """The beginning of the piece within the budget; None if that would say nothing."""
    longest = min(len(piece.text), budget * BYTES_PER_TOKEN)
    while longest >= BYTES_PER_TOKEN * LEAST_TOKENS // 2:
        part = _written(piece, longest)
        if tokens(part) <= budget:
            return part
        longest = longest * 3 // 4
    return None


def overlap(text: str, looked_for: Sequence[Term]) -> float:
    """How much of what is looked for a text speaks of: from 0, nothing, to 1, all of it."""
    if not looked_for:
        return 0.0
    wanted = {term.stem for term in looked_for}
    return len(wanted & set(stems(text))) / len(wanted)


def fitted_issue(issue: IssueData, budget: int) -> tuple[IssueData, Told]:
    """The issue as far as the budget goes: its runs are left out first, then the oldest records, then long texts."""
    left_out: list[str] = []
    shortened: list[str] = []
    data, keep = issue, min(len(issue.description), LONGEST)
    while (over := tokens(issue_markdown(data, longest=LONGEST)) - budget) > 0:
        if data.runs:
            left_out.append(f"{len(data.runs)} runs")
            data = replace(data, runs=[])
        elif (oldest := _oldest(data)) is not None:
            kind, record = oldest
            left_out.append(f"{kind} {record.get('id') or record['created_ms']}")
            data = replace(data, **{kind: [each for each in getattr(data, kind) if each is not record]})
        elif keep > _SHORTEST:
            keep = max(keep - over * BYTES_PER_TOKEN - _SHORTEST // 2, _SHORTEST)
            shortened = ["description"]
            data = replace(data, description=_cut(issue.description, keep))
        elif data.claims:
            left_out.append(f"{len(data.claims)} claims and verdicts")
            data = replace(data, claims=[])
        else:
            break
    text = issue_markdown(data, longest=LONGEST)
    return data, Told(name="issue", text=text, budget=budget, shortened=shortened, left_out=left_out)


def _oldest(data: IssueData) -> tuple[str, Record] | None:
    """The record that was written first, of those that others can be understood without."""
    records = [(kind, each) for kind in ("findings", "comments") for each in getattr(data, kind)]
    return min(records, key=lambda found: found[1]["created_ms"], default=None)


def _cut(text: str, keep: int) -> str:
    return f"{text[:keep].rstrip()}\n\n(Cut here: {len(text) - keep:,} more characters; `get_issue` has all.)"


def newest_within(records: Sequence[Record], budget: int, written: Iterable[str]) -> tuple[list[Record], list[Record]]:
    """Of records, oldest first, the newest whose texts fit, and those that do not. The newest one is always told."""
    kept: list[Record] = []
    left = budget
    for record, text in reversed(list(zip(records, written, strict=True))):
        left -= tokens(text)
        if left < 0 and kept:
            break
        kept.insert(0, record)
    return kept, list(records[: len(records) - len(kept)])
