"""The short way through Python files without mistakes, which finds what the query of the language finds, in less time.

Such a file can be taken apart before it is parsed: what stands in comments and strings is dropped, which leaves the
parser less to do, and every word of the rest is a name or a keyword. Definitions stand in blocks alone, so expressions
need no look. Files with mistakes, and with statements in which a keyword may be a name, are left to the query.
"""

import keyword
import re
from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from tree_sitter import Language, Node, Parser, Query

Span = tuple[int, int]
Found = tuple[int, int, str, list[Span]]
"""The start of a definition, its end below zero, its kind and its names."""
# Possessive: no string is looked at twice.
_STRING = re.compile(
    rb'"(?!"")[^"\\\n]*+(?:\\.[^"\\\n]*+)*+"'
    rb"|'(?!'')[^'\\\n]*+(?:\\.[^'\\\n]*+)*+'"
    rb'|"""[^"\\]*+(?:(?:\\.|"(?!""))[^"\\]*+)*+"""'
    rb"|'''[^'\\]*+(?:(?:\\.|'(?!''))[^'\\]*+)*+'''",
    re.DOTALL,
)
_PREFIX = frozenset(b"rRbBuUfFtT")
_FORMATTED = frozenset(b"fFtT")
_LETTERS = frozenset(byte for byte in range(256) if byte >= 0x80 or chr(byte).isalnum() or byte == ord("_"))
# Everything that is in no word, and ends no line, becomes a space.
_WORDS = bytes(byte if byte in _LETTERS or byte == ord("\n") else ord(" ") for byte in range(256))
_NINE = ord("9")
"""What begins with this byte or a lower one is a number."""
_LOOSE_EXPONENT = re.compile(rb"\.(?<=[0-9]\.)(?:[eE][0-9+-]|[jJ]\b)")
"""`1.e5`: its end would look like a name."""
_KEYWORDS = tuple(word.encode() for word in keyword.kwlist)
_OUTER = (
    "block", "class_definition", "function_definition", "decorated_definition", "if_statement", "elif_clause",
    "else_clause", "try_statement", "except_clause", "finally_clause", "with_statement", "for_statement",
    "while_statement",
)  # fmt: skip
_IMPORTS = ("import_statement", "import_from_statement", "future_import_statement")
_INNER = (b"def", b"class", b"import", b"match", b"type", b"print", b"exec")
"""A function without any of these has nothing inside that has to be looked at."""
_UNCLEAR = ("match_statement", "type_alias_statement", "print_statement", "exec_statement")


class Plain(NamedTuple):
    """A file without what was dropped, with its lines where they were.

    `kinds` and `names` are of its definitions in their order, `imports` the names of what is taken from elsewhere, and
    `formatted` strings, each with the names in it.
    """

    text: bytes
    kinds: dict[Span, str]
    names: list[list[Span]]
    imports: list[Span]
    formatted: list[tuple[Span, list[Span]]]


class PlainPython:
    """Takes files apart. Not to be used by two threads at once."""

    def __init__(self, language: "Language", parser: "Parser", query: "Query") -> None:
        from tree_sitter import QueryCursor

        def number(kind: str) -> int:
            return language.id_for_node_kind(kind, True) or -1

        self._parser = parser
        self._refs = QueryCursor(query)
        self._outer = frozenset(map(number, _OUTER))
        self._unclear = frozenset(map(number, _UNCLEAR))
        self._imports = frozenset(map(number, _IMPORTS))
        self._alias = number("aliased_import")
        self._kinds = {number("class_definition"): "class", number("function_definition"): "function"}
        self._expression, self._assignment = number("expression_statement"), number("assignment")
        self._block = number("block")
        self._paths = frozenset({number("dotted_name"), number("relative_import")})
        self._name, self._several = number("identifier"), number("pattern_list")
        self._string_start = number("string_start")

    def taken(self, source: bytes) -> Plain | None:
        """The parts of a file; None if it has to be read in the long way."""
        stripped = _stripped(source)
        if stripped is None:
            return None
        text, strings = stripped
        root = self._parser.parse(text).root_node
        if root.has_error or _LOOSE_EXPONENT.search(text):
            return None
        imports: list[Span] = []
        found = self._definitions(root, text, imports)
        formatted = self._formatted(root, strings)
        if found is None or formatted is None:
            return None
        found.sort()
        kinds = {(start, -end): kind for start, end, kind, _ in found}
        return Plain(text, kinds, [names for _, _, _, names in found], imports, formatted)

    def _definitions(self, root: "Node", text: bytes, imports: list[Span]) -> list[Found] | None:
        """The definitions in no order; None if there are keywords that may be names. What is imported is added."""
        within = text.find
        found: list[Found] = []
        waiting = [(root, True)]
        while waiting:
            around, has_variables = waiting.pop()
            for node in around.named_children:
                kind = node.kind_id
                if kind in self._outer:
                    what = self._kinds.get(kind)
                    if what is not None:
                        names = _spans(node.children_by_field_name("name"))
                        end = node.end_byte
                        found.append((node.start_byte, -end, what, names))
                        first = names[0][1] if names else end
                        if what == "function" and not any(within(word, first, end) >= 0 for word in _INNER):
                            continue
                    waiting.append((node, what == "class" or (kind == self._block and has_variables)))
                elif kind == self._expression and has_variables:
                    self._variables(node, around is root, found)
                elif kind in self._imports:
                    imports += _spans(self._imported(node))
                elif kind in self._unclear:
                    return None
        return found

    def _imported(self, statement: "Node") -> "Iterator[Node]":
        """The names in a statement, without those that are given to them here."""
        for node in statement.named_children:
            named = node.child_by_field_name("name") if node.kind_id == self._alias else node
            if named is not None and named.kind_id in self._paths:
                yield named

    def _variables(self, statement: "Node", several: bool, found: list[Found]) -> None:
        """What a statement assigns to, if that is a name; `several`: or if it is some names."""
        node = statement.named_child(0)
        left = node.child_by_field_name("left") if node is not None and node.kind_id == self._assignment else None
        if node is None or left is None:
            return
        names = [left] if left.kind_id == self._name else []
        if several and left.kind_id == self._several:
            names = [each for each in left.named_children if each.kind_id == self._name]
        if names:
            found.append((node.start_byte, -node.end_byte, "variable", _spans(names)))

    def _formatted(self, root: "Node", strings: Iterable[Span]) -> list[tuple[Span, list[Span]]] | None:
        """The names in each of some strings; None if the parser sees other strings."""
        found: list[tuple[Span, list[Span]]] = []
        for start, end in strings:
            begin = root.descendant_for_byte_range(start, start + 1)
            whole = begin.parent if begin is not None and begin.kind_id == self._string_start else None
            if whole is None or (whole.start_byte, whole.end_byte) != (start, end):
                return None
            found.append(((start, end), sorted(_spans(self._refs.captures(whole).get("ref", ())))))
        return found


