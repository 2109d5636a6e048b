"""On PostgreSQL no file of the database holds what was plain, once it is sealed."""

import contextlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import LiteralString

import psycopg
import pytest
import sqlalchemy as sa
from psycopg import sql

from rookery.core.errors import ServiceUnavailable
from rookery.db.tx import Tx
from rookery.domains.memory.file_store import MemoryFiles
from rookery.domains.memory.rotation import rotate
from rookery.sealing.keyring import Keyring
from tests.databases import PostgresDatabases
from tests.domains.memory.minds import Minds
from tests.platform_fixtures import Fleet
from tests.waking import until

NEW = Keyring(bytes(range(32)))
KEYS, TEXTS, FILES = b"quetzalcoatlus", b"archaeopteryx", b"dimetrodon"
LONG = " ".join(f"archaeopteryx{number * 7919}" for number in range(800))
"""Too long for its row: PostgreSQL keeps it in a table beside, in pieces."""


@pytest.fixture
def plain_minds(postgres_url: str, make_fleet: Callable[..., Fleet]) -> Minds:
    return Minds(make_fleet(postgres_url, extra={}))


@pytest.fixture
def admin(postgres_url: str) -> Iterator[psycopg.Connection]:
    address = sa.make_url(postgres_url).set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(address, autocommit=True) as connection:
        yield connection


def files_of(admin: psycopg.Connection) -> bytes:
    """Every file of the database: tables, what is beside them, indexes and catalogs."""
    admin.execute("CHECKPOINT")
    found = admin.execute(
        "SELECT current_setting('data_directory'), oid FROM pg_database WHERE datname = current_database()"
    ).fetchone()
    assert found is not None
    content: list[bytes] = []
    for file in (Path(found[0]) / "base" / str(found[1])).iterdir():
        # PostgreSQL removes what it has written anew whenever it comes to it.
        with contextlib.suppress(FileNotFoundError):
            content.append(file.read_bytes())
    return b"\n".join(content)


def said(admin: psycopg.Connection) -> list[bytes]:
    content = files_of(admin)
    return [word for word in (KEYS, TEXTS, FILES) if word in content]


async def remember(minds: Minds, admin: psycopg.Connection) -> None:
    for number in range(30):
        content = LONG if number == 0 else f"archaeopteryx number {number}"
        await minds.save(minds.ada, f"quetzalcoatlus {number}", content)
    worker = minds.fleet.actor(profile="worker")
    text = "\n".join(["dimetrodon"] * 20)
    await minds.fleet.call(worker, "update_memory", scope="global", filename="notes.md", content=text)
    # As the database does by itself, some time after many changes.
    admin.execute("ANALYZE")


async def test_what_was_plain_is_in_no_file_of_the_database(plain_minds: Minds, admin: psycopg.Connection) -> None:
    await remember(plain_minds, admin)
    assert said(admin) == [KEYS, TEXTS, FILES]
    database = plain_minds.fleet.platform.database

    def seal_files(tx: Tx) -> int:
        return MemoryFiles(tx, None).reseal(NEW)

    while database.direct(seal_files, write=True):
        pass
    assert rotate(database, None, NEW, hide_keys=True) == 30
    assert said(admin) == []


@contextlib.contextmanager
def open_transaction(url: str, *statements: LiteralString) -> Iterator[psycopg.Connection]:
    """Somebody who has begun something and does not end it."""
    address = sa.make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(address) as other:
        for statement in statements:
            other.execute(statement)
        yield other
        other.rollback()


def waits(admin: psycopg.Connection) -> bool:
    """Whether somebody looks which transactions are open."""
    asking = "SELECT 1 FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname = current_database() "
    return admin.execute(asking + "AND query LIKE '%backend_xmin%'").fetchone() is not None


@pytest.mark.parametrize(
    "statements",
    [
        pytest.param(["SELECT pg_current_xact_id()"], id="of another database, that writes"),
        pytest.param(["SET TRANSACTION ISOLATION LEVEL REPEATABLE READ", "SELECT 1"], id="that reads"),
    ],
)
async def test_a_transaction_that_others_have_begun_before_is_waited_for(
    plain_minds: Minds,
    admin: psycopg.Connection,
    postgres_url: str,
    postgres_dsn: PostgresDatabases,
    statements: list[LiteralString],
) -> None:
    await remember(plain_minds, admin)
    database = plain_minds.fleet.platform.database
    writes = "pg_current_xact_id" in statements[0]
    where = postgres_dsn() if writes else postgres_url
    with open_transaction(where, *statements) as other, ThreadPoolExecutor(1) as threads:
        rotating = threads.submit(rotate, database, None, NEW, hide_keys=True)
        await until(lambda: rotating.done() or waits(admin))
        assert not rotating.done()
        other.rollback()
        assert rotating.result(30) == 30
    assert {KEYS, TEXTS}.isdisjoint(said(admin))


async def test_who_never_ends_a_transaction_is_named_and_the_wiping_can_be_done_again(
    plain_minds: Minds, admin: psycopg.Connection, postgres_url: str
) -> None:
    await remember(plain_minds, admin)
    database = plain_minds.fleet.platform.database
    with open_transaction(postgres_url, "SELECT pg_current_xact_id()") as other:
        with pytest.raises(ServiceUnavailable) as refused:
            rotate(database, None, NEW, hide_keys=True, patience_s=0.0)
        assert f"process {other.info.backend_pid} in the database" in refused.value.message
    assert rotate(database, None, NEW, hide_keys=True) == 0
    assert {KEYS, TEXTS}.isdisjoint(said(admin))


async def test_keys_that_are_not_hidden_stay_readable(plain_minds: Minds, admin: psycopg.Connection) -> None:
    await remember(plain_minds, admin)
    rotate(plain_minds.fleet.platform.database, None, NEW)
    assert KEYS in said(admin)
    assert TEXTS not in said(admin)


async def test_a_role_that_may_not_touch_the_catalog_wipes_the_tables(
    postgres_url: str, admin: psycopg.Connection, make_fleet: Callable[..., Fleet]
) -> None:
    address = sa.make_url(postgres_url)
    role = f"guest_{address.database}"
    admin.execute(sql.SQL("CREATE ROLE {} LOGIN").format(sql.Identifier(role)))
    admin.execute(sql.SQL("GRANT CREATE ON SCHEMA public TO {}").format(sql.Identifier(role)))
    minds = Minds(make_fleet(address.set(username=role).render_as_string(), extra={}))
    for number in range(30):
        await minds.save(minds.ada, f"quetzalcoatlus {number}", f"archaeopteryx number {number}")
    assert said(admin) == [KEYS, TEXTS]
    assert rotate(minds.fleet.platform.database, None, NEW, hide_keys=True) == 30
    assert said(admin) == []
