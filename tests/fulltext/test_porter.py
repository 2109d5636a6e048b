"""The stemmer is SQLite's own, letter for letter; so SQLite is asked."""

import sqlite3
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rookery.fulltext.porter import stem

ENDINGS = """
    ational tional enci anci izer logi logy bli bly alli entli eli ousli ization ation ator alism iveness fulness
    ousness aliti ality iviti ivity biliti bility icate ative alize iciti icity ical ful ness al ance ence er ic able
    ible ant ement ment ent sion tion ion ou ism ate iti ity ous ive ize s es ies sses ss ed eed ing y ly ll e at bl iz
"""
WORDS = st.builds(
    lambda start, endings: (start + "".join(endings)) or "x",
    st.text("abeilorstuyxwzc1", max_size=6),
    st.lists(st.sampled_from(ENDINGS.split()), max_size=3),
)


@pytest.fixture(scope="module")
def index() -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE VIRTUAL TABLE words USING fts5 (word, tokenize = 'porter unicode61')")
    connection.execute("CREATE VIRTUAL TABLE stems USING fts5vocab (words, 'instance')")
    yield connection
    connection.close()


@settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(st.lists(WORDS, min_size=20, max_size=60))
def test_every_stem_is_the_one_that_the_index_has(index: sqlite3.Connection, words: list[str]) -> None:
    index.execute("DELETE FROM words")
    index.executemany("INSERT INTO words (rowid, word) VALUES (?, ?)", enumerate(words))
    found = dict(index.execute("SELECT doc, term FROM stems"))
    assert {word: stem(word) for word in words} == {word: found[place] for place, word in enumerate(words)}


def test_forms_of_a_word_have_one_stem() -> None:
    for forms in (
        ("migrate", "migrates", "migrated", "migrating", "migration", "migrations"),
        ("import", "imports", "imported", "importing"),
        ("technology", "technologies", "technological"),
        ("possible", "possibly"),
    ):
        assert len({stem(form) for form in forms}) == 1, forms


def test_very_short_and_very_long_words_stay_as_they_are() -> None:
    for word in ("", "s", "as", "is", "x" * 62 + "ing"):
        assert stem(word) == word
