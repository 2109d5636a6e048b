"""Above a number of rows an index finds most of the closest; below, and where it does not do, every row is compared."""

from collections.abc import Iterator, Sequence
from contextlib import closing

import pytest
import sqlalchemy as sa
from psycopg import sql

from rookery.db.database import Database
from rookery.db.tx import Tx
from rookery.embedding.nearest import Found
from rookery.embedding.pgvector import PgVectors, beside, index_of, state_of
from rookery.embedding.pgvector_table import prepare
from tests.embedding.conftest import as_superuser
from tests.embedding.vectors import DIMS, EMBEDDER, TABLE, add, new_matrix, open_pieces, vector

FEW = 200
ODD = "model 2's: 100%"


@pytest.fixture
def many(pgvector_url: str) -> Iterator[Database]:
    """Two thousand pieces of one project, a few of another, and an index."""
    # So few PostgreSQL would rather sort, if it had the choice.
    name = sql.Identifier(sa.make_url(pgvector_url).database or "")
    as_superuser(pgvector_url, sql.SQL("ALTER DATABASE {} SET enable_sort = off").format(name))
    with closing(open_pieces(pgvector_url)) as database:
        put(database, "large", range(2000))
        put(database, "small", range(2000, 2100))
        put(database, "large", range(3000, 3300), ODD)
        prepare(database, TABLE, index_rows=FEW)
        yield database


def put(database: Database, project: str, seeds: Sequence[int], embedder: str = EMBEDDER) -> list[int]:
    return database.direct(lambda tx: add(tx, project, seeds, embedder), write=True)


def is_indexed(database: Database, embedder: str = EMBEDDER) -> bool:
    state = database.direct(lambda tx: state_of(tx, TABLE, embedder))
    return state is not None and state.indexed


def searched(
    database: Database, seed: int, projects: Sequence[str], k: int, embedder: str = EMBEDDER
) -> tuple[Found, bool]:
    """What pgvector finds, and whether it used the index for that."""
    nearest = PgVectors(TABLE, embedder, DIMS, new_matrix(), exact_rows=FEW)
    scans = sa.text("SELECT pg_stat_get_xact_numscans(to_regclass(:index))")

    def work(tx: Tx) -> tuple[Found, bool]:
        found = nearest.search(tx, vector(seed), projects, k)
        return found, tx.scalar(scans, {"index": index_of(TABLE, embedder)}) > 0

    return database.direct(work)


def by_pgvector(database: Database, seed: int, projects: Sequence[str], k: int) -> Found:
    return searched(database, seed, projects, k)[0]


def by_matrix(database: Database, seed: int, projects: Sequence[str], k: int) -> Found:
    matrix = new_matrix()
    return database.direct(lambda tx: matrix.search(tx, vector(seed), projects, k))


def test_every_embedder_with_many_vectors_gets_an_index(many: Database) -> None:
    assert is_indexed(many)
    assert is_indexed(many, ODD)
    found, by_index = searched(many, 3007, ["large"], 5, ODD)
    assert by_index
    assert found[0][1] == pytest.approx(1.0, abs=2e-3)
    assert not is_indexed(many, "model-3")


def test_few_vectors_get_none(pgvector_url: str) -> None:
    with closing(open_pieces(pgvector_url)) as database:
        put(database, "p", range(100))
        prepare(database, TABLE, index_rows=FEW)
        assert not is_indexed(database)


def test_the_index_finds_nearly_all_of_the_closest(many: Database) -> None:
    hits = 0
    for seed in range(5000, 5020):
        plain = dict(by_matrix(many, seed, ["large", "small"], 50))
        found, by_index = searched(many, seed, ["large", "small"], 50)
        assert by_index
        assert len(found) == 50
        assert found == sorted(found, key=lambda row: (-row[1], -row[0]))
        assert {seq: score for seq, score in found if seq in plain} == pytest.approx(
            {seq: plain[seq] for seq, _ in found if seq in plain}, abs=1e-5
        )
        hits += len(plain.keys() & dict(found).keys())
    assert hits >= 0.95 * 20 * 50


def test_a_small_project_is_compared_row_by_row(many: Database) -> None:
    for seed in (1, 2, 5000):
        found, by_index = searched(many, seed, ["small"], 50)
        assert not by_index
        assert [seq for seq, _ in found] == [seq for seq, _ in by_matrix(many, seed, ["small"], 50)]


def test_as_many_as_are_asked_for_are_found_although_the_index_has_fewer(many: Database) -> None:
    found, plain = (way(many, 1, ["large"], 5000) for way in (by_pgvector, by_matrix))
    assert sorted(seq for seq, _ in found) == sorted(seq for seq, _ in plain)
    assert len(found) == 2000


def test_rows_that_come_and_go_are_followed_by_the_index(many: Database) -> None:
    (new,) = put(many, "large", [7000])
    assert by_pgvector(many, 7000, ["large"], 5)[0][0] == new
    many.direct(lambda tx: tx.run(sa.text(f"DELETE FROM {TABLE} WHERE seq = {new}")), write=True)
    assert new not in dict(by_pgvector(many, 7000, ["large"], 5))


def test_an_index_that_was_stopped_half_way_is_built_anew(many: Database) -> None:
    unusable = sa.text("UPDATE pg_index SET indisvalid = false WHERE indexrelid = to_regclass(:name)")
    many.direct(lambda tx: tx.run(unusable, [{"name": index_of(TABLE, EMBEDDER)}]), write=True)
    assert not is_indexed(many)
    assert len(by_pgvector(many, 1, ["large"], 5)) == 5
    prepare(many, TABLE, index_rows=FEW)
    assert is_indexed(many)
    kept = sa.text("SELECT count(*) FROM pg_indexes WHERE tablename = :table")
    assert many.direct(lambda tx: tx.scalar(kept, {"table": beside(TABLE)})) == 4
