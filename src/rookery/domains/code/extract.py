"""Takes out of a file what it defines and what it mentions, by the query of its language.

The query captures a definition by its kind and its name as `name`, every identifier as `ref`, what is visible from
outside as `exported`, and what a method says it belongs to as `container`. All of this runs for every identifier of a
project, hence plain tuples and lists, and no call for each.
"""

import json
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

from rookery.domains.code.grammars import Grammar

if TYPE_CHECKING:
    from tree_sitter import Node

MAX_NAME = 200
"""Characters. Whatever is longer was made by a machine for no reader."""
HOLDERS = frozenset({"class", "interface", "implementation", "enum"})
"""A function in one of these is its method."""
# Of two captures of one piece of code the one that says more about it.
_VAGUE = frozenset({"variable", "type_alias"})
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
    """The symbols of a file, each as the fields of `Symbol`, the outer before the inner. Broken code is no error: what
    can be read of it counts.

    To `mentions` is added in which lines each name stands that is not being defined there; lines are counted on from
    `before`.
    """
    from tree_sitter import QueryCursor

    tree = grammar.parser.parse(source)
    found = QueryCursor(grammar.query).captures(tree.root_node)
    refs, names = found.pop("ref", ()), _spans(found.pop("name", ()))
    exported, containers = set(_spans(found.pop("exported", ()))), _spans(found.pop("container", ()))
    ends = list(accumulate(len(line) + 1 for line in source.split(b"\n")))
    spans = {node.start_byte: node.end_byte for node in refs}
    for start, _ in names:
        spans.pop(start, None)
    _mention(source, spans, ends, mentions, before)
    if not found:
        return []
    definitions = _definitions(found)
    named = _named(definitions, names, source)
    owners = _named(definitions, containers, source) if containers else {}
    return _symbols(definitions, named, owners, exported, ends)


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
