"""A home with a server in it, and relays that end with the test."""

import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.relay.peers import Client, Server


@pytest.fixture
def home() -> Iterator[Path]:
    # The folders of tmp_path can be too deep for a socket.
    folder = Path(tempfile.mkdtemp(prefix="rookery-"))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def serve(home: Path) -> Iterator[Callable[[], Server]]:
    """Starts a server in the home, in place of the one before."""
    servers: list[Server] = []

    def start() -> Server:
        (home / "rookery.sock").unlink(missing_ok=True)
        servers.append(Server(home))
        return servers[-1]

    yield start
    for server in servers:
        server.die()


@pytest.fixture
def server(serve: Callable[[], Server]) -> Server:
    return serve()


@pytest.fixture
def start(home: Path) -> Iterator[Callable[..., Client]]:
    """Starts a relay with these flags."""
    clients: list[Client] = []

    def run(*flags: str, **how: object) -> Client:
        clients.append(Client(home, *flags, **how))  # pyright: ignore[reportArgumentType]
        return clients[-1]

    yield run
    for client in clients:
        client.stop()


@pytest.fixture
def client(server: Server, start: Callable[..., Client]) -> Client:
    """A relay; the server has yet to accept it."""
    return start()
