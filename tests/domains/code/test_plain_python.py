"""The short way through Python files: it finds what the query finds, or leaves the file to it."""

import dataclasses
import os
import sysconfig
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rookery.domains.code.extract import Row, extract
from rookery.domains.code.grammars import Grammar, language_of, load

language = language_of("a.py", b"")
assert language is not None
SHORT: Grammar = load(language)
LONG = dataclasses.replace(SHORT, plain=None)
STATEMENTS = [
    "x = 1", "x, y = 1, x", "(x) = 2", "x: int = y", "x = x = y", "x += 1", "if x:", "else:", "try:", "finally:",
    "except E as e:", "for i in x:", "while x:", "with x as y:", "class A(B, c=d):", "async def f(a, *b: C) -> D:",
    "def g(): return g", "@x.y(z)", "pass", "return", "import a.b as c", "from . import d, e", "lambda x: x.y",
    "from __future__ import annotations", "async with a: pass", "x = [a async for a in b]", "global x", "# x y",
    "'x'", '"x"', "b'x' 'y'", "x = '''a", "b'''", '"""x', 'y"""', "f'{x!r:>{w}} y {z}'", 'f"a{{b}}{c}"', "rb'\\''",
    'f"""{', 'x}"""', 'f"{d["k"]}"', "return'x'", "x = 1.e5", "y = 1.5e3j", "z = 0x1F", "e1.exception", "print x",
    "print(x)", "match x:", "match = 1", "case _:", "type X = int", "type(x)", "exec 'x'", "x = \\", "y)", "(x,",
    "é = ñ", "x = 'é'", "x; y = 2; def_ = 3", "\tx", "\r", "t'{x}'", "u'x'", "if'x'in y: pass", "'", '"', "'''", "\f",
]  # fmt: skip
LINES = st.tuples(st.integers(0, 3), st.sampled_from(STATEMENTS)).map(lambda each: "    " * each[0] + each[1])


def found(source: bytes, grammar: Grammar) -> tuple[list[Row], dict[bytes, list[int]]]:
    mentions: dict[bytes, list[int]] = {}
    return extract(source, grammar, mentions), mentions


@settings(deadline=None, max_examples=400)
@given(st.lists(LINES, max_size=12).map("\n".join))
def test_whatever_stands_in_a_file_both_ways_find_the_same(text: str) -> None:
    assert found(text.encode(), SHORT) == found(text.encode(), LONG)


def test_in_files_of_the_standard_library_both_ways_find_the_same() -> None:
    library = Path(sysconfig.get_path("stdlib"))
    files = [*library.glob("*.py"), *library.glob("asyncio/*.py")][::3]
    assert len(files) > 50
    short = 0
    for file in files:
        source = file.read_bytes()
        assert found(source, SHORT) == found(source, LONG), file
        short += SHORT.plain is not None and SHORT.plain.taken(source) is not None
    assert short > 0.9 * len(files)


@pytest.mark.parametrize(
    "source",
    [
        b"def f(:\n",
        b"x = '\n",
        b"'''x\n",
        b"match x:\n    case _: pass\n",
        b"x = 1.e5\n",
        b'f"{d["k"]}"\n',
        b"print x\n",
    ],
)
def test_what_is_broken_or_unclear_is_left_to_the_query(source: bytes) -> None:
    assert SHORT.plain is not None
    assert SHORT.plain.taken(source) is None


def test_keywords_of_python_stay_names_of_other_languages() -> None:
    mentions = {b"class": [1], b"lambda": [2]}
    assert extract(b"class A:\n    x = lambda: A\n", SHORT, mentions, 10)[0][:2] == ["A", "class"]
    assert mentions == {b"class": [1], b"lambda": [2], b"A": [12]}


def test_a_file_of_quotes_takes_no_time() -> None:
    for piece in (b'\\"""', b"'", b'"\\', b"'''\"\"\"", b'f"{', b"#'", b'"""\\'):
        found(piece * (200_000 // len(piece)) + os.urandom(8).hex().encode(), SHORT)
