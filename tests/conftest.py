"""What every test may ask for. Databases are made here, a platform on them in platform_fixtures.py."""

import gc
import os
import signal
import sys
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from rookery.db.threads import Stopped
from rookery.server.loop import COLLECT_AT
from tests.databases import PostgresDatabases, PostgresServer, PostgresUnavailable, roomy_folder

pytest_plugins = ["tests.platform_fixtures"] if Path(__file__).with_name("platform_fixtures.py").exists() else []

# Examples that come slowly say something about the machine, and nothing about what is tested.
settings.register_profile("busy machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy machine")

SERVER = pytest.StashKey[PostgresServer]()
SERVER_FOLDER = pytest.StashKey[Path]()


def pytest_configure(config: pytest.Config) -> None:
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # A run in the background has it so, and the programs under test would inherit it.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    given: dict[str, Any] | None = getattr(config, "workerinput", None)
    if given is None:
        keep_files_in_memory()
        server = config.stash[SERVER] = PostgresServer()
        config.stash[SERVER_FOLDER] = server.folder
    else:
        config.stash[SERVER_FOLDER] = Path(given["postgres_folder"])


def keep_files_in_memory() -> None:
    """No test cuts the power, and to wait for a disk was a good part of a run. Whoever names a folder has it."""
    folder = roomy_folder()
    if folder and "TMPDIR" not in os.environ and not os.statvfs(folder).f_flag & os.ST_NOEXEC:
        os.environ["TMPDIR"], tempfile.tempdir = str(folder), None


def pytest_sessionstart() -> None:
    """A stop that is raised into a thread may arrive in a finalizer, which cannot pass it on; the watch repeats it."""
    report = sys.unraisablehook

    def unless_stopped(found: "sys.UnraisableHookArgs") -> None:
        if not issubclass(found.exc_type, Stopped):
            report(found)

    sys.unraisablehook = unless_stopped


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.get_closest_marker("early") is None)


def pytest_collection_finish() -> None:
    """Thousands of tests that were found are no garbage: to look through them again and again took a tenth of a run."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECT_AT)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    node.workerinput["postgres_folder"] = str(node.config.stash[SERVER_FOLDER])


def pytest_unconfigure(config: pytest.Config) -> None:
    if server := config.stash.get(SERVER, None):
        server.stop()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """What was logged may hold half of a surrogate pair, which cannot be sent from a worker to the run."""
    report = yield
    report.sections = [(name, text.encode(errors="replace").decode()) for name, text in report.sections]
    return report


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def postgres_dsn(pytestconfig: pytest.Config, worker_name: str) -> Iterator[PostgresDatabases]:
    """Makes fresh PostgreSQL databases: `postgres_dsn()` is the URL of one. `drop` them if there are many."""
    try:
        databases = PostgresDatabases(pytestconfig.stash[SERVER_FOLDER], worker_name)
    except PostgresUnavailable as reason:
        pytest.fail(f"no PostgreSQL for this test: {reason}", pytrace=False)
    yield databases
    databases.close()


@pytest.fixture(scope="session")
def worker_name(pytestconfig: pytest.Config) -> str:
    """Which of the run's parallel processes this is: gw0, gw1 … or main."""
    given: dict[str, str] = getattr(pytestconfig, "workerinput", {})
    return given.get("workerid", "main")


@pytest.fixture
def postgres_url(postgres_dsn: PostgresDatabases) -> Iterator[str]:
    """The URL of an empty PostgreSQL database that is gone after the test."""
    url = postgres_dsn()
    yield url
    postgres_dsn.retire(url)


@pytest.fixture(params=["sqlite", "postgres"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty database that no other test sees; the test runs on SQLite and on PostgreSQL."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'rookery.db'}"
    url: str = request.getfixturevalue("postgres_url")
    return url
