"""The search by pgvector finds the same rows with the same scores as that in memory, whoever changed the rows."""

import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
import sqlalchemy as sa

from rookery.db.database import Database, open_database
from rookery.db.tx import Tx
from rookery.embedding import pgvector_table
from rookery.embedding.epochs import touch
from rookery.embedding.nearest import Found
from rookery.embedding.pgvector import COMPLETE, PgVectors, beside, state_of
from rookery.embedding.pgvector_table import prepare, prepare_soon
from tests.embedding.vectors import DIMS, EMBEDDER, TABLE, add, new_matrix, open_pieces, remove, vector

ROOT = Path(__file__).parents[2]
PROCESS_LIMIT_S = 60
MOST = 1000


class NoPlain:
    """Takes the place of the search in memory where pgvector has to do it."""

    embedder = EMBEDDER

    def search(self, tx: Tx, query: bytes, projects: Sequence[str], k: int) -> Found:
        raise AssertionError("the vectors were searched in memory")


@pytest.fixture
def bare(pgvector_url: str) -> Iterator[Database]:
    """Pieces, on a server that has pgvector, before anybody asked for it."""
    with closing(open_pieces(pgvector_url)) as database:
        yield database


@pytest.fixture
def pieces(bare: Database) -> Database:
    """Pieces that pgvector searches."""
    prepare(bare, TABLE)
    return bare


def put(database: Database, project: str, *seeds: int, embedder: str = EMBEDDER) -> list[int]:
    return database.direct(lambda tx: add(tx, project, seeds, embedder), write=True)


def by_pgvector(
    database: Database, seed: int, projects: Sequence[str], k: int = MOST, embedder: str = EMBEDDER
) -> Found:
    nearest = PgVectors(TABLE, embedder, DIMS, NoPlain())
    return database.direct(lambda tx: nearest.search(tx, vector(seed), projects, k))


def numbers(found: Found) -> list[int]:
    return [seq for seq, _ in found]


def agree(database: Database, projects: Sequence[str], seeds: Sequence[int] = (7, 1000, 1001), k: int = MOST) -> None:
    """Both ways find the same, from a memory that was read just now."""
    for seed in seeds:
        matrix = new_matrix()
        plain = database.direct(lambda tx, seed=seed, matrix=matrix: matrix.search(tx, vector(seed), projects, k))
        found = by_pgvector(database, seed, projects, k)
        assert numbers(found) == numbers(plain)
        assert [score for _, score in found] == pytest.approx([score for _, score in plain], abs=1e-5)


def test_both_ways_find_the_same_rows_with_the_same_scores(pieces: Database) -> None:
    put(pieces, "p", *range(300))
    put(pieces, "q", *range(300, 400))
    put(pieces, "p", *range(400, 450), embedder="model-2")
    for k in (1, 20, MOST):
        for projects in (["p"], ["q"], ["p", "q"], ["q", "nobody"]):
            agree(pieces, projects, k=k)


def test_rows_with_the_same_vector_come_in_the_same_order(pieces: Database) -> None:
    put(pieces, "p", 1, 2, 1, 1, 2)
    agree(pieces, ["p"], seeds=[1, 2], k=3)


def test_a_vector_of_zeros_is_as_far_as_it_is_in_memory(pieces: Database) -> None:
    (seq,) = put(pieces, "p", 1)
    nothing = sa.text(f"UPDATE {TABLE} SET vector = :vector WHERE seq = :seq")
    pieces.direct(lambda tx: tx.run(nothing, [{"vector": bytes(2 * DIMS), "seq": seq}]), write=True)
    assert by_pgvector(pieces, 1, ["p"]) == [(seq, 0.0)]


def test_vectors_of_another_embedder_are_not_compared(pieces: Database) -> None:
    put(pieces, "p", 1, embedder="it's :another")
    (mine,) = put(pieces, "p", 2)
    assert numbers(by_pgvector(pieces, 1, ["p"])) == [mine]
    assert len(by_pgvector(pieces, 1, ["p"], embedder="it's :another")) == 1


def test_a_query_that_cannot_be_compared_finds_nothing(pieces: Database) -> None:
    put(pieces, "p", 1)
    nearest = PgVectors(TABLE, EMBEDDER, DIMS, NoPlain())
    assert pieces.direct(lambda tx: nearest.search(tx, vector(1)[:8], ["p"], 3)) == []
    assert pieces.direct(lambda tx: nearest.search(tx, vector(1), [], 3)) == []


def test_what_another_process_adds_and_removes_is_followed(pieces: Database, pgvector_url: str) -> None:
    put(pieces, "p", 1, 2, 3)
    for change in (["add", "p", "4"], ["remove", "p", "2"]):
        command = [sys.executable, "-m", "tests.embedding.vectors", pgvector_url, *change]
        subprocess.run(command, cwd=ROOT, check=True, timeout=PROCESS_LIMIT_S)
        agree(pieces, ["p"], seeds=[2, 4])
    assert len(by_pgvector(pieces, 1, ["p"])) == 3


def test_a_row_that_gets_another_project_embedder_or_vector_is_found_there(pieces: Database) -> None:
    (seq,) = put(pieces, "p", 1, embedder="model-2")
    for change, projects in ((f"embedder = '{EMBEDDER}'", ["p"]), ("project_id = 'q'", ["q"])):
        assert by_pgvector(pieces, 1, projects) == []
        pieces.direct(lambda tx, change=change: tx.run(sa.text(f"UPDATE {TABLE} SET {change}")), write=True)
        assert numbers(by_pgvector(pieces, 1, projects)) == [seq]
    pieces.direct(lambda tx: tx.run(sa.text(f"UPDATE {TABLE} SET vector = NULL")), write=True)
    assert by_pgvector(pieces, 1, ["q"]) == []


