"""How values are shown: harmless whatever they contain, and in the words of a reader. Pure."""

import json
import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from markupsafe import Markup, escape

from rookery.domains.owner.channel_frames import visible

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_core import StateCore
    from markdown_it.token import Token

NOTHING = "\u2013"
"""Stands where there is no value."""
LONGEST_TEXT = 20_000
LONGEST_MARKDOWN = 60_000
_BOXES = {"[ ] ": "\u2610 ", "[x] ": "\u2611 ", "[X] ": "\u2611 "}
_STEPS = ((60_000, 1000, "s"), (3_600_000, 60_000, "min"), (86_400_000, 3_600_000, "h"), (1 << 62, 86_400_000, "d"))
_TERMINAL = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")


def harmless(text: object, longest: int = LONGEST_TEXT) -> str:
    """The text without terminal colours, with whatever would not be seen spelled out; cut where it is longer."""
    given = str(text)
    if len(given) <= longest and given.isascii() and given.isprintable():
        # Most of what a page shows; nothing in it needs a second look.
        return given
    shown = visible(_TERMINAL.sub("", given[: longest + 1000]))
    if len(given) <= longest and len(shown) <= 2 * longest:
        return shown
    return f"{shown[:longest]}… ({len(given):,} characters in all)"


def one_line(text: object, longest: int = 200) -> str:
    """The beginning of the text on one line."""
    return harmless(" ".join(str(text)[: longest * 4].split()), longest)


def moment(at: str | int | None) -> datetime | None:
    """A time as tools give it: milliseconds since 1970, or ISO 8601."""
    if at is None or at == "":
        return None
    if isinstance(at, int):
        return datetime.fromtimestamp(at / 1000, UTC)
    try:
        found = datetime.fromisoformat(at)
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def ago(at: str | int | None, now: datetime | None = None) -> str:
    """How long ago, or how soon: `3 min ago`, `in 2 h`."""
    found = moment(at)
    if found is None:
        return NOTHING
    gone = round(((now or datetime.now(UTC)) - found).total_seconds() * 1000)
    if abs(gone) < 5000:
        return "now"
    return f"{span(gone)} ago" if gone > 0 else f"in {_coming(-gone)}"


def _coming(ms: float) -> str:
    """The nearest: what was given for 8 h a moment ago ends in 8 h, and not in 7."""
    unit, name = next((unit, name) for limit, unit, name in _STEPS if ms < limit)
    return f"{math.ceil(ms / unit - 0.5)} {name}"


def span(ms: float | None) -> str:
    """A length of time in its largest unit: `850 ms`, `42 s`, `5 min`, `3 h`, `2 d`."""
    if ms is None:
        return NOTHING
    if ms < 1000:
        return f"{ms:.0f} ms"
    for limit, unit, name in _STEPS:
        if ms < limit:
            return f"{ms / unit:.1f} {name}" if name == "s" and ms < 10_000 else f"{int(ms // unit)} {name}"
    return NOTHING


def when(at: str | int | None) -> Markup:
    """A time relative to now, exact when pointed at; the browser turns it into local time and keeps it current."""
    found = moment(at)
    if found is None:
        return Markup('<span class="muted">\u2013</span>')
    exact = found.astimezone(UTC).isoformat(" ", "seconds")[:19]
    # Made of digits and our own words, so there is nothing in it to escape.
    return Markup(f'<time datetime="{exact.replace(" ", "T")}+00:00" title="{exact} UTC">{ago(at)}</time>')


def money(usd: float | None) -> str:
    """US dollars; with more digits where there is less than a cent."""
    if usd is None:
        return NOTHING
    return f"${usd:,.2f}" if usd >= 0.01 or usd == 0 else f"${usd:.4f}"


def number(value: float | None) -> str:
    """A figure that can be taken in: `950`, `12.3k`, `4.5M`."""
    if value is None:
        return NOTHING
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= limit:
            return f"{value / (1000 if unit == 'k' else limit):.1f}{unit}"
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.2f}"


