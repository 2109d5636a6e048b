"""A fleet whose agents tell their owner something, with a worker and servers on this machine."""

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from rookery.core.actor import Actor
from rookery.domains.owner.delivery_jobs import defer_deliveries
from rookery.domains.owner.notify_store import NewNotification, Notifications
from rookery.domains.owner.notify_tables import (
    SHARED,
    notification_channels,
    notification_deliveries,
    owner_notifications,
)
from rookery.identity.store import IdentityStore
from rookery.jobs.tables import jobs
from rookery.outgoing.client import GuardedClient
from tests.jobs.working import running_worker, settled
from tests.platform_fixtures import Fleet

HERE = ("127.0.0.1",)


class Everywhere(GuardedClient):
    """Takes this machine for the internet, so that agents can have channels that tests can hear."""

    def for_agents(self) -> GuardedClient:
        return self


TABLES = {"channels": notification_channels, "deliveries": notification_deliveries, "told": owner_notifications}


class Telling:
    """Speaks to the platform as agents and their owner do."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self.platform = fleet.platform
        facts: Any = self.platform.calls.facts
        facts["outgoing"] = Everywhere(self.platform.settings.outgoing_allow)

    @property
    def agent(self) -> Actor:
        return self.fleet.actor()

    @property
    def owner(self) -> Actor:
        return self.fleet.owner

    async def new_agent(self, name: str) -> Actor:
        await self.fleet.call(self.owner, "create_agent", name=name)
        return self.fleet.actor(agent=name)

    @property
    def stranger(self) -> Actor:
        """The owner of another tenant on the same database."""
        self.platform.database.direct(lambda tx: IdentityStore(tx, "other").set_up(), write=True)
        return self.fleet.actor(tenant="other", as_owner=True)

    async def configure(self, actor: Actor, action: str, channel_type: str | None = None, **more: Any) -> Any:
        given = {"channel_type": channel_type} if channel_type is not None else {}
        return (await self.fleet.call(actor, "configure_notifications", action=action, **given, **more)).channels

    async def tell(self, actor: Actor, message: str = "the tests are green", **more: Any) -> Any:
        """notify_owner, with a worker that runs meanwhile."""
        async with running_worker(self.platform):
            return await self.fleet.call(actor, "notify_owner", message=message, **more)

    def leave(self, actor: Actor) -> None:
        """What notify_owner keeps before it waits."""
        new = NewNotification(
            agent_id=actor.agent or SHARED, sender="x", session_id=None, title="", message="x", level="info"
        )

        def keep(tx: Any) -> None:
            told, _ = Notifications(tx, actor.tenant).tell(new)
            defer_deliveries(tx, actor.tenant, "notification", told, new.agent_id)

        self.platform.database.direct(keep, write=True)

    async def work(self) -> None:
        """Let a worker do what is due."""
        async with running_worker(self.platform):
            await settled(self.platform)

    async def try_again(self) -> None:
        """Let a worker do everything that waits, whenever it is due."""
        self.change(sa.update(jobs).where(jobs.c.state == "waiting").values(due_ms=0))
        await self.work()

    def rows(self, table: str) -> Sequence[sa.Row[Any]]:
        wanted = sa.select(TABLES[table]).order_by(TABLES[table].c.id)
        return self.platform.database.direct(lambda tx: tx.all(wanted))

    def change(self, statement: sa.Executable) -> None:
        """Change the database behind everybody's back."""
        self.platform.database.direct(lambda tx: tx.run(statement), write=True)

    def everything(self) -> str:
        """Every value of every table, as text."""
        database = self.platform.database

        def dumped(tx: Any) -> str:
            names = sa.inspect(tx.connection).get_table_names()
            return "\n".join(str(tuple(row)) for name in names for row in tx.all(sa.text(f'SELECT * FROM "{name}"')))

        return database.direct(dumped)
