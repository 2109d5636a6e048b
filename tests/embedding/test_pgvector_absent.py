"""Where pgvector cannot be had, is taken away, or is not where a backup is restored, vectors are searched in memory."""

import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
import sqlalchemy as sa
from psycopg import sql

from rookery.db.database import Database, open_database
from rookery.db.restore import restore
from rookery.db.tx import Tx
from rookery.embedding.pgvector import PgVectors, beside, told_of
from rookery.embedding.pgvector_table import prepare
from tests.embedding.conftest import as_superuser
from tests.embedding.pgvector_server import programs
from tests.embedding.vectors import DIMS, EMBEDDER, PLAN, TABLE, add, new_matrix, open_pieces, remove, vector


@pytest.fixture
def guests(guest_url: str) -> Iterator[Database]:
    """Pieces of somebody who may not create extensions."""
    with closing(open_pieces(guest_url)) as database:
        yield database


@pytest.fixture
def newest_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """pg_dump must not be older than its server."""
    monkeypatch.setenv("PATH", f"{programs()}{os.pathsep}{os.environ['PATH']}")


def put(database: Database, *seeds: int) -> list[int]:
    return database.direct(lambda tx: add(tx, "p", seeds), write=True)


def found(database: Database) -> list[int]:
    """What a server finds that has just started: in memory or by pgvector, as it can."""
    nearest = PgVectors(TABLE, EMBEDDER, DIMS, new_matrix())
    return sorted(seq for seq, _ in database.direct(lambda tx: nearest.search(tx, vector(1), ["p"], 100)))


def told(database: Database) -> str:
    return database.direct(lambda tx: told_of(tx, TABLE))


def has_table(database: Database) -> bool:
    return database.direct(lambda tx: sa.inspect(tx.connection).has_table(beside(TABLE)))


def test_without_the_right_to_create_it_everything_works_in_memory(guests: Database) -> None:
    seqs = put(guests, 1, 2, 3)
    prepare(guests, TABLE)
    assert found(guests) == seqs
    guests.direct(lambda tx: remove(tx, "p", [2]), write=True)
    assert found(guests) == [seqs[0], seqs[2]]
    assert not has_table(guests)
    assert "CREATE EXTENSION vector" in told(guests)


def test_once_an_administrator_has_created_it_the_next_start_uses_it(guests: Database, guest_url: str) -> None:
    seqs = put(guests, 1, 2)
    prepare(guests, TABLE)
    as_superuser(superuser(guest_url), sql.SQL("CREATE EXTENSION vector").format())
    assert found(guests) == seqs
    assert "until a server has copied them" in told(guests)
    prepare(guests, TABLE)
    assert found(guests) == seqs
    assert "searched by pgvector 0." in told(guests)


def test_on_a_server_that_has_none_vectors_are_searched_in_memory(postgres_url: str) -> None:
    with closing(open_pieces(postgres_url)) as database:
        if database.direct(lambda tx: tx.scalar(AVAILABLE)):
            pytest.skip("the PostgreSQL of this machine has pgvector")
        seqs = put(database, 1, 2)
        prepare(database, TABLE)
        assert found(database) == seqs
        assert told(database) == "Vectors are searched in memory: this PostgreSQL has no pgvector."


def test_an_extension_out_of_reach_is_not_used(guests: Database, guest_url: str) -> None:
    apart = (sql.SQL(text).format() for text in ("CREATE SCHEMA apart", "CREATE EXTENSION vector SCHEMA apart"))
    as_superuser(superuser(guest_url), *apart)
    seqs = put(guests, 1, 2)
    prepare(guests, TABLE)
    assert found(guests) == seqs
    assert "in a schema of the search path" in told(guests)


def test_an_extension_that_is_dropped_takes_nothing_but_its_own_table(pgvector_url: str) -> None:
    with closing(open_pieces(pgvector_url)) as database:
        seqs = put(database, 1, 2)
        prepare(database, TABLE)
        drop = sa.text("DROP EXTENSION vector CASCADE")
        database.direct(lambda tx: tx.run(drop), write=True)
        seqs += put(database, 3)
        assert found(database) == seqs
        prepare(database, TABLE)
        seqs += put(database, 4)
        assert "searched by pgvector" in told(database)
        assert found(database) == seqs


@pytest.mark.usefixtures("newest_programs")
def test_a_backup_of_a_database_with_pgvector_is_restored_on_one_without(
    pgvector_url: str, guest_url: str, tmp_path: Path
) -> None:
    with closing(open_pieces(pgvector_url)) as database:
        seqs = put(database, 1, 2, 3)
        prepare(database, TABLE)
        file = database.backup(str(tmp_path), "look")
    assert file is not None
    restored(guest_url, file, tmp_path)
    with closing(open_database(guest_url)) as database:
        assert not has_table(database)
        assert found(database) == seqs
        prepare(database, TABLE)
        seqs += put(database, 4)
        assert found(database) == seqs


@pytest.mark.usefixtures("newest_programs")
def test_a_backup_is_put_back_where_pgvector_is(pgvector_url: str, tmp_path: Path) -> None:
    with closing(open_pieces(pgvector_url)) as database:
        seqs = put(database, 1, 2, 3)
        prepare(database, TABLE)
        file = database.backup(str(tmp_path), "look")
        put(database, 4)
    assert file is not None
    restored(pgvector_url, file, tmp_path)
    with closing(open_database(pgvector_url)) as database:
        assert found(database) == seqs
        seqs += put(database, 5)
        assert found(database) == seqs
        prepare(database, TABLE)
        assert "searched by pgvector" in told(database)
        assert found(database) == seqs


AVAILABLE = sa.text("SELECT 1 FROM pg_available_extensions WHERE name = 'vector'")


def superuser(guest_url: str) -> str:
    return sa.make_url(guest_url).set(username="rookery").render_as_string(hide_password=False)


def restored(url: str, file: str, folder: Path) -> None:
    restore(url, file, PLAN, home=str(folder / "home"), backups=str(folder / "backups"))


def test_a_search_does_not_fail_because_the_table_has_gone_meanwhile(pgvector_url: str) -> None:
    with closing(open_pieces(pgvector_url)) as database:
        seqs = put(database, 1, 2)
        prepare(database, TABLE)

        def drop(tx: Tx) -> None:
            tx.run(sa.text(f"DROP TABLE {beside(TABLE)}"))

        database.direct(drop, write=True)
        seqs += put(database, 3)
        assert found(database) == seqs
