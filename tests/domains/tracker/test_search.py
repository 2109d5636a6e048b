"""Both databases hold the same learnings here, and have to find the same ones, with the same scores."""

import contextlib
import random
import string
from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from rookery.core.actor import Actor
from rookery.db.database import Database, open_database
from rookery.db.migrate import migrate
from rookery.domains.tracker.learning_store import Learnings, NewLearning
from rookery.domains.tracker.learning_tables import learnings
from rookery.domains.tracker.search import Match, fts5_query, ranked
from rookery.fulltext.query import MAX_TERMS, bm25, terms, ts_query
from rookery.plugins import load_domains
from tests.databases import PostgresDatabases

HERE = "prj-here"
AGENT = Actor(kind="agent", tenant="ten", subject="agent:ada", project=HERE)
PLAIN = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
SPELLS = (
    '"', "''", "*", "a*", "^a", "NEAR(a b)", "a NEAR/2 b", "AND", "a AND", "NOT a", "OR OR OR", "pattern : a",
    "{a} : b", "- a", "(a", "a)", "a:*A", "a & b", "!a", "a <-> b", "'a':*", "a\\", "%", "_", "a;b--", "$1", ":query",
    "?", "a + b", "\x00", "a\x00b", "\ud800", "🙂🙃", "\ue000", "日本語", "İstanbul ß ﬁ ½ ﷺ ế", "é e\u0301", "!?", "",
    " \n\t", "x" * 10_000, '"' * 10_000, "a " * 5_000,
)  # fmt: skip


class Shelf:
    """The same learnings on SQLite and on PostgreSQL."""

    def __init__(self, databases: Sequence[Database]) -> None:
        self.databases = databases

    def add(
        self, pattern: str, context: str | None = None, *paths: str, project: str = HERE, tenant: str = "ten"
    ) -> None:
        issue: Any = SimpleNamespace(
            id=f"iss-{random.random()}", tenant=tenant, project_id=project, identifier="SYM-001"
        )
        new = NewLearning(pattern=pattern, context=context, applies_to=paths)
        self.run(lambda tx: Learnings(tx, AGENT).add(issue, new), write=True)

    def run(self, work: Callable[[Any], Any], *, write: bool = False) -> list[Any]:
        return [database.direct(work, write=write) for database in self.databases]

    def change(self, statement: sa.Executable) -> None:
        self.run(lambda tx: tx.run(statement), write=True)

    def search(self, query: str, **options: Any) -> dict[str, float]:
        """Patterns with their scores, best first, if both databases say the same."""
        lite, postgres = self.run(lambda tx: Learnings(tx, AGENT).search(query, limit=100, **options))
        expected = {found["pattern"]: found["score"] for found in postgres}
        assert {found["pattern"]: found["score"] for found in lite} == pytest.approx(expected, abs=1e-5), query
        return {found["pattern"]: found["score"] for found in lite}


@pytest.fixture
def shelf(tmp_path: Any, postgres_url: str) -> Iterator[Shelf]:
    with _shelf(f"sqlite:///{tmp_path / 'shelf.db'}", postgres_url) as made:
        yield made


@contextlib.contextmanager
def _shelf(*urls: str) -> Iterator[Shelf]:
    with contextlib.ExitStack() as stack:
        databases = [stack.enter_context(contextlib.closing(open_database(url))) for url in urls]
        for database in databases:
            migrate(database, load_domains(plugins=False).migrations, None)
        yield Shelf(databases)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory, postgres_dsn: PostgresDatabases) -> Iterator[Shelf]:
    """Sixty learnings in words that share beginnings and endings, in three projects."""
    url = postgres_dsn()
    with _shelf(f"sqlite:///{tmp_path_factory.mktemp('library') / 'library.db'}", url) as made:
        for number in range(60):
            chosen = random.Random(number)
            pattern, context, path = (" ".join(chosen.choices(VOCABULARY, k=count)) for count in (9, 12, 2))
            made.add(f"{pattern} {number}", context if number % 3 else None, path, project=f"prj-{number % 3}")
        made.change(sa.update(learnings).where(learnings.c.project_id == "prj-0").values(project_id=HERE))
        yield made
    postgres_dsn.drop(url)


def _vocabulary() -> list[str]:
    chosen = random.Random(4)
    starts = ["".join(chosen.choices("aeioustrnlbgy", k=chosen.randint(1, 5))) for _ in range(40)]
    endings = ["", "s", "ed", "ing", "ation", "ations", "ly", "ness", "logy", "logical", "ible", "ibly", "er", "1"]
    plain = ["cache", "caches", "caching", "import", "imported", "important", "the", "is", "as", "c", "x", "database"]
    return [start + ending for start in starts for ending in chosen.sample(endings, 4)] + plain


