"""What an agent is told of a project's code before it begins: a map of what is exported, and what its task names. Pure.

A symbol is what the tool `code_symbols` shows of one: its name, kind, path and lines.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

Symbol = Mapping[str, Any]
MAP_LINES = 200
MATCHES = 20
WORDS = 12
LEAST_LETTERS = 3
FIRST = ("src", "server", "lib", "packages")
"""The folders in which projects keep what they are about."""
_TEST_FOLDER = re.compile(r"(^|/)(tests?|specs?|__tests__|e2e|testdata|fixtures)/", re.IGNORECASE)
_TEST_FILE = re.compile(r"(^|/)(test_[^/]*|[^/]*[._-](test|spec|tests))\.\w+$", re.IGNORECASE)
_WORD = re.compile(r"[^\W\d]\w*")
_CODE_LIKE = re.compile(r"_|[a-z][A-Z]|\d")
_COMMON = frozenset(
    {
        *("about", "add", "after", "all", "also", "and", "any", "are", "because", "been", "before", "but"),
        *("can", "change", "code", "could", "create", "does", "done", "each", "every", "file", "files", "fix"),
        *("for", "from", "function", "get", "has", "have", "here", "how", "implement", "into", "its", "like"),
        *("make", "more", "must", "need", "needs", "new", "nor", "not", "now", "old", "one", "only", "other"),
        *("our", "out", "over", "put", "remove", "same", "set", "shall", "should", "show", "some", "such"),
        *("test", "tests", "than", "that", "the", "their", "them", "then", "there", "these", "they", "this"),
        *("those", "too", "under", "update", "use", "used", "user", "when", "where", "which", "while", "will"),
        *("with", "work", "would", "write", "yet", "you", "your"),
    }
)
"""Words that name nothing."""


def is_test(path: str) -> bool:
    return _TEST_FOLDER.search(path) is not None or _TEST_FILE.search(path) is not None


def rank(path: str) -> int:
    """How early a file stands in the map: what the project is about first, its tests last."""
    if is_test(path):
        return 2
    return 0 if path.partition("/")[0] in FIRST and "/" in path else 1


def offered(symbols: Iterable[Symbol]) -> list[Symbol]:
    """What others can use: of each file what it exports, or where nothing says so its outermost public names."""
    by_file: dict[str, list[Symbol]] = {}
    for each in symbols:
        by_file.setdefault(str(each["path"]), []).append(each)
    found: list[Symbol] = []
    for members in by_file.values():
        exported = [each for each in members if each.get("exported")]
        found += exported or [each for each in members if not each.get("in") and not str(each["name"]).startswith("_")]
    return found


def repo_map(symbols: Iterable[Symbol], most_lines: int = MAP_LINES) -> str:
    """The exported symbols below the paths of their files, in at most so many lines."""
    own = {(each["path"], each["start_line"], each["name"]): each for each in symbols}
    ordered = sorted(own.values(), key=lambda each: (rank(each["path"]), each["path"], each["start_line"]))
    lines: list[str] = []
    for path, members in groupby(ordered, key=lambda each: str(each["path"])):
        # A path below which nothing stands says nothing.
        if len(lines) + 2 > most_lines:
            break
        lines.append(_clean(path))
        lines += [f"  {_line(each)}" for each in list(members)[: most_lines - len(lines)]]
    return "\n".join(lines)


def words_of(description: str) -> list[str]:
    """The words of a description that may be names in the code, the likeliest first; none of them twice."""
    found: dict[str, str] = {}
    for word in _WORD.findall(description):
        if len(word) >= LEAST_LETTERS and word.lower() not in _COMMON:
            found.setdefault(word.lower(), word)
    likely = sorted(found.values(), key=lambda word: _CODE_LIKE.search(word) is None)
    return likely[:WORDS]


def best_matches(found: Mapping[str, Sequence[Symbol]], most: int = MATCHES) -> list[Symbol]:
    """Of what was found for each word, what has the word in its name: the nearest first, none of them twice."""
    ranked = [
        (_distance(str(each["name"]), word), rank(each["path"]), order, place, each)
        for order, (word, symbols) in enumerate(found.items())
        for place, each in enumerate(symbols)
        if each["kind"] != "import" and word.lower() in str(each["name"]).lower()
    ]
    own = {
        (each["path"], each["start_line"], each["name"]): each for *_, each in sorted(ranked, key=lambda row: row[:4])
    }
    return list(own.values())[:most]


def matches_text(symbols: Sequence[Symbol]) -> str:
    """A line for each."""
    return "\n".join(f"{_line(each)} in {_clean(each['path'])}" for each in symbols)


def _distance(name: str, word: str) -> int:
    plain, wanted = name.lower(), word.lower()
    return 0 if plain == wanted else 1 if plain.startswith(wanted) else 2


def _line(symbol: Symbol) -> str:
    inside = f"{symbol['in']}." if symbol.get("in") else ""
    lines = f"{symbol['start_line']}-{symbol['end_line']}"
    members = f", {symbol['members']} members" if symbol.get("members") else ""
    return _clean(f"{symbol['kind']} {inside}{symbol['name']} [{lines}{members}]")


def _clean(text: str) -> str:
    """One line, whatever a file is called."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)[:300]