def mention(plain: Plain, mentions: dict[bytes, list[int]], before: int) -> None:
    """Add to `mentions` in which lines each name stands that is not being defined there."""
    names: list[tuple[Span, list[Span]]] = [(span, []) for named in plain.names for span in named]
    text = _without(plain.text, sorted([*names, *plain.formatted]))
    kept = {word: lines for word in _KEYWORDS if (lines := mentions.pop(word, None)) is not None}
    look = mentions.get
    for line, words in enumerate(text.translate(_WORDS).split(b"\n"), before + 1):
        for word in words.split():
            lines = look(word)
            if lines is None:
                if word[0] > _NINE:
                    mentions[word] = [line]
            elif lines[-1] != line:
                lines.append(line)
    for word in _KEYWORDS:
        mentions.pop(word, None)
    # In other languages of the segment they may be names.
    mentions |= kept


def _without(text: bytes, spans: Iterable[tuple[Span, list[Span]]]) -> bytes:
    """The text without some spans, except for those parts of them that are named; all lines stay where they are."""
    pieces: list[bytes] = []
    at = 0
    for (start, end), shown in spans:
        pieces.append(text[at:start])
        at = start
        for first, last in shown:
            pieces.append(b"\n" * text.count(b"\n", at, first) + b" " + text[first:last] + b" ")
            at = last
        if end - at > 1:
            pieces.append(b"\n" * text.count(b"\n", at, end))
        at = end
    pieces.append(text[at:])
    return b"".join(pieces)


def _stripped(source: bytes) -> tuple[bytes, list[Span]] | None:
    """The source with nothing in its strings and comments, and where in it the strings are that may have names in them,
    which stay as they are. None if a string has no end, or has strings in its names."""
    pieces: list[bytes] = []
    whole: list[int] = []
    size, find, at = len(source), source.find, 0
    double = single = comment = -1
    while True:
        # The next of each, of which only those have to be looked for that were passed.
        if double < at and (double := find(b'"', at)) < 0:
            double = size
        if single < at and (single := find(b"'", at)) < 0:
            single = size
        if comment < at and (comment := find(b"#", at)) < 0:
            comment = size
        start = min(double, single, comment)
        if start == size:
            break
        if start == comment:
            pieces.append(source[at : start + 1])
            at = find(b"\n", start)
            if at < 0:
                at = size
            continue
        string = _STRING.match(source, start)
        if string is None:
            return None
        end = string.end()
        prefix = _prefix(source, start) if start and source[start - 1] in _PREFIX else b""
        pieces.append(source[at : start - len(prefix)])
        if prefix and not _FORMATTED.isdisjoint(prefix):
            if string[0].count(b"{") != string[0].count(b"}"):
                return None
            whole.append(len(pieces))
            pieces.append(prefix + string[0])
        else:
            lines = source.count(b"\n", start, end)
            pieces.append(b'"""' + b"\n" * lines + b'"""' if lines else b'""')
        at = end
    pieces.append(source[at:])
    ends = list(accumulate(map(len, pieces))) if whole else []
    return b"".join(pieces), [(ends[number] - len(pieces[number]), ends[number]) for number in whole]


def _prefix(source: bytes, quote: int) -> bytes:
    """The letters that belong to the string at a quote: at most two, in front of which no other is."""
    first = quote - 2 if quote > 1 and source[quote - 2] in _PREFIX else quote - 1
    return b"" if first and source[first - 1] in _LETTERS else source[first:quote]


def _spans(nodes: "Iterable[Node]") -> list[Span]:
    return [(node.start_byte, node.end_byte) for node in nodes]