VOCABULARY = _vocabulary()


@PLAIN
@given(st.text(st.characters(), max_size=200))
def test_no_text_breaks_a_query_and_both_databases_agree(library: Shelf, text: str) -> None:
    for database in library.databases:
        found = database.direct(lambda tx: Learnings(tx, AGENT).search(text, limit=100))
        assert all(0 <= each["score"] <= 1 for each in found)


@pytest.mark.parametrize("spell", SPELLS, ids=range(len(SPELLS)))
def test_the_syntax_of_either_database_means_nothing_in_a_query(library: Shelf, spell: str) -> None:
    library.search(f"{spell} cache {spell}")
    library.search(spell)


def test_punctuation_alone_finds_nothing(library: Shelf) -> None:
    for text in ("", "  ", "*", '"""', "—…!?", "🙂", "()[]{}^~:&|", "___"):
        assert library.search(text) == {}


@PLAIN
@given(
    st.lists(
        st.one_of(
            st.sampled_from(VOCABULARY),
            st.sampled_from(VOCABULARY).map(lambda word: word[: max(1, len(word) - 2)]),
            st.text(string.ascii_letters + string.digits, min_size=1, max_size=4),
        ),
        min_size=1,
        max_size=5,
    ),
    st.booleans(),
)
@example(["as"], False)
@example(["possibly", "technology"], False)
def test_words_find_the_same_with_the_same_scores(library: Shelf, query: list[str], other: bool) -> None:
    library.search(" ".join(query), cross_project=other)


def test_stems_and_beginnings_match(shelf: Shelf) -> None:
    shelf.add("Migrations of the database are applied once")
    shelf.add("Nothing about that, but about technologies and what is possible")
    for query in ("migration", "MIGRATED", "migrating", "migr", "databas", "data base", "apply once"):
        assert next(iter(shelf.search(query))).startswith("Migrations"), query
    for query in ("technology", "technological", "possibly"):
        assert next(iter(shelf.search(query))).startswith("Nothing"), query
    assert shelf.search("igrations") == {}


def test_paths_and_contexts_are_searched_and_count_less_than_the_pattern(shelf: Shelf) -> None:
    shelf.add("first thing", "where others live", "lib/zebra/")
    shelf.add("second thing", "where zebra live", "lib/others/")
    shelf.add("third zebra", "where others live", "lib/others/")
    assert shelf.search("zebra") == {"third zebra": 0.9, "second thing": 0.78, "first thing": 0.72}


def test_a_path_in_another_alphabet_is_found(shelf: Shelf) -> None:
    shelf.add("some pattern", None, "src/größe/", "src/日本語/", "tiếng/việt/")
    for query in ("größe", "GRÖßE", "große", "gro\u0308ße", "日本語", "日本", "TIẾNG", "tieng", "viet"):
        assert len(shelf.search(query)) == 1, query


def test_every_word_is_wanted_before_any_is_enough(shelf: Shelf) -> None:
    for number in range(5):
        shelf.add(f"cache invalidation {number}")
    shelf.add("cache alone")
    assert "cache alone" not in shelf.search("cache invalidation")
    assert "cache alone" in shelf.search("cache invalidation 3")


def test_stop_words_are_left_out_unless_nothing_else_is_asked_for(shelf: Shelf) -> None:
    shelf.add("the cache of the server")
    shelf.add("where there is nothing else")
    assert list(shelf.search("what is the cache")) == ["the cache of the server"]
    assert list(shelf.search("where there is")) == ["where there is nothing else"]


def test_one_letter_is_a_word_and_not_a_beginning(shelf: Shelf) -> None:
    shelf.add("c has no exceptions")
    shelf.add("cobol has no exceptions")
    assert list(shelf.search("c")) == ["c has no exceptions"]


def test_a_word_longer_than_any_index_takes_is_kept_and_found_by_its_beginning(shelf: Shelf) -> None:
    shelf.add("x" * 5_000, "z" * 4_000)
    assert len(shelf.search("x" * 100)) == len(shelf.search("x" * 6_000)) == len(shelf.search("zzzz")) == 1


def test_a_word_repeated_thousands_of_times_is_kept(shelf: Shelf) -> None:
    shelf.add("again " * 833)
    assert len(shelf.search("again")) == 1


