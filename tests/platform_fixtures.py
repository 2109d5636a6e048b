"""A platform on a fresh database, and the actors that tests speak as."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import sqlalchemy as sa
from pydantic import BaseModel
from sqlalchemy.util import LRUCache

from rookery.app import Platform, make_platform
from rookery.core.actor import Actor
from rookery.db.database import Database
from rookery.db.postgres import PostgresDatabase
from rookery.db.sqlite import SqliteDatabase
from rookery.identity.resolve import Binding
from rookery.settings import Settings
from tests import stand_ins
from tests.databases import PostgresDatabases

COMPILED: dict[str, tuple[sa.Dialect, LRUCache[Any, Any]]] = {}
"""Statements as text, by the server that they are for; there are a few thousand."""
UNTOUCHED: set[str] = set()
"""Copies of a template on which no platform has been built yet: there is nothing in them to migrate or to repair."""


class Fleet:
    """A platform as its callers see it: bind an actor, call a tool, read the answer."""

    def __init__(self, platform: Platform) -> None:
        self.platform = platform

    def actor(self, **binding: Any) -> Actor:
        """Who a session with this binding would be, as the database has it now."""
        bound = Binding(**binding)
        return self.platform.database.direct(lambda tx: self.platform.resolver.resolve(tx, bound)).actor

    @property
    def owner(self) -> Actor:
        return self.actor(as_owner=True)

    async def call(self, actor: Actor, tool: str, /, **arguments: Any) -> Any:
        """The tool's own result. Raises what the caller would be told."""
        result = await self.platform.calls.call(actor, tool, arguments)
        assert isinstance(result.value, BaseModel)
        return result.value

    async def issue(self, title: str = "login fails") -> str:
        """The id of a new issue of the default project, to bind sessions to."""
        return (await self.call(self.owner, "create_issue", title=title)).id

    def names(self, actor: Actor) -> set[str]:
        """The names that `actor` sees listed."""
        return {tool.name for tool in self.platform.registry.listed(actor)}


def share_compiled(database: Database) -> None:
    """Every engine compiles its statements for itself, which was a tenth of the time that tests took."""
    assert isinstance(database, PostgresDatabase | SqliteDatabase)
    engine = database.engine if isinstance(database, PostgresDatabase) else database._engine
    server = f"{engine.url.drivername} {engine.url.query.get('host')}"
    engine.dialect, compiled = COMPILED.setdefault(server, (engine.dialect, LRUCache(4000)))
    engine.update_execution_options(compiled_cache=compiled)


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database file with our tables and the default identities, to be copied."""
    home = tmp_path_factory.mktemp("template")
    make_platform(Settings(home=str(home), plugins=False)).close()
    assert not (home / "rookery.db-wal").exists()
    return home / "rookery.db"


@pytest.fixture(scope="session")
def postgres_template(postgres_dsn: PostgresDatabases, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The same on PostgreSQL."""
    url = postgres_dsn()
    make_platform(Settings(home=str(tmp_path_factory.mktemp("template")), database=url, plugins=False)).close()
    return url


@pytest.fixture(params=["sqlite", "postgres"])
def prepared_database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Instead of `database_url` where tests need a platform: it has its tables already, which saves most of a start."""
    if request.param == "sqlite":
        shutil.copyfile(request.getfixturevalue("sqlite_template"), tmp_path / "rookery.db")
        url = f"sqlite:///{tmp_path / 'rookery.db'}"
        UNTOUCHED.add(url)
        yield url
    else:
        databases: PostgresDatabases = request.getfixturevalue("postgres_dsn")
        url = databases(request.getfixturevalue("postgres_template"))
        UNTOUCHED.add(url)
        yield url
        databases.retire(url)
    UNTOUCHED.discard(url)


@pytest.fixture
def make_fleet(tmp_path: Path) -> Iterator[Callable[..., Fleet]]:
    """Builds fleets on a given database; all are closed after the test."""
    made: list[Platform] = []

    def make(database_url: str, *, extra: dict[str, ModuleType] | None = None, **settings: Any) -> Fleet:
        # Who waits for an approval here says for how long.
        settings = {"approval_hold_s": 0.0, **settings}
        chosen = Settings(home=str(tmp_path / "home"), database=database_url, plugins=False, **settings)
        domains = {"stand_ins": stand_ins} if extra is None else extra
        ready = database_url in UNTOUCHED and not chosen.credits_hard_stop
        ready = ready and not any(hasattr(domain, "MIGRATIONS") for domain in domains.values())
        UNTOUCHED.discard(database_url)
        made.append(make_platform(chosen, extra=domains, prepare=not ready))
        share_compiled(made[-1].database)
        return Fleet(made[-1])

    yield make
    for platform in made:
        platform.close()
        if isinstance(platform.database, PostgresDatabase):
            # Tests that look at what a closed platform has left open connections again.
            platform.database.engine.dispose()


@pytest.fixture
def fleet(database_url: str, make_fleet: Callable[..., Fleet]) -> Fleet:
    """A fleet with our tools and the stand-ins, on SQLite and on PostgreSQL."""
    return make_fleet(database_url)
