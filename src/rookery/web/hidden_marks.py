"""Code of others with whatever cannot be seen in it made visible: what turns a line around, hides, or is no text. Pure.

What a reviewer sees has to be what a compiler reads.
"""

import re
import unicodedata

from markupsafe import Markup, escape

LONGEST_LINE = 2_000
_CONTROLS = "\x00-\x08\x0a-\x1f\x7f-\x9f"
_TURNING = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
_WIDTHLESS = (
    "\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200d\u2060-\u2065\u206a-\u206f\u3164\ufeff\uffa0"
)
_SPACES = "\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u2800\u3000"
_STRANGE = "\ud800-\udfff\ue000-\uf8ff\ufe00-\ufe0d\ufff0-\ufffb\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
_PRIVATE = "\U000f0000-\U0010ffff"
_HIDDEN = re.compile(f"[{_CONTROLS}{_TURNING}{_WIDTHLESS}{_SPACES}{_STRANGE}{_PRIVATE}]")
_DECEIVING = re.compile(
    "[\x00-\x08\x0b\x0e-\x1f\x7f-\x9f\u00ad\u061c\u115f\u1160\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\u3164\ufeff"
    "\uffa0\U000e0000-\U000e007f]"
)
_OWN_NAMES = {
    0x1B: "escape",
    0x0D: "carriage return",
    0x08: "backspace",
    0x00: "null",
    0x0C: "form feed",
    0x7F: "delete",
}


def deceiving(text: str, start: int = 0, end: int | None = None) -> int:
    """How many characters of a part of the text could make it read as another: escapes, turns, and those not seen."""
    return len(_DECEIVING.findall(text, start, len(text) if end is None else end))


def spelled_out(text: str) -> str:
    """The text with each of those characters written as its number, for fields that hold text alone."""
    return _DECEIVING.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def marked(text: str) -> Markup:
    """A piece of a line as HTML; each hidden character stands as a mark with its name."""
    if (text.isascii() and text.isprintable()) or _HIDDEN.search(text) is None:
        return escape(text)
    parts: list[str] = []
    at = 0
    for found in _HIDDEN.finditer(text):
        parts += [str(escape(text[at : found.start()])), _mark(found[0])]
        at = found.end()
    return Markup("".join([*parts, str(escape(text[at:]))]))


def short(text: str) -> tuple[str, int]:
    """The beginning of a line, and how many characters are left out."""
    return (text, 0) if len(text) <= LONGEST_LINE else (text[:LONGEST_LINE], len(text) - LONGEST_LINE)


def _mark(character: str) -> str:
    code = ord(character)
    name = unicodedata.name(character, _OWN_NAMES.get(code, "control character" if code < 0xA0 else "unnamed")).lower()
    if character == "\r":
        return f'<span class="hidden-mark end" title="U+000D {name}">CR</span>'
    kind = " bad" if _DECEIVING.match(character) else ""
    return f'<span class="hidden-mark{kind}" title="U+{code:04X} {name}">U+{code:04X}</span>'
