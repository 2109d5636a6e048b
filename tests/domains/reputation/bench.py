"""Where reputations are looked at, and where something can be noted of an agent as if it had happened."""

from typing import Any

import sqlalchemy as sa

from rookery.core.actor import Actor
from rookery.db.clock import now_ms
from rookery.db.tx import Tx
from rookery.identity.store import IdentityStore
from rookery.repute.events import EventType, ReputationEvent, add_events
from rookery.repute.tables import reputation_events
from tests.platform_fixtures import Fleet

FRESH = {
    "task_completion": 50,
    "peer_rating": 50,
    "credit_pattern": 50,
    "security_compliance": 100,
    "activity_level": 0,
}
DAY_MS = 86_400_000


class Bench:
    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet

    async def agent(self, name: str) -> Actor:
        """A new agent."""
        await self.fleet.call(self.fleet.owner, "create_agent", name=name)
        return self.fleet.actor(agent=name)

    @property
    def stranger(self) -> Actor:
        """The owner of another tenant on the same database."""
        self.fleet.platform.database.direct(lambda tx: IdentityStore(tx, "other").set_up(), write=True)
        return self.fleet.actor(tenant="other", as_owner=True)

    async def look(self, actor: Actor, **arguments: Any) -> dict[str, Any]:
        """What check_reputation says."""
        return (await self.fleet.call(actor, "check_reputation", **arguments)).model_dump()

    async def parts(self, actor: Actor) -> dict[str, int]:
        """The components of the actor's own score that are not those of a fresh agent."""
        components: dict[str, int] = (await self.look(actor))["components"]
        return {name: value for name, value in components.items() if FRESH[name] != value}

    def note(self, actor: Actor, kind: EventType, impact: int = 1, *, times: int = 1, days_ago: int = 0) -> None:
        """Add events of an agent, older than they would be."""
        assert actor.agent is not None
        one = ReputationEvent(tenant=actor.tenant, agent_id=actor.agent, type=kind, impact=impact)

        def add(tx: Tx) -> None:
            if days_ago == 0:
                add_events(tx, [one] * times)
                return
            row = {"tenant": one.tenant, "agent_id": one.agent_id, "type": kind, "impact": impact, "about": {}}
            old = now_ms(tx) - days_ago * DAY_MS
            tx.run(sa.insert(reputation_events), [{**row, "key": None, "created_ms": old}] * times)

        self.fleet.platform.database.direct(add, write=True)

    def rows(self, statement: sa.Executable) -> Any:
        return self.fleet.platform.database.direct(lambda tx: tx.all(statement))

    def change(self, statement: sa.Executable) -> None:
        self.fleet.platform.database.direct(lambda tx: tx.run(statement), write=True)
