"""`rookery migrate`, `backup` and `restore`, on both databases."""

import fcntl
import os
import shutil
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
import sqlalchemy as sa

from rookery.db.database import open_database
from rookery.identity.tables import MIGRATIONS
from tests.cli.terminal import Terminal


def agents(terminal: Terminal) -> list[str]:
    return [agent["name"] for agent in terminal.json("agents", "--json")]


def run_sql(terminal: Terminal, *statements: str) -> None:
    """Change the database behind the back of the program."""
    url = terminal.environ.get("ROOKERY_DATABASE", f"sqlite:///{terminal.database}")
    database = open_database(url)
    try:
        for statement in statements:
            database.direct(lambda tx, text=statement: tx.run(sa.text(text)), write=True)
    finally:
        database.close()


def backup_of(terminal: Terminal) -> Path:
    return Path(terminal.ok("backup").strip())


def kept(lines: str) -> Path:
    return Path(lines.partition("is kept in ")[2].strip())


def steps(lines: str, word: str) -> Sequence[str]:
    return [line for line in lines.splitlines() if line.startswith(f"{word}: ")]


def test_migrate_says_what_it_did_and_then_that_nothing_is_left(terminal_on: Terminal) -> None:
    first = terminal_on.ok("migrate")
    assert "applied: identity 001 identity" in first
    assert "nothing to back up" in first
    assert terminal_on.ok("migrate") == "The database was up to date; nothing was done.\n"
    assert terminal_on.ok("migrate", "--check") == "The database is up to date.\n"


def test_migrate_says_where_the_backup_is(terminal_on: Terminal) -> None:
    terminal_on.ok("tools")
    run_sql(terminal_on, "DELETE FROM schema_migrations WHERE domain = 'db'", "DROP TABLE epochs")
    assert terminal_on.run("migrate", "--check").exit_code == 1
    told = terminal_on.ok("migrate")
    assert steps(told, "applied") == ["applied: db 001 epochs"]
    assert Path(told.partition("before is in ")[2].strip()).parent == terminal_on.home / "backups"


def test_checking_changes_nothing_and_exits_with_1(terminal: Terminal) -> None:
    assert "no database" in terminal.fails("migrate", "--check")
    assert not terminal.home.exists()


def test_a_backup_needs_a_database(terminal: Terminal) -> None:
    assert "no database" in terminal.fails("backup")
    assert not terminal.home.exists()


def test_a_backup_is_for_its_owner_alone(terminal_on: Terminal, tmp_path: Path) -> None:
    terminal_on.ok("tools")
    path = Path(terminal_on.ok("backup", "--to", str(tmp_path / "elsewhere")).strip())
    assert path.parent == tmp_path / "elsewhere"
    assert path.stat().st_mode & 0o077 == 0


def test_a_restored_database_is_what_it_was_and_the_replaced_one_is_kept(terminal_on: Terminal) -> None:
    terminal_on.ok("agents", "create", "ada")
    saved = backup_of(terminal_on)
    terminal_on.ok("agents", "create", "bob")
    told = terminal_on.ok("restore", str(saved))
    assert agents(terminal_on) == ["ada", "default"]
    assert terminal_on.json("audit", "verify", "--json")["intact"] is True
    terminal_on.ok("restore", str(kept(told)))
    assert agents(terminal_on) == ["ada", "bob", "default"]


def test_an_older_backup_is_brought_up_to_date(terminal_on: Terminal) -> None:
    terminal_on.ok("agents", "create", "ada")
    run_sql(terminal_on, "DELETE FROM schema_migrations WHERE domain = 'db'", "DROP TABLE epochs")
    saved = backup_of(terminal_on)
    terminal_on.ok("agents", "create", "bob")
    assert steps(terminal_on.ok("restore", str(saved)), "applied") == ["applied: db 001 epochs"]
    assert agents(terminal_on) == ["ada", "default"]


def test_what_came_after_the_backup_is_gone_after_the_restore(terminal_on: Terminal) -> None:
    terminal_on.ok("tools")
    saved = backup_of(terminal_on)
    run_sql(terminal_on, "CREATE TABLE later (agent TEXT REFERENCES agents (id))")
    terminal_on.ok("restore", str(saved))
    run_sql(terminal_on, "CREATE TABLE later (id TEXT)")


