"""A server with a token for programs of others, and the sentence that is said if those are not installed."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.clients.install import MissingError, claude, is_installed, node
from tests.clients.running import Home

ERAS = ("legacy", "modern")


class Served(NamedTuple):
    """A running server, and a token with which one acts as the default agent there."""

    home: Home
    url: str
    token: str


@pytest.fixture(scope="session", autouse=True)
def installed() -> None:
    """Nothing is skipped: without the programs these tests fail and say what to do."""
    try:
        node()
        if not is_installed():
            raise MissingError("the clients are not installed as the tests want them")
        claude()
    except MissingError as reason:
        pytest.fail(f"{reason}; make test installs them, or python -m tests.clients.install", pytrace=False)


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    """One server for the tests of a file, which leave no trace in it."""
    home = Home()
    try:
        port = home.up("--port", "0")
        token = home.run("token", "create", "clients", "--agent", "default").strip()
        yield Served(home, f"http://127.0.0.1:{port}/mcp", token)
    finally:
        home.close()


@pytest.fixture
def user(tmp_path: Path) -> Path:
    """The empty home of whoever runs the client."""
    folder = tmp_path / "user"
    folder.mkdir()
    return folder
