"""Who is there to write to, and who of them is at work."""

from typing import Any

import sqlalchemy as sa

from rookery.db.tx import Tx
from rookery.domains.messages.tables import messages
from rookery.identity.store import IdentityStore
from rookery.lifecycle.run_tables import agent_runs

TRUST = ("untrusted", "low", "medium", "high", "verified")
Row = sa.Row[Any]
_ANSWERING = sa.select(messages.c.to_id.label("agent")).where(
    # Written out: only so does SQLite see that the index of these rows will do.
    messages.c.tenant == sa.bindparam("of_tenant"),
    messages.c.status == sa.literal_column("'processing'"),
)
_RUNNING = sa.select(agent_runs.c.agent.label("agent")).where(
    agent_runs.c.tenant == sa.bindparam("of_tenant"), agent_runs.c.status == "running"
)
_BUSY = sa.union(_ANSWERING, _RUNNING)


def known_agents(tx: Tx, tenant: str, caller: str | None) -> list[dict[str, Any]]:
    """Every agent by name. Busy is who answers a message or has a run under way, as far as that is recorded."""
    # Runs name their agent by whatever their starter called it.
    busy = {row.agent for row in tx.all(_BUSY, {"of_tenant": tenant})}
    return [
        {
            "name": row.name,
            "id": row.id,
            "status": "busy" if row.id in busy or row.name in busy else "idle",
            "trust": None if row.trust is None else TRUST[row.trust],
            "self": row.id == caller,
        }
        for row in IdentityStore(tx, tenant).agents()
    ]