def test_rights_that_other_processes_remember_are_out_of_date_after_a_restore(terminal_on: Terminal) -> None:
    def epoch() -> int:
        database = open_database(terminal_on.environ["ROOKERY_DATABASE"])
        try:
            return database.epoch("identity")
        finally:
            database.close()

    terminal_on.ok("tools")
    saved = backup_of(terminal_on)
    terminal_on.ok("agents", "create", "ada")
    remembered = epoch()
    terminal_on.ok("restore", str(saved))
    assert epoch() > remembered


def test_a_newer_backup_is_refused_and_nothing_is_changed(terminal_on: Terminal) -> None:
    terminal_on.ok("tools")
    run_sql(terminal_on, "INSERT INTO schema_migrations VALUES ('identity', 99, 'from the future', 0)")
    saved = backup_of(terminal_on)
    run_sql(terminal_on, "DELETE FROM schema_migrations WHERE number = 99")
    terminal_on.ok("agents", "create", "ada")
    sentence = terminal_on.fails("restore", str(saved)).splitlines()[0]
    assert sentence.endswith(f"is at 99, this program knows {MIGRATIONS[-1].number}")
    assert agents(terminal_on) == ["ada", "default"]


def test_a_file_that_is_no_backup_is_refused(terminal_on: Terminal, tmp_path: Path) -> None:
    terminal_on.ok("tools")
    other = tmp_path / "notes.txt"
    other.write_text("not a backup")
    assert "is not a backup" in terminal_on.fails("restore", str(other))
    assert "does not exist" in terminal_on.fails("restore", str(tmp_path / "absent"), code=2)


def test_the_backup_of_another_kind_of_database_is_refused(terminal_on: Terminal, tmp_path: Path) -> None:
    terminal_on.ok("tools")
    saved = backup_of(terminal_on)
    is_sqlite = saved.suffix == ".db"
    other = tmp_path / "other"
    other.write_bytes(b"PGDMP" * 20 if is_sqlite else b"SQLite format 3\x00" * 20)
    told = terminal_on.fails("restore", str(other))
    assert ("PostgreSQL database, and this one is SQLite" if is_sqlite else "this one is PostgreSQL") in told