def test_the_project_of_a_learning_is_no_word_of_it(shelf: Shelf) -> None:
    shelf.add("a pattern")
    hexadecimal = HERE.encode().hex()
    for query in ("prj", HERE, hexadecimal, f"\ue000{hexadecimal}", "e000"):
        assert shelf.search(query) == {}, query


def test_the_mark_of_another_project_in_a_text_does_not_make_it_visible_there(shelf: Shelf) -> None:
    mark = f"\ue000{f'ten {HERE}'.encode().hex()}"
    shelf.add(f"zebra {mark}", project="prj-there")
    shelf.add(f"zebra of a stranger {mark}", tenant="other")
    assert shelf.search("zebra") == {}


def test_what_is_changed_or_removed_is_found_no_longer(shelf: Shelf) -> None:
    lite = shelf.databases[0]
    shelf.add("old zebra", None, "lib/")
    shelf.change(sa.update(learnings).values(project_id="prj-there"))
    assert shelf.search("zebra") == {}
    shelf.change(sa.update(learnings).values(project_id=HERE, quality_score=80))
    assert shelf.search("zebra") == {"old zebra": pytest.approx(0.96)}
    text = {"pattern": "new lion", "context": "cat", "applies_to": ["plains/"]}
    lite.direct(lambda tx: tx.run(sa.update(learnings).values(**text)), write=True)
    for query, count in {"zebra": 0, "lib": 0, "lion": 1, "cat": 1, "plains": 1}.items():
        assert len(lite.direct(lambda tx, query=query: Learnings(tx, AGENT).search(query, limit=5))) == count
    shelf.change(sa.delete(learnings))
    assert shelf.search("lion cat plains zebra") == {}
    shelf.add("new zebra")
    assert list(shelf.search("zebra")) == ["new zebra"]


def test_a_row_that_is_replaced_on_sqlite_leaves_no_words_behind(shelf: Shelf) -> None:
    lite = shelf.databases[0]
    left = sa.text("SELECT count(*) FROM learnings_fts WHERE learnings_fts MATCH 'zebra'")
    check = sa.text("INSERT INTO learnings_fts (learnings_fts) VALUES ('integrity-check')")
    shelf.add("old zebra")
    for _ in range(3):
        lite.direct(lambda tx: tx.run(sa.text("REPLACE INTO learnings SELECT * FROM learnings")), write=True)
    assert lite.direct(lambda tx: tx.scalar(left)) == 1
    lite.direct(lambda tx: tx.run(sa.delete(learnings)), write=True)
    assert lite.direct(lambda tx: tx.scalar(left)) == 0
    lite.direct(lambda tx: tx.run(check), write=True)


def test_a_query_has_at_most_so_many_terms_and_none_twice() -> None:
    assert [term.word for term in terms("Caching cache CACHES cached the lion")] == ["Caching", "lion"]
    assert len(terms(" ".join(f"word{number}" for number in range(5_000)))) == MAX_TERMS


def test_whatever_is_asked_queries_are_quoted_words() -> None:
    asked = terms('x" OR c NEAR/3 (a:*)')
    assert fts5_query(asked, "every", "t", ["p"]) == '("\ue000742070") AND ("x" AND "c" AND "NEAR"* AND "3")'
    assert ts_query(asked, "any", "A") == "'x':A | 'c':A | 'near':*A | '3':A"


def test_bm25_is_that_of_sqlite() -> None:
    assert bm25([2, 0], [1, 3], 10, 20, 10.0) == pytest.approx(2.5649493575 * 2 * 2.2 / 3.2)
    assert bm25([1], [15], 10, 20, 10.0) == pytest.approx(1e-6)


def test_the_score_is_half_relevance_then_field_then_quality() -> None:
    found = [Match(1, 4.0, 0.4, 100), Match(2, 2.0, 1.0, 50), Match(3, 3.0, 0.6, 0)]
    assert [(match.seq, score) for match, score in ranked(found, 9)] == [(1, 0.82), (3, 0.43), (2, 0.4)]
    assert [(match.seq, score) for match, score in ranked([Match(1, 0.1, 1.0, 50)], 9)] == [(1, 0.9)]
    assert ranked([], 9) == []


def test_of_equals_the_newest_comes_first() -> None:
    found = [Match(seq, 1.0, 1.0, 50) for seq in (2, 9, 4)]
    assert [match.seq for match, _ in ranked(found, 2)] == [9, 4]
