"""Takes the text out of a file's bytes. What cannot be read is refused with the reason, never half taken."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePosixPath

from rookery.core.errors import ValidationFailed
from rookery.domains.knowledge.chunks import PAGE_BREAK, Kind

MAX_TEXT = 20 * 1024**2
"""Bytes of a file of text, and characters of what is taken out of any."""
MAX_HTML = 5 * 1024**2
MAX_TAGS = 200_000
"""Of an HTML page: what costs time is not how long it is but how deeply it is nested."""
MAX_PDF = 50 * 1024**2
MAX_TITLE = 300
_KINDS: dict[Kind, str] = {
    "markdown": "md markdown mdx mdown",
    "html": "html htm xhtml",
    "pdf": "pdf",
    "text": "txt text rst adoc asciidoc org tex log csv tsv",
    "source": "py pyi js mjs cjs jsx ts tsx go rs java kt kts c h cc cpp cxx hpp cs rb php swift scala sh bash zsh "
    "fish ps1 sql lua pl r jl ex exs erl hs ml fs clj dart zig nim vue svelte css scss less yaml yml toml json ini cfg "
    "conf xml proto graphql tf cmake gradle",
}
KINDS: dict[str, Kind] = {f".{ending}": kind for kind, endings in _KINDS.items() for ending in endings.split()}
_LIMITS: dict[Kind, int] = {"html": MAX_HTML, "pdf": MAX_PDF}
_FIRST_HEADING = re.compile(r"^ {0,3}#[ \t]+(.+)$", re.MULTILINE)
_BLANK_LINES = re.compile(r"\n{4,}")
_LINE_ENDS = re.compile(r"[ \t]+$", re.MULTILINE)
# What no text needs: PostgreSQL refuses NUL, and half of a surrogate pair is no character.
_NO_TEXT = re.compile("[\0\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Extracted:
    """What a file says. `title` is its own first heading, or else its name."""

    kind: Kind
    title: str
    text: str


def kind_of(path: str) -> Kind:
    """By the name's ending; whatever has none that is known is taken for text."""
    return KINDS.get(PurePosixPath(path).suffix.lower(), "text")


def limit_of(path: str) -> int:
    """How many bytes a file of this name may have."""
    return _LIMITS.get(kind_of(path), MAX_TEXT)


def extract(path: str, content: bytes, check: Callable[[], None] = lambda: None) -> Extracted:
    """The text of a file of this name. `check` is called now and then and may raise to stop the work."""
    kind = kind_of(path)
    if not content:
        raise ValidationFailed(f"{path} is empty", hint="write something into it first")
    title, text = _READERS[kind](path, content, check)
    text = _tidy(text)
    if not text.strip():
        raise ValidationFailed(f"{path} has no text", hint=_HINTS.get(kind, "write something into it first"))
    if len(text) > MAX_TEXT:
        raise ValidationFailed(
            f"{path} has {len(text)} characters of text, at most {MAX_TEXT} are taken", hint="split it"
        )
    return Extracted(kind, (_tidy(title).strip() or PurePosixPath(path).name)[:MAX_TITLE], text)


def _tidy(text: str) -> str:
    """One kind of line break, no blanks at the ends of lines, never more than two blank lines."""
    text = _NO_TEXT.sub("\N{REPLACEMENT CHARACTER}", text.replace("\r\n", "\n").replace("\r", "\n"))
    return _BLANK_LINES.sub("\n\n\n", _LINE_ENDS.sub("", text))


def _decoded(path: str, content: bytes) -> str:
    if b"\0" in content:
        raise ValidationFailed(
            f"{path} is not text: it has a NUL byte at {content.index(0)}",
            hint="only text, Markdown, HTML, PDF and source files in UTF-8 can be read",
        )
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValidationFailed(
            f"{path} is not valid UTF-8: byte 0x{content[error.start]:02x} at {error.start}",
            hint="save it as UTF-8",
        ) from None


def _plain(path: str, content: bytes, check: Callable[[], None]) -> tuple[str, str]:
    return "", _decoded(path, content).replace(PAGE_BREAK, "\n")


def _markdown(path: str, content: bytes, check: Callable[[], None]) -> tuple[str, str]:
    text = _decoded(path, content)
    found = _FIRST_HEADING.search(text[:50_000])
    return (found[1].rstrip("# \t\r") if found else ""), text


def _html(path: str, content: bytes, check: Callable[[], None]) -> tuple[str, str]:
    from rookery.domains.knowledge.html_text import html_text

    if (tags := content.count(b"<")) > MAX_TAGS:
        raise ValidationFailed(f"{path} has {tags} tags, at most {MAX_TAGS} are read", hint="split it")
    return html_text(_decoded(path, content))


def _pdf(path: str, content: bytes, check: Callable[[], None]) -> tuple[str, str]:
    from rookery.domains.knowledge.pdf_text import pdf_text

    return pdf_text(path, content, check)


_READERS: dict[Kind, Callable[[str, bytes, Callable[[], None]], tuple[str, str]]] = {
    "markdown": _markdown,
    "html": _html,
    "pdf": _pdf,
    "text": _plain,
    "source": _plain,
}
_HINTS: dict[Kind, str] = {"pdf": "pages that are pictures have to go through text recognition first"}
