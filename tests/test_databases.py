"""What the database fixtures promise to every other test."""

import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.pool import NullPool

from tests.databases import PostgresDatabases


def run(url: str, statement: str) -> list[sa.Row[tuple[object, ...]]]:
    engine = sa.create_engine(url, poolclass=NullPool)
    with engine.begin() as connection:
        result = connection.execute(sa.text(statement))
        return list(result) if result.returns_rows else []


def test_a_database_keeps_what_is_written_to_it(database_url: str) -> None:
    run(database_url, "CREATE TABLE birds (name TEXT)")
    run(database_url, "INSERT INTO birds VALUES ('rook')")
    assert run(database_url, "SELECT name FROM birds") == [("rook",)]


def test_a_database_starts_empty_although_another_test_made_the_same_table(database_url: str) -> None:
    run(database_url, "CREATE TABLE birds (name TEXT)")
    assert run(database_url, "SELECT name FROM birds") == []


def test_two_databases_do_not_see_each_other(postgres_dsn: PostgresDatabases) -> None:
    first, second = postgres_dsn(), postgres_dsn()
    run(first, "CREATE TABLE birds (name TEXT)")
    run(second, "CREATE TABLE birds (name TEXT)")
    assert first != second
    postgres_dsn.drop(first)
    postgres_dsn.drop(second)


def test_a_copy_has_the_tables_of_its_template(postgres_dsn: PostgresDatabases, postgres_url: str) -> None:
    run(postgres_url, "CREATE TABLE birds AS SELECT 'rook' AS name")
    copy = postgres_dsn(template=postgres_url)
    assert run(copy, "SELECT name FROM birds") == [("rook",)]
    postgres_dsn.drop(copy)


def test_a_database_with_an_open_connection_can_be_dropped(postgres_dsn: PostgresDatabases) -> None:
    url = postgres_dsn()
    engine = sa.create_engine(url)
    with engine.connect() as connection:
        connection.execute(sa.text("SELECT 1"))
        postgres_dsn.drop(url)
        connection.invalidate()
    engine.dispose()


def test_commits_reach_the_disk_as_on_an_ordinary_server(postgres_url: str) -> None:
    assert run(postgres_url, "SHOW fsync") == [("on",)]
    assert run(postgres_url, "SHOW synchronous_commit") == [("on",)]


def test_a_run_that_is_killed_leaves_no_server_and_no_files() -> None:
    run_of_its_own = (
        "import sys; from tests.databases import PostgresServer, ask; "
        "server = PostgresServer(); print(ask(server.folder)['host'], flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", run_of_its_own],
        cwd=Path(__file__).parents[1],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout
        data = Path(process.stdout.readline().strip())
        postgres = int((data / "postmaster.pid").read_text().split()[0])
        process.kill()
    limit = time.monotonic() + 20
    while data.parent.exists() and time.monotonic() < limit:
        time.sleep(0.05)
    assert not data.parent.exists()
    assert not is_running(postgres)


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def test_an_async_test_runs_without_a_mark() -> None:
    assert asyncio.get_running_loop().is_running()
