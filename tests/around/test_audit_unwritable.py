"""A call that cannot be recorded does not happen, and the caller reads why. Once it can be, calls work again."""

import contextlib
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.pool import NullPool

from rookery.core.errors import AuditUnavailable
from rookery.db.database import open_database
from tests.around import workload
from tests.databases import PostgresDatabases
from tests.db import sample
from tests.platform_fixtures import Fleet

ROOT = Path(__file__).parents[2]
CALLS: dict[str, dict[str, str]] = {
    "ping": {},
    "count_pairs": {},
    "add_pair": {"key": "unrecorded"},
    "add_and_fail": {"key": "unrecorded"},
    "reach_out": {"key": "unrecorded"},
    "create_agent": {},
}
"""A read on the loop, one in the database, a write, a write that fails, an external call, a call that is refused."""


class Caller:
    """Another process, told to make calls."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "rookery.db"
        self.url = f"sqlite:///{self.path}"
        command = [sys.executable, "-m", "tests.around.caller", self.url, str(folder / "home")]
        self._process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._read() == "ready"

    def tell(self, command: str) -> None:
        assert self._process.stdin
        self._process.stdin.write(f"{command}\n")
        self._process.stdin.flush()

    def _read(self) -> str:
        assert self._process.stdout
        return self._process.stdout.readline().strip()

    def calls(self, name: str) -> dict[str, Any]:
        self.tell(f"calls {name}")
        return json.loads(self._read())

    def become_nobody(self, prepare: Callable[[], None]) -> None:
        self.tell("become_nobody")
        assert self._read() == "closed"
        prepare()
        self.tell("go on")

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


@contextlib.contextmanager
def caller_in(folder: Path) -> Iterator[Caller]:
    caller = Caller(folder)
    try:
        yield caller
    finally:
        caller.close()


def assert_works(caller: Caller, name: str) -> None:
    told = caller.calls(name)
    assert {call["code"] for call in told["calls"]} == {"ok"}
    wanted = {call["key"] for call in told["calls"] if call["tool"] == "add_pair"}
    assert wanted <= pairs(caller)
    assert {call["key"] for call in told["calls"] if call["tool"] == "reach_out"} <= set(told["reached"])


def assert_refuses(caller: Caller, name: str, why: str) -> None:
    told = caller.calls(name)
    for call in told["calls"]:
        assert call["code"] == "AUDIT_UNAVAILABLE", call
        assert why in call["message"], call
    assert [key for key in told["reached"] if key.startswith(f"{name}-")] == []


def pairs(caller: Caller) -> set[str]:
    database = open_database(caller.url)
    with contextlib.closing(database):
        return set(sample.keys(database))


def assert_nothing_left(caller: Caller, name: str) -> None:
    """Nothing of the round was done, recorded or half recorded."""
    assert {key for key in pairs(caller) if key.startswith(f"{name}-")} == set()
    with contextlib.closing(open_database(caller.url)) as database:
        assert {request for request in sample.requests(database) if request.startswith(f"{name}-")} == set()


def open_to_all(folder: Path, *, writable: bool) -> None:
    """Let everyone read the database, and write it if so asked. Nobody else is logged in."""
    for path in folder.glob("rookery.db*"):
        path.chmod(0o666 if writable else 0o444)
    folder.chmod(0o777 if writable else 0o555)


@pytest.fixture
def shared_folder() -> Iterator[Path]:
    """A folder that another user can reach; pytest's own are closed to others."""
    with tempfile.TemporaryDirectory(prefix="rookery-") as name:
        yield Path(name)
        open_to_all(Path(name), writable=True)


def test_in_a_read_only_folder_no_call_runs(shared_folder: Path) -> None:
    with caller_in(shared_folder) as caller:
        assert_works(caller, "before")
        caller.become_nobody(lambda: open_to_all(shared_folder, writable=False))
        assert_refuses(caller, "during", "Permission denied")
        open_to_all(shared_folder, writable=True)
        assert_works(caller, "after")
        assert_nothing_left(caller, "during")


def test_on_a_read_only_file_no_call_runs(shared_folder: Path) -> None:
    def close_the_file() -> None:
        open_to_all(shared_folder, writable=True)
        (shared_folder / "rookery.db").chmod(0o444)

    with caller_in(shared_folder) as caller:
        assert_works(caller, "before")
        caller.become_nobody(close_the_file)
        assert_refuses(caller, "during", "readonly database")
        assert_nothing_left(caller, "during")


