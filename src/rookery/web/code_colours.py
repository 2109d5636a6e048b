"""Colours for code: each line as HTML in which words carry the class of what they are. Bounded in time. Pure.

Only languages of this list are read: every further grammar is one more that a hostile text could make slow.
"""

import time
from collections.abc import Sequence
from functools import cache
from itertools import groupby
from operator import itemgetter
from pathlib import PurePosixPath
from typing import Any

from markupsafe import Markup

from rookery.web.hidden_marks import marked

LONGEST_READ = 60_000
"""Characters of a piece that is read at once; a longer one stays without colours."""
LONGEST_LINE = 1_000
_EXTENSIONS = {
    "bash": ".sh .bash .zsh .bats",
    "c": ".c .h",
    "cpp": ".cc .cpp .cxx .hpp .hh .hxx",
    "csharp": ".cs",
    "css": ".css .scss .less",
    "dart": ".dart",
    "diff": ".diff .patch",
    "docker": ".dockerfile",
    "elixir": ".ex .exs",
    "go": ".go",
    "haskell": ".hs",
    "html": ".html .htm .xhtml .svg .xml .vue",
    "ini": ".ini .cfg .conf .properties .editorconfig",
    "java": ".java",
    "javascript": ".js .mjs .cjs .jsx",
    "json": ".json .jsonl .webmanifest",
    "kotlin": ".kt .kts",
    "lua": ".lua",
    "make": ".mk",
    "markdown": ".md .markdown",
    "nix": ".nix",
    "perl": ".pl .pm",
    "php": ".php",
    "python": ".py .pyi .pyw",
    "r": ".r",
    "ruby": ".rb .rake .gemspec",
    "rust": ".rs",
    "scala": ".scala",
    "sql": ".sql",
    "swift": ".swift",
    "terraform": ".tf .hcl",
    "toml": ".toml",
    "typescript": ".ts .tsx .mts .cts",
    "yaml": ".yaml .yml",
}
_LANGUAGES = {end: language for language, ends in _EXTENSIONS.items() for end in ends.split()}
_NAMES = {"makefile": "make", "dockerfile": "docker", "gemfile": "ruby", "rakefile": "ruby", "cargo.lock": "toml"}
_CLASSES = {
    "Comment": "c",
    "Keyword": "k",
    "Keyword.Type": "t",
    "Literal.String": "s",
    "Literal.Number": "m",
    "Literal": "s",
    "Name.Function": "f",
    "Name.Class": "t",
    "Name.Tag": "k",
    "Name.Attribute": "f",
    "Name.Decorator": "f",
    "Name.Builtin": "b",
    "Name.Exception": "t",
    "Name.Constant": "m",
    "Operator.Word": "k",
    "Generic.Heading": "k",
    "Generic.Subheading": "k",
    "Generic.Deleted": "s",
    "Generic.Inserted": "f",
}


def language_of(path: str) -> str | None:
    """The language that a file's name promises; None if it is none that has colours."""
    name = PurePosixPath(path).name.lower()
    return _NAMES.get(name) or _LANGUAGES.get(PurePosixPath(name).suffix)


def coloured(lines: Sequence[str], language: str | None, until: float) -> list[Markup]:
    """Each line as HTML. Without colours for what is too long, and for all once the clock is past `until`.

    A line that is much longer than a reader could take in is not read at all.
    """
    read = [line if len(line) <= LONGEST_LINE else "" for line in lines]
    text = "\n".join(read)
    if language is None or len(text) > LONGEST_READ or time.monotonic() > until:
        return [marked(line) for line in lines]
    shown = _read(text, _lexer(language), until)
    if shown is None or len(shown) != len(lines):
        return [marked(line) for line in lines]
    return [found if len(line) <= LONGEST_LINE else marked(line) for line, found in zip(lines, shown, strict=True)]


def _read(text: str, lexer: Any, until: float) -> list[Markup] | None:
    """The lines of a text in colours; None if it took too long, or came out as another text."""
    done: list[Markup] = []
    line: list[tuple[str, Markup]] = []
    length = 0
    for number, (_, kind, value) in enumerate(lexer.get_tokens_unprocessed(text)):
        if number % 256 == 0 and time.monotonic() > until:
            return None
        length += len(value)
        name = _class_of(kind)
        for at, piece in enumerate(value.split("\n")):
            if at:
                done.append(_joined(line))
                line = []
            if piece:
                line.append((name if piece.strip() else "", marked(piece)))
    done.append(_joined(line))
    return done if length == len(text) else None


def _joined(words: Sequence[tuple[str, Markup]]) -> Markup:
    """The words of a line; those of one class that follow each other are one."""
    parts: list[str] = []
    for name, same in groupby(words, key=itemgetter(0)):
        shown = "".join(text for _, text in same)
        parts.append(f'<b class="{name}">{shown}</b>' if name else shown)
    return Markup("".join(parts))


@cache
def _lexer(language: str) -> Any:
    from pygments import lexers

    untyped: Any = lexers
    return untyped.get_lexer_by_name(language)


@cache
def _class_of(kind: Any) -> str:
    """The class of a kind of word, or of the nearest kind above it."""
    name = str(kind).removeprefix("Token").removeprefix(".")
    while name:
        if name in _CLASSES:
            return _CLASSES[name]
        name = name.rpartition(".")[0]
    return ""
