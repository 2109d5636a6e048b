"""Bringing a database up to date: every step once, all or nothing, and never a step back."""

import contextlib
import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy import exc
from sqlalchemy.pool import NullPool

from rookery.core.errors import ConfigurationError
from rookery.db import postgres
from rookery.db.database import Database, open_database
from rookery.db.migrate import Migration, migrate, pending
from rookery.db.schema import metadata
from rookery.plugins import load_domains
from tests.databases import PostgresDatabases
from tests.db.migrator import PLAN as LEDGER

ROOT = Path(__file__).parents[2]
Plan = Mapping[str, Sequence[Migration]]
FIRST = Migration(1, "birds", ["CREATE TABLE birds (id {serial}, name TEXT NOT NULL)"])
SECOND = Migration(
    2, "colours", ["ALTER TABLE birds ADD COLUMN colour TEXT", "INSERT INTO birds (name) VALUES ('a:b')"]
)


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    with contextlib.closing(open_database(database_url)) as opened:
        yield opened


def tables(database: Database) -> set[str]:
    return database.direct(lambda tx: set(sa.inspect(tx.connection).get_table_names()))


def steps(database: Database) -> list[tuple[str, int]]:
    found = sa.text("SELECT domain, number FROM schema_migrations WHERE domain <> 'db' ORDER BY domain, number")
    return [tuple(row) for row in database.direct(lambda tx: tx.all(found))]


def test_an_empty_database_gets_every_step_in_order(database: Database, tmp_path: Path) -> None:
    done = migrate(database, {"birds": [FIRST, SECOND]}, str(tmp_path / "backups"))
    assert done.applied == ["db 001 epochs", "birds 001 birds", "birds 002 colours"]
    assert done.backup is None
    assert steps(database) == [("birds", 1), ("birds", 2)]
    assert database.direct(lambda tx: tx.scalar(sa.text("SELECT name FROM birds"))) == "a:b"


def test_a_second_run_does_nothing(database: Database, tmp_path: Path) -> None:
    plan = {"birds": [FIRST]}
    migrate(database, plan, None)
    done = migrate(database, plan, str(tmp_path / "backups"))
    assert (done.applied, done.backup) == ([], None)
    assert not (tmp_path / "backups").exists()


def test_a_new_database_is_told_in_one_line_and_each_step_of_an_old_one_by_itself(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "rookery.migrate")
    migrate(database, {"birds": [FIRST]}, None)
    migrate(database, {"birds": [FIRST, SECOND]}, None)
    told = [record.getMessage() for record in caplog.records]
    assert told == ["made the tables of a new database, in 2 steps", "migrated birds 002 colours"]


def test_looking_for_what_is_pending_changes_nothing(database: Database) -> None:
    missing = database.direct(lambda tx: pending(tx, {"birds": [FIRST]}))
    assert [(domain, step.number) for domain, step in missing] == [("db", 1), ("birds", 1)]
    assert tables(database) == set()


def test_the_backup_is_what_was_there_before(
    database: Database, database_url: str, postgres_dsn: PostgresDatabases, tmp_path: Path
) -> None:
    migrate(database, {"birds": [FIRST]}, None)
    database.direct(lambda tx: tx.run(sa.text("INSERT INTO birds (name) VALUES ('rook')")), write=True)
    done = migrate(database, {"birds": [FIRST, SECOND]}, str(tmp_path / "backups"))
    assert done.applied == ["birds 002 colours"]
    assert done.backup is not None
    assert Path(done.backup).stat().st_mode & 0o077 == 0
    if database_url.startswith("sqlite"):
        copied = f"sqlite:///{done.backup}"
    else:
        copied = postgres_dsn()
        address = sa.make_url(copied).set(drivername="postgresql").render_as_string(hide_password=False)
        program = postgres.find_program("pg_restore")
        assert program is not None
        subprocess.run([program, "--dbname", address, done.backup], check=True)
    with contextlib.closing(open_database(copied)) as backup:
        assert steps(backup) == [("birds", 1)]
        assert [row.name for row in backup.direct(lambda tx: tx.all(sa.text("SELECT name FROM birds")))] == ["rook"]


def test_a_newer_database_is_refused(database: Database) -> None:
    migrate(database, {"birds": [FIRST, SECOND]}, None)
    for plan in ({"birds": [FIRST]}, {"birds": []}):
        with pytest.raises(ConfigurationError, match="birds schema is at 2, this program knows") as caught:
            migrate(database, plan, None)
        assert caught.value.hint is not None
        assert "newer version" in caught.value.hint
        assert "backup" in caught.value.hint


def test_what_an_unknown_domain_left_is_left_alone(database: Database) -> None:
    migrate(database, {"birds": [FIRST], "gone": [Migration(1, "gone", ["CREATE TABLE gone (id {serial})"])]}, None)
    done = migrate(database, {"birds": [FIRST, SECOND]}, None)
    assert done.applied == ["birds 002 colours"]
    assert ("gone", 1) in steps(database)
    assert "gone" in tables(database)


def test_a_step_that_fails_takes_everything_back(database: Database) -> None:
    migrate(database, {"birds": [FIRST]}, None)
    broken = Migration(2, "broken", ["CREATE TABLE nests (id {serial})", "CREATE TABLE nests (id {serial})"])
    plan = {"trees": [Migration(1, "trees", ["CREATE TABLE trees (id {serial})"])], "birds": [FIRST, broken]}
    with pytest.raises(exc.DBAPIError, match="nests"):
        migrate(database, plan, None)
    assert tables(database) == {"birds", "epochs", "schema_migrations"}
    assert steps(database) == [("birds", 1)]
    assert migrate(database, {"birds": [FIRST, SECOND]}, None).applied == ["birds 002 colours"]