def as_json(value: Any, longest: int = LONGEST_TEXT) -> str:
    """A value as indented JSON, cut where it is long."""
    return harmless(json.dumps(value, indent=2, ensure_ascii=False, default=str), longest)


def markdown(text: str | None) -> Markup:
    """Markdown of others as HTML: no raw HTML, no pictures, links to other sites marked and only of known kinds."""
    if not text:
        return Markup("")
    shown = harmless(text, LONGEST_MARKDOWN)
    # What the parser makes contains no HTML of the text: it is off, and everything else is escaped there.
    return Markup('<div class="markdown">{}</div>').format(Markup(_parser().render(shown)))


def pretty(word: str | None) -> str:
    """A name of ours in words: `in_progress` as `in progress`."""
    return (word or "").replace("_", " ")


def job_words(kind: str) -> str:
    """A kind of job in words: `owner.expire_asks` as `Owner: expire asks`."""
    part, _, does = pretty(kind).partition(".")
    return f"{part[:1].upper()}{part[1:]}: {does}" if does else part


def initials(name: str) -> str:
    """Two letters for an avatar."""
    words = [part for part in re.split(r"[^A-Za-z0-9]+", name) if part]
    return "".join(word[0] for word in words[:2]).upper() or "?"


def is_safe_link(address: str) -> bool:
    """Whether an address written by others may become a link."""
    try:
        return urlsplit(address.strip()).scheme.lower() in ("http", "https", "mailto")
    except ValueError:
        return False


@cache
def _parser() -> "MarkdownIt":
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False, "maxNesting": 20}).enable(["table", "strikethrough"])
    parser.validateLink = is_safe_link  # type: ignore[method-assign]
    parser.core.ruler.push("boxes", _draw_boxes)
    parser.add_render_rule("link_open", _link_open)
    parser.add_render_rule("image", _image)
    for heading in ("heading_open", "heading_close"):
        parser.add_render_rule(heading, _heading)
    return parser


def _draw_boxes(state: "StateCore") -> None:
    """Items of a list that begin with `[ ]` or `[x]` show a box, which nobody can click."""
    for before, token in pairwise(state.tokens[1:]):
        if token.type != "inline" or before.type != "paragraph_open" or before.level < 2 or not token.children:
            continue
        first = token.children[0]
        if first.type == "text" and first.content[:4] in _BOXES:
            first.content = _BOXES[first.content[:4]] + first.content[4:]


def _link_open(renderer: Any, tokens: "list[Token]", place: int, options: Any, env: Any) -> str:
    href = escape(tokens[place].attrGet("href") or "")
    return f'<a href="{href}" rel="noopener noreferrer nofollow" target="_blank">'


def _image(renderer: Any, tokens: "list[Token]", place: int, options: Any, env: Any) -> str:
    """A picture elsewhere is not fetched: it would tell its server who reads this."""
    source, words = str(tokens[place].attrGet("src") or ""), tokens[place].content
    if not is_safe_link(source):
        return str(escape(words))
    shown = escape(words or "picture")
    return f'<a href="{escape(source)}" rel="noopener noreferrer nofollow" target="_blank">{shown} (picture)</a>'


def _heading(renderer: Any, tokens: "list[Token]", place: int, options: Any, env: Any) -> str:
    """The headings of a text stand below those of the page."""
    token = tokens[place]
    level = min(6, int(token.tag[1]) + 3)
    return f"<h{level}>" if token.nesting == 1 else f"</h{level}>\n"


FILTERS: Mapping[str, Any] = {
    "harmless": harmless,
    "line": one_line,
    "ago": ago,
    "span": span,
    "when": when,
    "money": money,
    "number": number,
    "as_json": as_json,
    "markdown": markdown,
    "pretty": pretty,
    "job_words": job_words,
    "initials": initials,
}
