"""Homes with servers in them, and clients in both modes, all gone after the test."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.server.processes import Client, Server, environment

MODES = ("direct", "relay")


@pytest.fixture(scope="session")
def plugin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A distribution whose entry point leads to trials.py."""
    folder = tmp_path_factory.mktemp("plugin")
    described = folder / "rookery_trials-1.0.dist-info"
    described.mkdir()
    (described / "METADATA").write_text("Metadata-Version: 2.1\nName: rookery-trials\nVersion: 1.0\n")
    (described / "entry_points.txt").write_text("[rookery.domains]\ntrials = tests.server.trials\n")
    return folder


class Place:
    """One home: starts servers and clients in it."""

    def __init__(self, plugin: Path) -> None:
        # The folders of tmp_path can be too deep for a socket.
        self.home = Path(tempfile.mkdtemp(prefix="rookery-"))
        self.plugin: Path | None = plugin
        self.env: dict[str, str] = {}
        self.servers: list[Server] = []
        self.clients: list[Client] = []

    def environment(self) -> dict[str, str]:
        return environment(self.home, self.plugin, **self.env)

    def server(self) -> Server:
        self.servers.append(Server(self.home, self.environment()))
        return self.servers[-1]

    def client(self, *flags: str, direct: bool = False, cwd: Path | None = None) -> Client:
        """A client that has yet to introduce itself, started in the home or in another folder."""
        mode = ("--direct",) if direct else ()
        client = Client(self.home, self.environment(), *flags, *mode, number=len(self.clients), cwd=cwd)
        self.clients.append(client)
        return client

    def session(self, *flags: str, direct: bool = False, cwd: Path | None = None) -> Client:
        """A client of 2025-11-25 that has introduced itself."""
        client = self.client(*flags, direct=direct, cwd=cwd)
        client.initialize()
        return client

    def close(self) -> None:
        for process in (*self.clients, *self.servers):
            process.close()
        shutil.rmtree(self.home)


@pytest.fixture
def place(plugin: Path) -> Iterator[Place]:
    """A home of the test's own, with nothing running in it."""
    place = Place(plugin)
    yield place
    place.close()


@pytest.fixture(scope="module")
def shared(plugin: Path) -> Iterator[Place]:
    """A home with a running server, for the tests of one file that leave no trace in it."""
    place = Place(plugin)
    try:
        place.server()
        yield place
    finally:
        place.close()


@pytest.fixture(params=MODES)
def direct(request: pytest.FixtureRequest) -> bool:
    """The test runs once in direct mode and once through the relay."""
    return request.param == "direct"


@pytest.fixture(scope="module")
def standing() -> dict[tuple[Place, bool], Client]:
    """The sessions that the tests of one file share: a start in direct mode takes a second."""
    return {}


@pytest.fixture(scope="module")
def modern_standing() -> dict[tuple[Place, bool], Client]:
    return {}


@pytest.fixture
def client(shared: Place, direct: bool, standing: dict[tuple[Place, bool], Client]) -> Client:
    """A session of 2025-11-25 in the mode of the test, which has lived through the tests before this one."""
    if (shared, direct) not in standing:
        able = shared.client(direct=direct)
        able.initialize("2025-11-25", elicitation={}, sampling={})
        standing[shared, direct] = able
    client = standing[shared, direct]
    assert client.process.poll() is None, client.errors
    client.seen.clear()
    return client


@pytest.fixture
def modern(shared: Place, direct: bool, modern_standing: dict[tuple[Place, bool], Client]) -> Client:
    """The same of 2026-07-28."""
    if (shared, direct) not in modern_standing:
        able = shared.client(direct=direct).be_modern(elicitation={}, sampling={})
        modern_standing[shared, direct] = able
    client = modern_standing[shared, direct]
    assert client.process.poll() is None, client.errors
    client.seen.clear()
    return client
