"""Takes out of a file what it defines and what it mentions, by the query of its language.

The query captures a definition by its kind and its name as `name`, every identifier as `ref`, what is visible from
outside as `exported` or by its name as `export`, what is taken from elsewhere as `import`, and what a method says it
belongs to as `container`. All of this runs for every identifier of a project, hence plain tuples and lists, and no call
for each.
"""

import json
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

from rookery.domains.code.grammars import Grammar
from rookery.domains.code.plain_python import Plain, mention

if TYPE_CHECKING:
    from tree_sitter import Node

MAX_NAME = 200
"""Characters. Whatever is longer was made by a machine for no reader."""
IMPORT = "import"
"""The kind of what is taken from elsewhere. These come after all symbols, and are none unless they are asked for."""
HOLDERS = frozenset({"class", "interface", "implementation", "enum"})
"""A function in one of these is its method."""
# Of two captures of one piece of code the one that says more about it.
_VAGUE = frozenset({"variable", "type_alias"})
_QUOTES = b"\"'`<>"
Span = tuple[int, int]
Row = list[Any]


class Symbol(NamedTuple):
    """A definition and its lines, which are counted from 1. `parent` is the number of the symbol around it, or -1."""

    name: str
    kind: str
    start: int
    end: int
    parent: int
    exported: int
    container: str | None


def outline_of(symbols: Sequence[Row]) -> str:
    """The symbols of a file as the index keeps them."""
    return json.dumps(symbols, separators=(",", ":"), ensure_ascii=False)


def symbols_of(outline: str) -> list[Symbol]:
    """The symbols that `outline_of` wrote."""
    return list(map(Symbol._make, json.loads(outline)))


def extract(source: bytes, grammar: Grammar, mentions: dict[bytes, list[int]], before: int = 0) -> list[Row]:
    """The symbols of a file, each as the fields of `Symbol`, the outer before the inner, then its imports. Broken code
    is no error: what can be read of it counts.

    To `mentions` is added in which lines each name stands that is not being defined there; lines are counted on from
    `before`.
    """
    from tree_sitter import QueryCursor

    plain = grammar.plain.taken(source) if grammar.plain is not None else None
    if plain is not None:
        mention(plain, mentions, before)
        return _plain_symbols(plain)
    tree = grammar.parser.parse(source)
    found = QueryCursor(grammar.query).captures(tree.root_node)
    refs, names = found.pop("ref", ()), _spans(found.pop("name", ()))
    exported, containers = set(_spans(found.pop("exported", ()))), _spans(found.pop("container", ()))
    exports = {source[start:end] for start, end in _spans(found.pop("export", ()))}
    imports = _spans(found.pop(IMPORT, ()))
    ends = _ends(source)
    spans = {node.start_byte: node.end_byte for node in refs}
    for start, _ in names:
        spans.pop(start, None)
    _mention(source, spans, ends, mentions, before)
    definitions = _definitions(found)
    named = _named(definitions, names, source)
    owners = _named(definitions, containers, source) if containers else {}
    symbols = _symbols(definitions, named, owners, exported, ends)
    _export(symbols, {spelled(name) for name in exports}, grammar)
    return symbols + _imports(source, imports, ends)


def _export(symbols: list[Row], exports: set[str | None], grammar: Grammar) -> None:
    """Mark what the file exports by its name, or by the way it is written."""
    for row in symbols:
        if (row[4] < 0 and row[0] in exports) or (grammar.exports_capitals and row[0][0].isupper()):
            row[5] = 1


def _imports(source: bytes, spans: Iterable[Span], ends: Sequence[int]) -> list[Row]:
    """What is taken from elsewhere, in its order and once in a line."""
    rows: dict[tuple[str, int], Row] = {}
    for start, end in sorted(spans):
        name = spelled(source[start:end].strip(_QUOTES))
        line = bisect_left(ends, start + 1) + 1
        if name is not None:
            rows.setdefault((name, line), [name, IMPORT, line, line, -1, 0, None])
    return list(rows.values())