def test_a_database_of_something_else_is_refused(terminal: Terminal, tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    with closing(sqlite3.connect(other)) as connection, connection:
        connection.execute("CREATE TABLE songs (title TEXT)")
    assert "not a database of Rookery" in terminal.fails("restore", str(other))
    assert not terminal.database.exists()


def test_a_dump_of_something_else_is_refused(tmp_path: Path, postgres_url: str) -> None:
    terminal = Terminal(tmp_path, ROOKERY_DATABASE=postgres_url)
    run_sql(terminal, "CREATE TABLE songs (title TEXT)")
    saved = backup_of(terminal)
    assert "not a database of Rookery" in terminal.fails("restore", str(saved))


def test_a_damaged_backup_is_refused(terminal: Terminal) -> None:
    terminal.ok("tools")
    saved = backup_of(terminal)
    with saved.open("r+b") as file:
        file.seek(4096)
        file.write(os.urandom(4096 * 4))
    assert str(saved) in terminal.fails("restore", str(saved))
    assert agents(terminal) == ["default"]


def test_a_damaged_database_is_moved_away_whole(terminal: Terminal) -> None:
    terminal.ok("agents", "create", "ada")
    saved = backup_of(terminal)
    rubbish = b"this was a database once" * 1000
    terminal.database.write_bytes(rubbish)
    told = terminal.ok("restore", str(saved))
    assert kept(told).read_bytes() == rubbish
    assert agents(terminal) == ["ada", "default"]


def test_the_database_itself_is_no_backup_of_it(terminal: Terminal) -> None:
    terminal.ok("tools")
    assert "is the database itself" in terminal.fails("restore", str(terminal.database))


def test_a_backup_can_be_restored_into_a_home_that_is_not_there_yet(terminal: Terminal, tmp_path: Path) -> None:
    terminal.ok("agents", "create", "ada")
    saved = backup_of(terminal)
    (tmp_path / "new").mkdir()
    other = Terminal(tmp_path / "new")
    assert "kept" not in other.ok("restore", str(saved))
    assert agents(other) == ["ada", "default"]
    assert other.database.stat().st_mode & 0o077 == 0


def test_a_session_that_reads_meanwhile_sees_one_database_or_the_other(terminal: Terminal) -> None:
    def seen() -> int:
        return reader.execute("SELECT count(*) FROM agents").fetchone()[0]

    terminal.ok("tools")
    saved = backup_of(terminal)
    terminal.ok("agents", "create", "ada")
    with closing(sqlite3.connect(terminal.database, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        assert seen() == 2
        terminal.ok("restore", str(saved))
        assert seen() == 2
        reader.execute("COMMIT")
        assert seen() == 1


def test_restoring_leaves_nothing_lying_about(terminal_on: Terminal) -> None:
    terminal_on.ok("tools")
    saved = backup_of(terminal_on)
    before = sorted(path.name for path in saved.parent.iterdir())
    terminal_on.ok("restore", str(saved))
    assert [path.name for path in terminal_on.home.iterdir() if path.name.startswith("restore-")] == []
    assert len(list(saved.parent.iterdir())) == len(before) + 1


def test_nothing_is_restored_under_a_running_server(terminal_on: Terminal) -> None:
    terminal_on.ok("agents", "create", "ada")
    saved = backup_of(terminal_on)
    with (terminal_on.home / "server.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.write("4711")
        lock.flush()
        assert "a server is already running" in terminal_on.fails("restore", str(saved))
    terminal_on.ok("restore", str(saved))


def test_nothing_is_restored_while_anybody_else_is_connected(tmp_path: Path, postgres_url: str) -> None:
    terminal = Terminal(tmp_path, ROOKERY_DATABASE=postgres_url)
    terminal.ok("tools")
    saved = backup_of(terminal)
    address = sa.make_url(postgres_url).set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(address):
        assert "1 other connections" in terminal.fails("restore", str(saved))
    terminal.ok("restore", str(saved))


def test_a_dump_that_cannot_be_put_back_leaves_the_database_as_it_was(tmp_path: Path, postgres_url: str) -> None:
    terminal = Terminal(tmp_path, ROOKERY_DATABASE=postgres_url)
    terminal.ok("agents", "create", "ada")
    saved = backup_of(terminal)
    terminal.ok("agents", "create", "bob")
    run_sql(terminal, "CREATE SCHEMA other", "CREATE TABLE other.built_upon (agent TEXT REFERENCES agents (id))")
    told = terminal.fails("restore", str(saved))
    assert "other.built_upon" in told
    assert "the database is as it was" in told
    assert agents(terminal) == ["ada", "bob", "default"]


def test_what_other_schemas_hold_is_left_alone(tmp_path: Path, postgres_url: str) -> None:
    terminal = Terminal(tmp_path, ROOKERY_DATABASE=postgres_url)
    run_sql(terminal, "CREATE SCHEMA other", "CREATE TABLE other.songs (title TEXT)")
    terminal.ok("agents", "create", "ada")
    saved = backup_of(terminal)
    run_sql(terminal, "INSERT INTO other.songs VALUES ('later')")
    terminal.ok("restore", str(saved))
    run_sql(terminal, "ALTER TABLE other.songs ADD CONSTRAINT one CHECK (title = 'later')")
    assert agents(terminal) == ["ada", "default"]


@pytest.mark.parametrize("missing", ["pg_restore", "psql"])
def test_what_postgresql_needs_is_named_if_it_is_missing(
    tmp_path: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    terminal = Terminal(tmp_path, ROOKERY_DATABASE=postgres_url)
    terminal.ok("tools")
    saved = backup_of(terminal)
    where = {name: shutil.which(name) for name in ("pg_restore", "psql", "pg_dump")}
    monkeypatch.setattr(
        "rookery.db.restore_postgres.find_program", lambda name: None if name == missing else where[name]
    )
    assert f"{missing} is not installed" in terminal.fails("restore", str(saved))
