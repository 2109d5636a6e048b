"""Where agents talk with agents elsewhere: a fleet, and what its clients are shown."""

from collections.abc import Callable, Sequence
from typing import Any, cast

import sqlalchemy as sa

from rookery.core.actor import Actor
from rookery.core.context import SilentDoor
from rookery.domains.a2a.tables import cards, sessions, tasks
from rookery.identity.store import IdentityStore
from rookery.lifecycle.sessions import Runtime
from tests.domains.messages.post_office import Noted
from tests.platform_fixtures import Fleet
from tests.sessions.stage import use_sessions

HERE = "127.0.0.1"
TABLES = {"cards": cards, "sessions": sessions, "tasks": tasks}


class Client(SilentDoor):
    """A client that remembers what it was shown while a call ran."""

    def __init__(self) -> None:
        self.shown: list[tuple[str, dict[str, Any]]] = []

    def tell(self, method: str, params: dict[str, Any]) -> None:
        self.shown.append((method, params))

    def messages(self, method: str) -> list[str]:
        return [str(params["message"]) for told, params in self.shown if told == method]


class Outpost:
    """Calls tools as agents do."""

    def __init__(self, make: Callable[..., Fleet], **settings: Any) -> None:
        given = {"a2a_allow": (HERE,), "a2a_trust": ((HERE, ("low",)),), "a2a_invocation_cooldown_ms": 0, **settings}
        self.fleet = make(**given)
        self.platform = self.fleet.platform
        self.client = Client()
        self.runtime = Noted(use_sessions(self.platform))
        self.use(cast(Runtime, self.runtime))

    def use(self, runtime: Runtime | None) -> None:
        """Start sessions by this runtime from now on; None: nobody does."""
        cast("dict[str, Any]", self.platform.calls.facts)["runtime"] = runtime

    def agent(self, **binding: Any) -> Actor:
        return self.fleet.actor(**{"session": "ses-1", **binding})

    @property
    def stranger(self) -> Actor:
        """An agent of another tenant on the same database."""
        self.platform.database.direct(lambda tx: IdentityStore(tx, "other").set_up(), write=True)
        return self.fleet.actor(tenant="other")

    async def result(self, tool: str, actor: Actor | None = None, /, **arguments: Any) -> Any:
        return await self.platform.calls.call(actor or self.agent(), tool, arguments, door=self.client)

    async def discover(self, query: str, actor: Actor | None = None) -> dict[str, Any]:
        return (await self.result("discover_agent", actor, query=query)).structured

    async def invoke(self, url: str, message: str, actor: Actor | None = None, **more: Any) -> dict[str, Any]:
        return (await self.result("invoke_remote_agent", actor, agent_url=url, message=message, **more)).structured

    def rows(self, table: str) -> Sequence[Any]:
        return self.platform.database.direct(lambda tx: tx.all(sa.select(TABLES[table])))

    def change(self, statement: sa.Executable) -> None:
        """Change the database behind everybody's back."""
        self.platform.database.direct(lambda tx: tx.run(statement), write=True)
