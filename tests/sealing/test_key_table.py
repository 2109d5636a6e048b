"""The keys that a database was sealed with, by number."""

import contextlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa

from rookery.db.database import Database, open_database
from rookery.db.migrate import migrate
from rookery.db.tx import Tx
from rookery.sealing.key_table import MIGRATIONS, current_version, key_versions, known_version
from rookery.sealing.keyring import Keyring

OLD, NEW = Keyring(bytes(range(32))), Keyring(bytes(range(64)))


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    with contextlib.closing(open_database(database_url)) as opened:
        migrate(opened, {"sealing": MIGRATIONS}, None)
        yield opened


def test_a_key_gets_its_number_at_first_use_and_keeps_it(database: Database) -> None:
    def use(tx: Tx) -> tuple[int, int, int]:
        return current_version(tx, OLD), current_version(tx, NEW), current_version(tx, OLD)

    first, second, again = database.direct(use, write=True)
    assert first == again != second
    assert database.direct(key_versions) == {first: OLD.fingerprint, second: NEW.fingerprint}
    assert database.direct(lambda tx: known_version(tx, NEW)) == second


def test_a_known_key_is_found_without_a_write(database: Database) -> None:
    assert database.direct(lambda tx: known_version(tx, OLD)) is None
    version = database.direct(lambda tx: current_version(tx, OLD), write=True)
    assert database.direct(lambda tx: current_version(tx, OLD)) == version


def test_a_first_use_that_is_undone_leaves_nothing(database: Database) -> None:
    def use(tx: Tx) -> None:
        current_version(tx, OLD)
        raise LookupError

    with pytest.raises(LookupError):
        database.direct(use, write=True)
    assert database.direct(key_versions) == {}
    assert database.direct(lambda tx: current_version(tx, OLD), write=True)


def test_servers_that_use_a_new_key_at_the_same_moment_agree_on_its_number(
    database: Database, database_url: str
) -> None:
    def start(_: int) -> int:
        with contextlib.closing(open_database(database_url)) as own:
            return own.direct(lambda tx: current_version(tx, NEW), write=True)

    with ThreadPoolExecutor(6) as pool:
        numbers = set(pool.map(start, range(6)))
    assert len(numbers) == 1
    assert len(database.direct(key_versions)) == 1


def test_the_table_holds_nothing_of_the_key(database: Database) -> None:
    database.direct(lambda tx: current_version(tx, OLD), write=True)
    rows = database.direct(lambda tx: tx.all(sa.text("SELECT * FROM seal_keys")))
    assert [tuple(row)[:2] for row in rows] == [(1, OLD.fingerprint)]