def _plain_symbols(plain: Plain) -> list[Row]:
    text = plain.text
    named: dict[Span, list[str]] = {}
    for span, names in zip(plain.kinds, plain.names, strict=True):
        spellings = [name for start, end in names if (name := spelled(text[start:end])) is not None]
        if spellings:
            named[span] = spellings
    ends = _ends(text)
    return _symbols(plain.kinds, named, {}, set(), ends) + _imports(text, plain.imports, ends)


def _ends(source: bytes) -> list[int]:
    """Where each line ends, with what ends it."""
    if b"\r" in source:
        return list(accumulate(len(line) + 1 for line in source.split(b"\n")))
    return list(accumulate(map(len, source.splitlines(keepends=True)))) or [0]


def spelled(name: bytes) -> str | None:
    """The name as text; None for what no reader has written."""
    text = name.decode(errors="replace")
    return text if 0 < len(text) <= MAX_NAME and text.isprintable() else None


def _spans(nodes: "Iterable[Node]") -> list[Span]:
    return [(node.start_byte, node.end_byte) for node in nodes]


def _definitions(found: "Mapping[str, Sequence[Node]]") -> dict[Span, str]:
    """The captured definitions with their kinds in the order of the file, the outer before the inner, none twice."""
    kinds: dict[tuple[int, int], str] = {}
    for kind, nodes in found.items():
        for node in nodes:
            place = (node.start_byte, -node.end_byte)
            if kinds.get(place, "variable") in _VAGUE:
                kinds[place] = kind if kind not in _VAGUE else kinds.get(place, kind)
    return {(place[0], -place[1]): kinds[place] for place in sorted(kinds)}


def _named(definitions: Iterable[Span], names: Sequence[Span], source: bytes) -> dict[Span, list[str]]:
    """The names of each definition: those that it is the innermost around."""
    named: dict[Span, list[str]] = {}
    around: list[Span] = []
    left = iter(definitions)
    following = next(left, None)
    for start, end in sorted(set(names)):
        while following is not None and following[0] <= start:
            around.append(following)
            following = next(left, None)
        while around and around[-1][1] <= start:
            around.pop()
        name = spelled(source[start:end])
        if around and name is not None:
            named.setdefault(around[-1], []).append(name)
    return named


def _symbols(
    definitions: Mapping[Span, str],
    named: Mapping[Span, Sequence[str]],
    owners: Mapping[Span, Sequence[str]],
    exported: set[Span],
    ends: Sequence[int],
) -> list[Row]:
    symbols: list[Row] = []
    around: list[tuple[int, int]] = []
    for span, kind in definitions.items():
        if span not in named:
            continue
        start, end = span
        while around and around[-1][0] <= start:
            around.pop()
        parent = around[-1][1] if around else -1
        if kind == "function" and parent >= 0 and symbols[parent][1] in HOLDERS:
            kind = "method"
        owner = owners[span][0] if span in owners else None
        around.append((end, len(symbols)))
        first, last = bisect_left(ends, start + 1) + 1, bisect_left(ends, end) + 1
        for name in named[span]:
            symbols.append([name, kind, first, last, parent, int(span in exported), owner])
    return symbols


def _mention(
    source: bytes, spans: Mapping[int, int], ends: Sequence[int], mentions: dict[bytes, list[int]], before: int
) -> None:
    """Add the line of each span to what its name has."""
    at, edge = 0, ends[0]
    line = before + 1
    look = mentions.get
    # Captures come in no order.
    for start in sorted(spans):
        if start >= edge:
            at = bisect_right(ends, start, at)
            line, edge = before + at + 1, ends[at]
        word = source[start : spans[start]]
        lines = look(word)
        if lines is None:
            mentions[word] = [line]
        elif lines[-1] != line:
            lines.append(line)
