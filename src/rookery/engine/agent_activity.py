"""When something was last heard of each agent, for the people who look after them.

Not in a module where tools are looked for: nobody but people has it, and no session pays for its listing.
"""

import sqlalchemy as sa

from rookery.around.audit import audit_log
from rookery.core.context import Context
from rookery.core.moments import iso
from rookery.core.tool import NoInput, ToolOutput, tool
from rookery.db.tx import Tx
from rookery.identity.tables import agents
from rookery.repute.tables import reputation_events

LATEST_CALLS = 5_000
"""So many of the newest records are looked through: the log has no index by agent, and may have millions."""
_l, _e = audit_log.c, reputation_events.c


class AgentSeen(ToolOutput):
    agent_id: str
    seen_at: str | None


class AgentActivity(ToolOutput):
    agents: list[AgentSeen]


@tool(
    title="Get agent activity", effect="read", action="identity:read", tier="observe", group="System", profiles="",
    default=False, principals="people",
)  # fmt: skip
def get_agent_activity(ctx: Context, args: NoInput) -> AgentActivity:
    """Say when each agent last called a tool; of one whose last call is long ago, when its last session began."""
    tenant = ctx.actor.tenant
    lately, sessions = _latest_calls(ctx.tx, tenant), _latest_sessions(ctx.tx, tenant)
    ids = [row.id for row in ctx.tx.all(sa.select(agents.c.id).where(agents.c.tenant == tenant))]
    seen = {agent: max(lately.get(agent, 0), sessions.get(agent, 0)) for agent in ids}
    return AgentActivity(agents=[AgentSeen(agent_id=agent, seen_at=iso(at or None)) for agent, at in seen.items()])


def _latest_calls(tx: Tx, tenant: str) -> dict[str, int]:
    newest = tx.scalar(sa.select(sa.func.max(_l.id))) or 0
    recent = (_l.id > newest - LATEST_CALLS, _l.tenant == tenant, _l.agent.is_not(None))
    rows = tx.all(sa.select(_l.agent, sa.func.max(_l.at_ms).label("at_ms")).where(*recent).group_by(_l.agent))
    return {row.agent: row.at_ms for row in rows}


def _latest_sessions(tx: Tx, tenant: str) -> dict[str, int]:
    at = (
        sa.select(sa.func.max(_e.created_ms))
        .where(_e.tenant == tenant, _e.agent_id == agents.c.id, _e.type == "session_completed")
        .scalar_subquery()
    )
    rows = tx.all(sa.select(agents.c.id, at.label("at_ms")).where(agents.c.tenant == tenant))
    return {row.id: row.at_ms for row in rows if row.at_ms is not None}
