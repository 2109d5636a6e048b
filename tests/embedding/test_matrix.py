"""The search among vectors finds what an exhaustive comparison finds, whoever changed the rows."""

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import sqlalchemy as sa

from rookery.db.database import Database, open_database
from rookery.db.tx import Tx
from rookery.embedding.epochs import touch
from rookery.embedding.matrix import PAGE_ROWS, Found, Page, cosines, packed
from tests.embedding.vectors import DIMS, TABLE, add, closest, new_matrix, remove, vector

ROOT = Path(__file__).parents[2]
PROCESS_LIMIT_S = 60


def put(database: Database, project: str, *seeds: int, embedder: str = "model-1") -> list[int]:
    return database.direct(lambda tx: add(tx, project, seeds, embedder), write=True)


def take(database: Database, project: str, *seeds: int) -> None:
    database.direct(lambda tx: remove(tx, project, seeds), write=True)


def in_another_process(url: str, *change: str) -> None:
    command = [sys.executable, "-m", "tests.embedding.vectors", url, *change]
    subprocess.run(command, cwd=ROOT, check=True, timeout=PROCESS_LIMIT_S)


def compared(seqs: list[int], seeds: list[int], wanted: int, k: int) -> list[int]:
    """The numbers of the closest rows, by comparing with each."""
    scores = cosines(vector(wanted), [vector(seed) for seed in seeds])
    return [seq for _, seq in sorted(zip(scores, seqs, strict=True), reverse=True)][:k]


def numbers(found: Found) -> list[int]:
    return [seq for seq, _ in found]


def test_a_project_that_has_no_vectors_has_no_neighbours(pieces: Database) -> None:
    put(pieces, "other", 1)
    assert closest(pieces, new_matrix(), 1, ["empty"]) == []


def test_only_the_given_projects_are_searched(pieces: Database) -> None:
    (mine,), (second,), _ = put(pieces, "mine", 1), put(pieces, "second", 2), put(pieces, "foreign", 3)
    matrix = new_matrix()
    assert numbers(closest(pieces, matrix, 3, ["mine"])) == [mine]
    assert sorted(numbers(closest(pieces, matrix, 3, ["mine", "second"]))) == [mine, second]


def test_the_same_vector_is_found_first_with_a_cosine_of_one(pieces: Database) -> None:
    seqs = put(pieces, "p", *range(50))
    (seq, cosine), *_ = closest(pieces, new_matrix(), 17, ["p"])
    assert seq == seqs[17]
    assert cosine == pytest.approx(1.0, abs=2e-3)
    assert cosine <= 1.0


def test_it_finds_what_an_exhaustive_comparison_finds(pieces: Database) -> None:
    seeds = list(range(300))
    seqs = put(pieces, "p", *seeds)
    matrix = new_matrix()
    for wanted in (1000, 1001, 1002):
        assert numbers(closest(pieces, matrix, wanted, ["p"], k=20)) == compared(seqs, seeds, wanted, 20)


def test_vectors_of_another_embedder_are_not_compared(pieces: Database) -> None:
    put(pieces, "p", 1, embedder="model-2")
    (mine,) = put(pieces, "p", 2)
    assert numbers(closest(pieces, new_matrix(), 1, ["p"])) == [mine]


def test_a_query_of_another_length_finds_nothing(pieces: Database) -> None:
    put(pieces, "p", 1)
    matrix = new_matrix()
    assert pieces.direct(lambda tx: matrix.search(tx, vector(1)[:8], ["p"], 3)) == []


def test_rows_that_another_process_adds_are_found(pieces: Database, database_url: str) -> None:
    put(pieces, "p", 1)
    matrix = new_matrix()
    assert len(closest(pieces, matrix, 2, ["p"])) == 1
    in_another_process(database_url, "add", "p", "2")
    (_, cosine), *rest = closest(pieces, matrix, 2, ["p"])
    assert cosine == pytest.approx(1.0, abs=2e-3)
    assert len(rest) == 1


def test_rows_that_another_process_removes_are_gone(pieces: Database, database_url: str) -> None:
    first, _, third = put(pieces, "p", 1, 2, 3)
    matrix = new_matrix()
    assert len(closest(pieces, matrix, 2, ["p"])) == 3
    in_another_process(database_url, "remove", "p", "2")
    assert sorted(numbers(closest(pieces, matrix, 2, ["p"]))) == [first, third]


def test_a_row_that_replaces_another_is_not_taken_for_it(pieces: Database) -> None:
    put(pieces, "p", 1)
    matrix = new_matrix()
    closest(pieces, matrix, 1, ["p"])
    take(pieces, "p", 1)
    (new,) = put(pieces, "p", 2)
    ((seq, cosine),) = closest(pieces, matrix, 2, ["p"])
    assert (seq, cosine) == (new, pytest.approx(1.0, abs=2e-3))


def test_two_handles_follow_each_other_through_many_changes(pieces: Database, database_url: str) -> None:
    other = open_database(database_url)
    matrices = [(pieces, new_matrix()), (other, new_matrix())]
    living: dict[int, int] = {}
    for step in range(30):
        database, _ = matrices[step % 2]
        seeds = [3 * step, 3 * step + 1, 3 * step + 2]
        living |= dict(zip(seeds, put(database, "p", *seeds), strict=True))
        if step % 3 == 2:
            gone = [seed for seed in living if seed % 5 == step % 5]
            take(database, "p", *gone)
            living = {seed: seq for seed, seq in living.items() if seed not in gone}
        for reader, matrix in matrices:
            found = numbers(closest(reader, matrix, 5000 + step, ["p"], k=100))
            assert found == compared(list(living.values()), list(living), 5000 + step, 100)
    other.close()


