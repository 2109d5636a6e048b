"""The keys that all servers on one database share."""

import contextlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa

from rookery.db.database import Database, open_database
from rookery.db.migrate import migrate
from rookery.db.server_keys import MIGRATIONS, server_key


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    with contextlib.closing(open_database(database_url)) as opened:
        migrate(opened, {"server_keys": MIGRATIONS}, None)
        yield opened


def test_a_key_is_made_once_and_stays(database: Database, database_url: str) -> None:
    key = server_key(database, "request-state")
    assert len(key) == 32
    with contextlib.closing(open_database(database_url)) as again:
        assert server_key(again, "request-state") == key
    assert server_key(database, "another") != key


def test_servers_that_start_at_the_same_moment_get_the_same_key(database: Database, database_url: str) -> None:
    def start(_: int) -> bytes:
        with contextlib.closing(open_database(database_url)) as own:
            return server_key(own, "request-state")

    with ThreadPoolExecutor(6) as pool:
        keys = set(pool.map(start, range(6)))
    assert len(keys) == 1
    assert database.direct(lambda tx: tx.scalar(sa.text("SELECT count(*) FROM server_keys"))) == 1


def test_two_databases_have_different_keys(database: Database, tmp_path_factory: pytest.TempPathFactory) -> None:
    other = open_database(f"sqlite:///{tmp_path_factory.mktemp('other') / 'rookery.db'}")
    with contextlib.closing(other):
        migrate(other, {"server_keys": MIGRATIONS}, None)
        assert server_key(other, "request-state") != server_key(database, "request-state")
