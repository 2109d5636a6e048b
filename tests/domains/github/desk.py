"""Where agents work with GitHub: a fleet, the GitHub that it talks to, and what its clients are shown."""

from collections.abc import Callable
from functools import cached_property
from typing import Any

import sqlalchemy as sa

from rookery.core.actor import Actor
from rookery.core.context import SilentDoor
from rookery.core.questions import ClientInfo
from rookery.domains.github.tables import answers, limits, posts
from rookery.identity.store import IdentityStore
from tests.domains.github.fake_github import FakeGitHub
from tests.domains.github.fake_server import Asked, Server
from tests.platform_fixtures import Fleet

TABLES = {"answers": answers, "limits": limits, "posts": posts}


class Client(SilentDoor):
    """A client that remembers what it was shown while a call ran."""

    def __init__(self) -> None:
        self.shown: list[dict[str, Any]] = []

    @property
    def client(self) -> ClientInfo:
        return ClientInfo(name="claude-code", version="2.1")

    def tell(self, method: str, params: dict[str, Any]) -> None:
        self.shown.append(params)


class Desk:
    """Calls tools as agents do. `with_settings` opens another fleet on the same database."""

    def __init__(self, make: Callable[..., Fleet], github: FakeGitHub, server: Server) -> None:
        self._make = make
        self.github = github
        self.server = server
        self.client = Client()

    @cached_property
    def fleet(self) -> Fleet:
        return self._make()

    def with_settings(self, **settings: Any) -> "Desk":
        other = Desk(self._make, self.github, self.server)
        other.fleet = self._make(**settings)
        return other

    @property
    def agent(self) -> Actor:
        return self.fleet.actor()

    @property
    def stranger(self) -> Actor:
        """The owner of another tenant on the same database."""
        self.fleet.platform.database.direct(lambda tx: IdentityStore(tx, "other").set_up(), write=True)
        return self.fleet.actor(tenant="other", as_owner=True)

    async def call(self, tool: str, actor: Actor | None = None, /, **arguments: Any) -> dict[str, Any]:
        """What the tool tells programs."""
        return (await self.result(tool, actor, **arguments)).structured

    async def result(self, tool: str, actor: Actor | None = None, /, **arguments: Any) -> Any:
        given = {"repo": "acme/shop", **arguments} if tool != "github_follow_user" else arguments
        return await self.fleet.platform.calls.call(actor or self.agent, tool, given, door=self.client)

    def asked(self, method: str, part: str = "") -> list[Asked]:
        """The requests that GitHub was sent."""
        return [asked for asked in self.server.asked if asked.method == method and part in asked.path]

    def count(self, table: str) -> int:
        counted = sa.select(sa.func.count()).select_from(TABLES[table])
        return self.fleet.platform.database.direct(lambda tx: tx.scalar(counted))

    def change(self, statement: sa.Executable) -> None:
        """Change the database behind everybody's back."""
        self.fleet.platform.database.direct(lambda tx: tx.run(statement), write=True)
