"""Databases with a table of vectors, closed after the test."""

from collections.abc import Iterator

import psycopg
import pytest
import sqlalchemy as sa
from psycopg import sql

from rookery.db.database import Database
from rookery.embedding.embedder import missing
from tests.databases import PostgresDatabases, PostgresUnavailable
from tests.embedding.pgvector_server import running

# Where the extra cannot be installed, there is nothing to test but that search goes on without it.
NEED_NUMPY = [
    "test_matrix.py",
    "test_minilm.py",
    "test_pgvector.py",
    "test_pgvector_absent.py",
    "test_pgvector_index.py",
    "test_pgvector_knowledge.py",
]
collect_ignore = NEED_NUMPY if missing() else []
GUEST = "guest"


@pytest.fixture
def pieces(database_url: str) -> Iterator[Database]:
    """On SQLite and on PostgreSQL."""
    from tests.embedding.vectors import open_pieces

    database = open_pieces(database_url)
    yield database
    database.close()


@pytest.fixture(scope="session")
def pgvector_dsn(worker_name: str) -> Iterator[PostgresDatabases]:
    """Makes fresh databases on a PostgreSQL that has pgvector. They start without the extension."""
    with running() as folder:
        try:
            databases = PostgresDatabases(folder, worker_name)
        except PostgresUnavailable as reason:
            pytest.fail(f"no PostgreSQL with pgvector for this test: {reason}", pytrace=False)
        yield databases
        databases.close()


@pytest.fixture
def pgvector_url(pgvector_dsn: PostgresDatabases) -> Iterator[str]:
    """The URL of an empty database whose owner may create extensions."""
    url = pgvector_dsn()
    yield url
    pgvector_dsn.drop(url)


@pytest.fixture
def guest_url(pgvector_dsn: PostgresDatabases) -> Iterator[str]:
    """The URL of an empty database whose owner may not: to them the server is one without pgvector."""
    url = pgvector_dsn()
    name = sa.make_url(url).database or ""
    as_superuser(
        url,
        sql.SQL("DO $$ BEGIN CREATE ROLE {} LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$").format(
            sql.Identifier(GUEST)
        ),
        sql.SQL("ALTER DATABASE {} OWNER TO {}").format(sql.Identifier(name), sql.Identifier(GUEST)),
    )
    yield sa.make_url(url).set(username=GUEST).render_as_string(hide_password=False)
    pgvector_dsn.drop(url)


def as_superuser(url: str, *statements: sql.Composed) -> None:
    address = sa.make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(address, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement)