def test_with_no_room_for_the_file_no_call_runs(tmp_path: Path) -> None:
    with caller_in(tmp_path) as caller:
        assert_works(caller, "before")
        caller.tell("limit 1024")
        assert_refuses(caller, "during", "disk")
        caller.tell("limit none")
        assert_works(caller, "after")
        assert_nothing_left(caller, "during")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of four megabytes, where the machine lets us mount one."""
    disk = tmp_path / "disk"
    disk.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(disk)], capture_output=True, text=True, check=False
    )
    if made.returncode:
        pytest.skip(f"a disk that can be filled cannot be mounted here: {made.stderr.strip()}")
    yield disk
    subprocess.run(["umount", "--lazy", str(disk)], check=True)


def fill(disk: Path) -> Path:
    """Write a file until there is no room for anything else."""
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(b"\0" * 512)
    return filler


def test_on_a_full_disk_no_call_runs(small_disk: Path) -> None:
    with caller_in(small_disk) as caller:
        assert_works(caller, "before")
        with contextlib.closing(sqlite3.connect(caller.path)) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        filler = fill(small_disk)
        assert_refuses(caller, "during", "disk is full")
        filler.unlink()
        assert_works(caller, "after")
        assert_nothing_left(caller, "during")


BREAK = {
    "sqlite": "CREATE TRIGGER out_of_order BEFORE INSERT ON audit_log BEGIN SELECT RAISE(ABORT, 'out of order'); END",
    "postgresql": "CREATE FUNCTION out_of_order() RETURNS trigger LANGUAGE plpgsql AS "
    "$$ BEGIN RAISE EXCEPTION 'out of order'; END $$; "
    "CREATE TRIGGER out_of_order BEFORE INSERT ON audit_log FOR EACH ROW EXECUTE FUNCTION out_of_order()",
}
MEND = {"sqlite": "DROP TRIGGER out_of_order", "postgresql": "DROP FUNCTION out_of_order CASCADE"}


def execute(url: str, statements: str) -> None:
    engine = sa.create_engine(url, poolclass=NullPool)
    with engine.begin() as connection:
        connection.exec_driver_sql(statements)


async def check_refusal(fleet: Fleet, why: str) -> None:
    workload.REACHED.clear()
    actor = fleet.actor()
    for tool, arguments in CALLS.items():
        with pytest.raises(AuditUnavailable, match=why) as caught:
            await fleet.call(actor, tool, **arguments)
        assert caught.value.hint
    assert sample.keys(fleet.platform.database) == []
    assert sample.requests(fleet.platform.database) == {}
    assert workload.REACHED == []


async def check_works(fleet: Fleet) -> None:
    actor = fleet.actor()
    for tool in ("ping", "count_pairs"):
        await fleet.call(actor, tool)
    for tool in ("add_pair", "reach_out"):
        await fleet.call(actor, tool, key="recorded")
    assert sample.keys(fleet.platform.database) == ["recorded"]
    assert workload.REACHED == ["recorded"]
    assert len(sample.audit_rows(fleet.platform.database)) == 5


async def test_when_the_database_refuses_the_record_no_call_runs(
    make_fleet: Callable[..., Fleet], database_url: str
) -> None:
    extra: dict[str, ModuleType] = {"workload": workload}
    fleet = make_fleet(database_url, extra=extra)
    dialect = sa.make_url(database_url).get_backend_name()
    execute(database_url, BREAK[dialect])
    await check_refusal(fleet, "out of order")
    execute(database_url, MEND[dialect])
    await check_works(fleet)


async def test_without_the_right_to_insert_no_call_runs(
    make_fleet: Callable[..., Fleet], postgres_dsn: PostgresDatabases, postgres_url: str
) -> None:
    extra: dict[str, ModuleType] = {"workload": workload}
    make_fleet(postgres_url, extra=extra).platform.close()
    role = f"limited_{os.getpid()}"
    execute(postgres_url, f"CREATE ROLE {role} LOGIN; GRANT ALL ON ALL TABLES IN SCHEMA public TO {role}")
    limited = sa.make_url(postgres_url).set(username=role).render_as_string(hide_password=False)
    try:
        execute(postgres_url, f"REVOKE INSERT ON audit_log FROM {role}")
        fleet = make_fleet(limited, extra=extra)
        await check_refusal(fleet, "permission denied for table audit_log")
        execute(postgres_url, f"GRANT INSERT ON audit_log TO {role}")
        await check_works(fleet)
        fleet.platform.close()
    finally:
        execute(postgres_url, f"DROP OWNED BY {role}; DROP ROLE {role}")


async def test_without_a_database_no_call_runs(
    make_fleet: Callable[..., Fleet], postgres_dsn: PostgresDatabases
) -> None:
    url = postgres_dsn()
    workload.REACHED.clear()
    fleet = make_fleet(url, extra={"workload": workload})
    actor = fleet.actor()
    postgres_dsn.drop(url)
    for tool, arguments in CALLS.items():
        with pytest.raises(AuditUnavailable, match="does not exist"):
            await fleet.call(actor, tool, **arguments)
    assert workload.REACHED == []