def test_a_row_that_is_taken_back_leaves_no_vector(pieces: Database) -> None:
    def fail(tx: Tx) -> None:
        add(tx, "p", [1])
        raise ValueError("on second thoughts")

    with pytest.raises(ValueError, match="second"):
        pieces.direct(fail, write=True)
    assert by_pgvector(pieces, 1, ["p"]) == []


def test_a_transaction_sees_the_vectors_of_its_own_time(pieces: Database) -> None:
    put(pieces, "p", 1)
    nearest = PgVectors(TABLE, EMBEDDER, DIMS, NoPlain())

    def read(tx: Tx) -> tuple[Found, Found]:
        before = nearest.search(tx, vector(1), ["p"], 5)
        put(pieces, "p", 2)
        return before, nearest.search(tx, vector(1), ["p"], 5)

    before, meanwhile = pieces.direct(read)
    assert (len(before), len(meanwhile), len(by_pgvector(pieces, 1, ["p"]))) == (1, 1, 2)


def test_rows_from_before_the_extension_are_found(bare: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pgvector_table, "BATCH", 40)
    put(bare, "p", *range(100))
    put(bare, "p", 100, embedder="model-2")
    prepare(bare, TABLE)
    put(bare, "p", 200)
    assert len(by_pgvector(bare, 1, ["p"])) == 101
    agree(bare, ["p"])


def test_until_every_row_is_ready_memory_is_searched(bare: Database) -> None:
    seqs = put(bare, "p", *range(20))
    nearest = PgVectors(TABLE, EMBEDDER, DIMS, new_matrix())

    def found(tx: Tx) -> list[int]:
        return sorted(numbers(nearest.search(tx, vector(1), ["p"], MOST)))

    assert bare.direct(found) == seqs
    bare.direct(lambda tx: pgvector_table._made(tx, TABLE), write=True)  # pyright: ignore[reportPrivateUsage]
    late = put(bare, "p", 50)
    assert bare.direct(found) == [*seqs, *late]

    def begun_before(tx: Tx) -> list[int]:
        tx.scalar(sa.text("SELECT 1"))
        prepare(bare, TABLE)
        return found(tx)

    assert bare.direct(begun_before) == [*seqs, *late]
    assert sorted(numbers(by_pgvector(bare, 1, ["p"]))) == [*seqs, *late]


def test_what_was_stopped_half_way_goes_on_from_there(bare: Database) -> None:
    put(bare, "p", *range(30))
    bare.direct(lambda tx: pgvector_table._made(tx, TABLE), write=True)  # pyright: ignore[reportPrivateUsage]
    some = sa.text(f"UPDATE {TABLE} SET project_id = 'p' WHERE seq % 2 = 0")
    bare.direct(lambda tx: tx.run(some), write=True)
    assert bare.direct(lambda tx: tx.scalar(sa.text(f"SELECT count(*) FROM {beside(TABLE)}"))) == 15
    prepare(bare, TABLE)
    agree(bare, ["p"])


def test_several_servers_prepare_at_once_while_rows_are_written(bare: Database, pgvector_url: str) -> None:
    put(bare, "p", *range(200))
    threads = [prepare_soon(pgvector_url, TABLE) for _ in range(3)]
    with ThreadPoolExecutor(1) as writer:
        wrote = [writer.submit(put, bare, "p", seed) for seed in range(200, 230)]
        gone = writer.submit(bare.direct, lambda tx: remove(tx, "p", range(0, 200, 7)), write=True)
        for thread in threads:
            thread.join(PROCESS_LIMIT_S)
        assert [len(each.result(PROCESS_LIMIT_S)) for each in wrote] == [1] * 30
        gone.result(PROCESS_LIMIT_S)
    state = bare.direct(lambda tx: state_of(tx, TABLE))
    assert state is not None
    assert state.state == COMPLETE
    agree(bare, ["p"])


def test_every_number_of_16_bits_is_understood(pieces: Database) -> None:
    every = np.arange(65536, dtype=np.uint16).view(np.float16)
    finite = every[np.isfinite(every)]
    read = sa.text("SELECT half_floats(:halves)")
    for part in np.array_split(finite, 64):
        found = pieces.direct(lambda tx, part=part: tx.scalar(read, {"halves": part.astype("<f2").tobytes()}))
        assert np.array_equal(np.array(found, dtype=np.float32), part.astype(np.float32))


def test_touching_a_project_is_not_needed_to_be_found(pieces: Database) -> None:
    put(pieces, "p", 1)
    copied = sa.text(
        f"INSERT INTO {TABLE} (project_id, label, embedder, vector) SELECT 'q', label, embedder, vector FROM {TABLE}"
    )
    pieces.direct(lambda tx: tx.run(copied), write=True)
    assert len(by_pgvector(pieces, 1, ["q"])) == 1
    pieces.direct(lambda tx: touch(tx, TABLE, "q"), write=True)
    agree(pieces, ["p", "q"])


def test_one_server_searches_by_pgvector_what_another_that_does_not_writes(bare: Database, pgvector_url: str) -> None:
    with closing(open_database(pgvector_url)) as older:
        put(older, "p", 1)
        prepare(bare, TABLE)
        put(older, "p", 2)
        assert len(by_pgvector(bare, 1, ["p"])) == 2
