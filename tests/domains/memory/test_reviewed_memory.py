"""What is easily overlooked: what is left behind when keys change, servers stop and time runs out."""

import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
import sqlalchemy as sa

from rookery.core.errors import ConfigurationError
from rookery.db import sqlite
from rookery.db.database import Database, open_database
from rookery.db.server_lock import server_lock
from rookery.domains.memory import store
from rookery.domains.memory.file_store import MemoryFiles, Shelf
from rookery.domains.memory.recalls import Recalls, recalls_of
from rookery.domains.memory.rotation import rotate
from rookery.domains.memory.tables import memory_recalls
from rookery.sealing.key_table import refuse_other_key
from rookery.sealing.keyring import Keyring
from tests.cli.terminal import Terminal
from tests.domains.memory.minds import WORDS, Minds

FIRST, SECOND = Keyring(bytes(range(32))), Keyring(bytes(range(32, 64)))
SHELF = Shelf("default", "_global", "worker")
SAID = "the cormorant dries its wings"


def timers() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if isinstance(thread, threading.Timer)}


def test_sealing_leaves_nothing_of_a_plain_memory_file_in_the_database(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure = sqlite._configure  # pyright: ignore[reportPrivateUsage]

    # Some builds of SQLite overwrite what is deleted, others do not.
    def forgetful(connection: sqlite3.Connection, record: object) -> None:
        configure(connection, record)
        connection.execute("PRAGMA secure_delete=OFF")

    monkeypatch.setattr(sqlite, "_configure", forgetful)
    terminal = Terminal(tmp_path)
    terminal.ok("memory", "list")
    database = open_database(f"sqlite:///{terminal.database}")
    for number in range(20):
        text = f"{SAID} {number}. " * 100
        database.direct(lambda tx, n=number, t=text: MemoryFiles(tx).put(SHELF, f"n{n}.md", t, "ada"), write=True)
    database.close()
    sealed = Terminal(tmp_path, ROOKERY_MNEMONIC=WORDS)
    assert sealed.json("memory", "rotate-key", "--json")["files"] == 20
    for file in terminal.home.rglob("*"):
        assert not file.is_file() or SAID.encode() not in file.read_bytes(), file.name


def test_a_key_is_not_changed_under_a_server_that_runs(tmp_path: Path) -> None:
    Terminal(tmp_path).ok("memory", "list")
    sealed = Terminal(tmp_path, ROOKERY_MNEMONIC=WORDS)
    with server_lock(str(sealed.home), hint="-"):
        assert "already running" in sealed.fails("memory", "rotate-key")
    sealed.ok("memory", "rotate-key")


async def test_a_key_whose_memory_has_run_out_is_free_however_many_others_have(
    minds: Minds, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "_SWEEP", store._SWEEP.where(sa.false()))  # pyright: ignore[reportPrivateUsage]
    await minds.save(minds.ada, "tide", "high at noon", ttl_days=1)
    minds.change(expires_ms=1)
    assert (await minds.save(minds.ada, "tide", "low at nine")).outcome == "created"
    assert [found["content"] for found in await minds.recall(minds.ada, key="tide")] == ["low at nine"]
    assert len(minds.rows()) == 1


async def test_a_server_that_is_closed_has_written_its_counts_and_has_no_thread_left(minds: Minds) -> None:
    await minds.save(minds.ada, "tide", "high at noon")
    recalls = recalls_of(minds.fleet.platform.calls)
    before = timers()
    for _ in range(3):
        await minds.recall(minds.ada, key="tide")
    recalls.close()
    assert recalls.pending == 0
    assert [row.recalls for row in minds.rows(sa.select(memory_recalls))] == [3]
    recalls.add([1])
    assert timers() <= before


def test_counts_that_cannot_be_written_at_the_end_are_dropped() -> None:
    class Gone:
        def direct(self, work: Callable[..., object], *, write: bool) -> None:
            raise OSError("gone")

    before = timers()
    recalls = Recalls(Gone())  # pyright: ignore[reportArgumentType]
    recalls.add([1])
    recalls.close()
    assert timers() <= before


async def test_a_server_does_not_start_with_a_key_that_was_changed_for_another(
    make_minds: Callable[..., Minds],
) -> None:
    minds = make_minds()
    database: Database = minds.fleet.platform.database
    await minds.save(minds.ada, "tide", "high at noon")
    rotate(database, None, FIRST)
    rotate(database, FIRST, SECOND)
    database.direct(lambda tx: refuse_other_key(tx, SECOND))
    with pytest.raises(ConfigurationError, match="another key"):
        database.direct(lambda tx: refuse_other_key(tx, FIRST))
    rotate(database, SECOND, FIRST)
    database.direct(lambda tx: refuse_other_key(tx, FIRST))
    with pytest.raises(ConfigurationError):
        rotate(database, None, SECOND)
    database.direct(lambda tx: refuse_other_key(tx, FIRST))


async def test_files_alone_change_the_key_that_a_server_starts_with(plain_minds: Minds) -> None:
    database: Database = plain_minds.fleet.platform.database
    database.direct(lambda tx: MemoryFiles(tx, FIRST).put(SHELF, "a.md", SAID, "ada"), write=True)
    with pytest.raises(ConfigurationError):
        database.direct(lambda tx: MemoryFiles(tx).reseal(SECOND), write=True)
    database.direct(lambda tx: refuse_other_key(tx, FIRST))
    assert database.direct(lambda tx: MemoryFiles(tx, FIRST).reseal(SECOND), write=True) == 1
    database.direct(lambda tx: refuse_other_key(tx, SECOND))
    with pytest.raises(ConfigurationError):
        database.direct(lambda tx: refuse_other_key(tx, FIRST))
