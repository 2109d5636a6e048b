"""An ask as its page shows it: the exact input in readable fields, and nothing left out without a word. Pure."""

import json
import re
from dataclasses import dataclass
from typing import Any, cast

from markupsafe import Markup, escape

from rookery.asks.cards import printable
from rookery.web.showing import harmless

FOLDED_ABOVE = 600
FOLDED_LINES = 14
SHOWN_IN_LIST = 4000
WHOLE = 1_000_000
"""More than any card has."""
_INPUT = re.compile(r"^input \(sha256 ([0-9a-f]{12})\):$", re.MULTILINE)
_FACT = re.compile(r"(folder|project|issue|profile|why): (.+)")
LENGTHS = ("1 hour", "8 hours", "1 day", "7 days", "30 days")
"""For how long a person can agree in advance; the last is the longest that counts."""


@dataclass(frozen=True, slots=True)
class Part:
    """One field of an input. `size` says how much it is where that is folded."""

    name: str
    shown: Markup
    size: str
    cut: bool


@dataclass(frozen=True, slots=True)
class Input:
    """What is to be done: what it is, `facts` about it, the fields of its input and the same as one exact text.

    `parts` is None where the text cannot be taken apart without changing it: then the text alone counts.
    """

    title: str
    covers: str
    issue: str | None
    facts: list[tuple[str, str]]
    digest: str
    raw: str
    exact: Markup
    parts: list[Part] | None
    cut: bool


def shown_ask(ask: dict[str, Any], *, whole: bool) -> dict[str, Any]:
    """The ask with its input taken apart; all of it if `whole`, else the beginnings of what is long."""
    found = _input(ask["context"], whole=whole) if ask["kind"] == "approval" else None
    context = ask["context"]
    cut = found.cut if found is not None else not whole and len(context) > SHOWN_IN_LIST
    shown = Markup("") if found is not None else _text(context, WHOLE if whole else SHOWN_IN_LIST)
    issue = ask["issue"] or (found.issue if found is not None else None)
    return {**ask, "issue": issue, "input": found, "context_shown": shown, "cut": cut}


def exact_input(ask: dict[str, Any]) -> str:
    """What an approval is about, as it was kept."""
    found = _INPUT.search(ask["context"])
    return ask["context"] if found is None else ask["context"][found.end() :].lstrip("\n")


def _input(card: str, *, whole: bool) -> Input | None:
    found = _INPUT.search(card)
    if found is None:
        return None
    title, *lines = card[: found.start()].rstrip("\n").split("\n")
    raw = card[found.end() :].lstrip("\n")
    limit = WHOLE if whole else SHOWN_IN_LIST
    told = {match[1]: match[2] for line in lines if (match := _FACT.fullmatch(line))}
    facts = [(name, value) for name, value in told.items() if name not in ("project", "issue")]
    parts = _parts(raw, limit)
    cut = len(raw) > limit and (parts is None or any(part.cut for part in parts))
    covers = next((line for line in lines if line.startswith(("a yes for a while covers:", "a yes counts once"))), "")
    return Input(title, covers, told.get("issue"), facts, found[1], raw, _text(raw, limit), parts, cut)


def _parts(raw: str, limit: int) -> list[Part] | None:
    try:
        given: Any = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    # What would not come out again as it went in is shown as it is.
    if not isinstance(given, dict) or printable(json.dumps(given, ensure_ascii=False, indent=1)) != raw:
        return None
    return [_part(str(name), value, limit) for name, value in cast("dict[Any, Any]", given).items()]


def _part(name: str, value: Any, limit: int) -> Part:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)
    lines = text.count("\n") + 1
    folded = len(text) > FOLDED_ABOVE or lines > FOLDED_LINES
    size = f"{len(text):,} characters{f', {lines:,} lines' if lines > 1 else ''}" if folded else ""
    return Part(name, _text(text or "(empty)", limit), size, len(text) > limit)


def _text(text: str, limit: int) -> Markup:
    return escape(harmless(text, limit))


def outcome(ask: dict[str, Any]) -> str:
    """What became of an ask that is over, in words."""
    who, via = ask["answered_by"], ask["via"]
    by = f" by {who}{f' via {via}' if via else ''}" if who else ""
    if ask["status"] == "answered":
        return f"Answered{by}: {ask['answer']}"
    if ask["status"] == "withdrawn":
        return f"Dismissed{by}" if who else "Taken back by the agent"
    return "Nobody answered in time"