def test_a_row_that_gets_its_vector_later_is_found(pieces: Database) -> None:
    late, early = put(pieces, "p", 1, embedder="model-2"), put(pieces, "p", 2)
    matrix = new_matrix()
    assert numbers(closest(pieces, matrix, 1, ["p"])) == early

    def arrive(tx: Tx) -> None:
        touch(tx, TABLE, "p")
        tx.run(sa.text("UPDATE pieces SET embedder = 'model-1' WHERE seq = :seq").bindparams(seq=late[0]))

    pieces.direct(arrive, write=True)
    assert numbers(closest(pieces, matrix, 1, ["p"])) == [*late, *early]


async def test_a_transaction_sees_the_vectors_of_its_own_time(pieces: Database, database_url: str) -> None:
    put(pieces, "p", 1)
    matrix = new_matrix()

    def read(tx: Tx) -> tuple[Found, Found]:
        before = matrix.search(tx, vector(1), ["p"], 5)
        in_another_process(database_url, "add", "p", "2")
        return before, matrix.search(tx, vector(1), ["p"], 5)

    before, meanwhile = await pieces.read(read)
    assert (len(before), len(meanwhile), len(closest(pieces, matrix, 1, ["p"]))) == (1, 1, 2)


def test_nobody_sees_a_later_row_before_an_earlier_one(pieces: Database, database_url: str) -> None:
    """Writers of a project take turns, so rows are numbered in the order in which they appear."""
    other, first_added, second_begins = open_database(database_url), threading.Event(), threading.Event()

    def first(tx: Tx) -> list[int]:
        seqs = add(tx, "p", [1])
        first_added.set()
        second_begins.wait(PROCESS_LIMIT_S)
        return seqs

    def second() -> int:
        first_added.wait(PROCESS_LIMIT_S)
        second_begins.set()
        return put(pieces, "p", 2)[0]

    with ThreadPoolExecutor(2) as threads:
        writers = threads.submit(lambda: other.direct(first, write=True)[0]), threads.submit(second)
        matrix, seen = new_matrix(), list[list[int]]()
        while not all(writer.done() for writer in writers):
            seen.append(sorted(numbers(closest(pieces, matrix, 1, ["p"]))))
        both = [writer.result() for writer in writers]
    other.close()
    assert both == sorted(both)
    assert [found for found in seen if found not in ([], both[:1], both)] == []
    assert sorted(numbers(closest(pieces, matrix, 1, ["p"]))) == both


def test_what_does_not_fit_is_found_all_the_same(pieces: Database) -> None:
    seeds = list(range(40))
    seqs = put(pieces, "large", *seeds)
    tight = new_matrix(room=39 * (4 * DIMS + 8))
    assert numbers(closest(pieces, tight, 7, ["large"], k=10)) == compared(seqs, seeds, 7, 10)
    assert tight.size == 0


def test_the_project_that_was_searched_longest_ago_makes_room(pieces: Database) -> None:
    for project in ("a", "b", "c"):
        put(pieces, project, *range(10))
    each = 10 * (4 * DIMS + 8)
    matrix = new_matrix(room=2 * each)
    for project in ("a", "b", "a", "c", "a", "b", "c"):
        assert len(closest(pieces, matrix, 1, [project], k=10)) == 10
        assert matrix.size <= 2 * each


def test_a_search_of_more_projects_than_fit_is_complete(pieces: Database) -> None:
    projects = [f"p{number}" for number in range(5)]
    for project in projects:
        put(pieces, project, *range(10))
    matrix = new_matrix(room=2 * 10 * (4 * DIMS + 8))
    assert len(closest(pieces, matrix, 1, projects, k=100)) == 50


def test_memory_that_was_given_back_is_read_again(pieces: Database) -> None:
    put(pieces, "p", 1)
    matrix = new_matrix()
    before = closest(pieces, matrix, 1, ["p"])
    matrix.forget()
    assert matrix.size == 0
    assert closest(pieces, matrix, 1, ["p"]) == before


def test_many_threads_search_while_rows_come_and_go(pieces: Database) -> None:
    seqs = put(pieces, "p", *range(20))
    matrix = new_matrix()
    wrong: list[object] = []

    def look() -> None:
        for _ in range(20):
            found = closest(pieces, matrix, 3, ["p"], k=1)
            if numbers(found) != [seqs[3]]:
                wrong.append(found)

    threads = [threading.Thread(target=look) for _ in range(3)]
    for thread in threads:
        thread.start()
    for step in range(100, 115):
        put(pieces, "p", step)
        take(pieces, "p", step)
    for thread in threads:
        thread.join(PROCESS_LIMIT_S)
    assert wrong == []


def test_small_pages_become_one() -> None:
    small = [Page(np.array([seq]), np.zeros((1, DIMS), np.float32)) for seq in range(20)]
    (one,) = packed(small)
    assert one.seqs.tolist() == list(range(20))


def test_a_page_never_grows_beyond_its_limit() -> None:
    half = PAGE_ROWS // 2 + 1
    rows = np.arange(3 * half)
    large = [Page(part, np.zeros((half, 1), np.float32)) for part in np.split(rows, 3)]
    assert [len(page.seqs) for page in packed(large)] == [half] * 3
