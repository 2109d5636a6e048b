"""Agents and people who remember, on one server, and a look at the rows behind them."""

from collections.abc import Callable, Sequence
from typing import Any

import sqlalchemy as sa

from rookery.core.actor import Actor
from rookery.domains.memory.tables import memories
from rookery.identity.store import IdentityStore
from tests.platform_fixtures import Fleet

WORDS = "legal winner thank year wave sausage worth useful legal winner thank yellow"
"""Twelve words of BIP-39 with a right checksum, known to everybody."""
OTHER_WORDS = "letter advice cage absurd amount doctor acoustic avoid letter advice cage above"


class Minds:
    """One server. Its actors call tools as agents and people do."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet

    async def agent(self, name: str) -> Actor:
        await self.fleet.call(self.fleet.owner, "create_agent", name=name)
        return self.fleet.actor(agent=name)

    @property
    def ada(self) -> Actor:
        """The default agent."""
        return self.fleet.actor()

    def stranger(self) -> Actor:
        """The default agent of another tenant on the same database."""
        self.fleet.platform.database.direct(lambda tx: IdentityStore(tx, "other").set_up(), write=True)
        return self.fleet.actor(tenant="other")

    async def save(self, actor: Actor, key: str, content: str, **more: Any) -> Any:
        return await self.fleet.call(actor, "save_memory", key=key, content=content, **more)

    async def recall(self, actor: Actor, **how: Any) -> list[dict[str, Any]]:
        return (await self.fleet.call(actor, "recall_memory", **how)).memories

    async def keys(self, actor: Actor, query: str | None = None, **how: Any) -> list[str]:
        """The keys of what is found, in their order."""
        return [found["key"] for found in await self.recall(actor, **({"query": query} if query else {}), **how)]

    def rows(self, statement: sa.Executable | None = None) -> Sequence[sa.Row[Any]]:
        """What the database has."""
        chosen = sa.select(memories).order_by(memories.c.seq) if statement is None else statement
        return self.fleet.platform.database.direct(lambda tx: tx.all(chosen))

    def change(self, **values: Any) -> None:
        """Change every memory behind its owner's back, such as the time when it was saved."""
        self.fleet.platform.database.direct(lambda tx: tx.run(sa.update(memories).values(values)), write=True)

    def direct(self, work: Callable[[Any], Any]) -> Any:
        return self.fleet.platform.database.direct(work, write=True)
