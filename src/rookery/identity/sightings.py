"""When each agent was first and last seen at a door, so that people are told that it has got through."""

from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from rookery.db.clock import DbNow
from rookery.db.migrate import Migration
from rookery.db.schema import metadata, text, whole
from rookery.db.tx import Tx

agent_sightings = sa.Table(
    "agent_sightings",
    metadata,
    text("tenant", primary_key=True),
    text("agent", primary_key=True),
    text("door"),
    whole("first_ms"),
    whole("seen_ms"),
)
"""`door` is how it came last, such as `stdio` or `http`."""

MIGRATIONS = (
    Migration(
        1,
        "agents that were seen",
        [
            "CREATE TABLE agent_sightings (tenant TEXT NOT NULL, agent TEXT NOT NULL, door TEXT NOT NULL, "
            "first_ms BIGINT NOT NULL, seen_ms BIGINT NOT NULL, PRIMARY KEY (tenant, agent))"
        ],
    ),
)


def note_sighting(tx: Tx, tenant: str, agent: str, door: str) -> None:
    """The agent is there now."""
    insert: Any = (sqlite if tx.dialect == "sqlite" else postgresql).insert(agent_sightings)
    new = insert.values(tenant=tenant, agent=agent, door=door, first_ms=DbNow(), seen_ms=DbNow())
    again = {"door": door, "seen_ms": DbNow()}
    tx.run(new.on_conflict_do_update(index_elements=["tenant", "agent"], set_=again))
