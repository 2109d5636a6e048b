"""Texts and addresses from the web, so that nothing in them is taken for anything but text.

Whoever has a page that is found chooses its title. It must reach no reader as HTML, as a Markdown image that tells
somebody what was read, as a line that looks like ours, or in characters that people do not see and models do.
"""

import html
import re
import unicodedata
from typing import Any
from urllib.parse import quote, urlsplit, urlunsplit

MAX_READ = 4000
"""Of a title or a description; what is shown of it is shorter."""
MAX_ADDRESS = 2048
_JOINERS = "\u200c\u200d"
_SELECTORS = range(0xE0100, 0xE01F0)
_UNSEEN = frozenset({"Cc", "Cf", "Cn", "Co", "Cs"})
# Each branch takes whatever comes up to the end if nothing closes it, so no text makes this slow; the parser of the
# standard library is, and some texts it does not survive.
_MARKUP = re.compile(
    r"<!--.*?(?:-->|\Z)"
    r"|<(script|style)\b.*?(?:</\1\b[^>]*(?:>|\Z)|\Z)"
    r"|<(?:/?([a-z][a-z0-9]*)|[/!?])[^>]*(?:>|\Z)",
    re.DOTALL | re.IGNORECASE,
)
_BREAKS = frozenset({"br", "p", "div", "li", "td", "tr"})
_TAG = re.compile(r"<(?=[A-Za-z/!?])")
# Inside of a_name an underscore means nothing.
_MARKS = re.compile(r"[\\`*\[\]]|(?<![^\W_])_|_(?![^\W_])")
_LEADING = re.compile(r"^(?:[#>+=~|-]|\d+(?=[.)]))")
_IMAGE = re.compile(r"!(?=\[)")
_KEPT = "/?#:@!$&'+,;=%~-._"


def plain(text: Any, most: int) -> str:
    """One line of text, whatever HTML it was; empty if it was no text. No `<` in it begins a tag."""
    if not isinstance(text, str):
        return ""
    line = one_line(html.unescape(_MARKUP.sub(_between, text[:MAX_READ])))
    return _TAG.sub("< ", line if len(line) <= most else f"{line[: most - 1]}…")


def _between(found: re.Match[str]) -> str:
    # Words on both sides of a line break are two; those of an emphasis may be one.
    return " " if (found[2] or "").lower() in _BREAKS else ""


def one_line(text: str) -> str:
    """The same in one line, without characters that nobody sees."""
    return " ".join(seen(text, keep="").split())


def seen(text: str, *, keep: str = "\n") -> str:
    """The text without characters that nobody sees; white space becomes a space, except what is to be kept."""
    return "".join(
        mark if mark in keep or mark in _JOINERS else " " if mark.isspace() else mark
        for mark in text
        if mark.isspace() or mark in _JOINERS or not _is_unseen(mark)
    )


def _is_unseen(mark: str) -> bool:
    return unicodedata.category(mark) in _UNSEEN or ord(mark) in _SELECTORS


def markdown(line: str) -> str:
    """A plain line as Markdown that shows it: no link, image, code, emphasis, heading or list."""
    return _LEADING.sub(_escaped_start, _MARKS.sub(r"\\\g<0>", line))


def _escaped_start(found: re.Match[str]) -> str:
    return f"{found[0]}\\" if found[0][0].isdigit() else f"\\{found[0]}"


def prose(text: str, most: int) -> str:
    """What a model wrote: its Markdown stays, but neither HTML nor images that would be fetched."""
    kept = seen(text[: 2 * most]).strip()
    return _IMAGE.sub("! ", _TAG.sub("< ", kept if len(kept) <= most else f"{kept[: most - 1]}…"))


def address(text: Any) -> str | None:
    """A web address that can stand in any text; None for anything else, such as `javascript:`."""
    if not isinstance(text, str) or len(text) > MAX_ADDRESS:
        return None
    bare = text.strip()
    try:
        parts = urlsplit(bare)
        host, port = parts.hostname or "", parts.port
        name = host if ":" in host else host.encode("idna").decode("ascii")
    except (ValueError, UnicodeError):
        return None
    if parts.scheme not in ("http", "https") or "@" in parts.netloc or not re.fullmatch(r"[a-z0-9.:_-]+", name):
        return None
    if any(_is_unseen(mark) for mark in bare):
        return None
    place = f"[{name}]" if ":" in name else name
    kept = [quote(part, safe=_KEPT) for part in (parts.path, parts.query, parts.fragment)]
    whole = urlunsplit((parts.scheme, place if port is None else f"{place}:{port}", *kept))
    return whole if len(whole) <= MAX_ADDRESS else None