def test_two_processes_apply_each_step_once(database: Database, database_url: str) -> None:
    command = [sys.executable, "-m", "tests.db.migrator", database_url]
    with contextlib.ExitStack() as stack:
        processes = [
            stack.enter_context(
                subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            )
            for _ in range(2)
        ]
        for process in processes:
            assert process.stdout
            assert process.stdout.readline() == "ready\n"
        for process in processes:
            assert process.stdin
            process.stdin.write("go\n")
            process.stdin.flush()
        applied = [step for process in processes for step in json.loads(process.communicate(timeout=60)[0])]
    assert sorted(applied) == sorted({*applied})
    assert len(applied) == 6
    assert steps(database) == [("ledger", number) for number in range(1, 6)]
    assert database.direct(lambda tx: pending(tx, LEDGER)) == []


def test_without_pg_dump_nothing_is_migrated_and_the_reason_is_given(
    postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(name: str) -> None:
        return None

    with contextlib.closing(open_database(postgres_url)) as database:
        migrate(database, {"birds": [FIRST]}, str(tmp_path / "backups"))
        monkeypatch.setattr(postgres, "find_program", missing)
        with pytest.raises(ConfigurationError, match="pg_dump is not installed") as caught:
            migrate(database, {"birds": [FIRST, SECOND]}, str(tmp_path / "backups"))
        assert caught.value.hint == "install postgresql-client"
        assert steps(database) == [("birds", 1)]


def test_a_backup_that_fails_stops_the_migration(postgres_url: str, tmp_path: Path) -> None:
    (tmp_path / "backups").touch()
    with contextlib.closing(open_database(postgres_url)) as database:
        migrate(database, {"birds": [FIRST]}, None)
        with pytest.raises(OSError, match="backups"):
            migrate(database, {"birds": [FIRST, SECOND]}, str(tmp_path / "backups"))
        assert steps(database) == [("birds", 1)]


def shape(connection: sa.Connection, table: str) -> dict[str, Any]:
    """Everything about a table that a statement can notice."""
    inspector, dialect = sa.inspect(connection), connection.dialect
    return {
        "columns": {
            column["name"]: (column["type"].compile(dialect), column["nullable"])
            for column in inspector.get_columns(table)
        },
        "key": inspector.get_pk_constraint(table)["constrained_columns"],
        "unique": sorted(sorted(unique["column_names"]) for unique in inspector.get_unique_constraints(table)),
        "indexes": sorted(
            (index["name"], index["column_names"], bool(index["unique"]), sorted(index.get("dialect_options", {})))
            for index in inspector.get_indexes(table)
            if not index.get("duplicates_constraint")
        ),
        "references": sorted(map(repr, inspector.get_foreign_keys(table))),
    }


@pytest.fixture
def fresh_url(database_url: str, tmp_path: Path, postgres_dsn: PostgresDatabases) -> str:
    """A second empty database, of the same kind."""
    return f"sqlite:///{tmp_path / 'fresh.db'}" if database_url.startswith("sqlite") else postgres_dsn()


def test_a_migrated_database_is_what_the_code_says(
    database: Database, fresh_url: str, load: Callable[[], Plan]
) -> None:
    migrate(database, load(), None)
    names = [table.name for table in metadata.sorted_tables]
    engine = sa.create_engine(fresh_url, poolclass=NullPool)
    with engine.begin() as connection:
        metadata.create_all(connection)
        wanted = {name: shape(connection, name) for name in names}
    found = database.direct(lambda tx: {name: shape(tx.connection, name) for name in names})
    assert {name: found[name] for name in names if found[name] != wanted[name]} == {}
    # A full-text index of SQLite is a table with tables of its own.
    own = {name for name in tables(database) if "_fts" not in name}
    assert own - set(names) == {"epochs", "schema_migrations"}


@pytest.fixture
def load() -> Callable[[], Plan]:
    return lambda: load_domains(plugins=False).migrations


def test_two_backups_of_one_second_are_two_files_for_their_owner_alone(database: Database, tmp_path: Path) -> None:
    migrate(database, {"birds": [FIRST]}, None)
    made = [database.backup(str(tmp_path / "kept"), "same") for _ in range(3)]
    assert len({*made}) == 3
    assert {Path(path or "").stat().st_mode & 0o777 for path in made} == {0o600}


def test_the_password_is_not_on_the_command_line_of_pg_dump(
    postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = postgres.find_program("pg_dump")
    spy = tmp_path / "bin" / "pg_dump"
    spy.parent.mkdir()
    spy.write_text(
        f'#!/bin/sh\necho "$@" > "{tmp_path}/told"\necho "$PGPASSWORD" > "{tmp_path}/kept"\nexec "{real}" "$@"\n'
    )
    spy.chmod(0o755)
    monkeypatch.setenv("PATH", f"{spy.parent}:/usr/bin:/bin")
    url = sa.make_url(postgres_url).set(password="open-sesame").render_as_string(hide_password=False)
    with contextlib.closing(open_database(url)) as database:
        migrate(database, {"birds": [FIRST]}, None)
        assert database.backup(str(tmp_path), "now")
    assert "open-sesame" not in (tmp_path / "told").read_text(encoding="utf-8")
    assert (tmp_path / "kept").read_text(encoding="utf-8") == "open-sesame\n"
