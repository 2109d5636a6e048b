"""What people see of memories: how many there are and how they are used, never what they say."""

from typing import Any

import sqlalchemy as sa

from rookery.core.context import Context
from rookery.core.tool import NoInput, ToolOutput, tool
from rookery.domains.memory.store import now_ms
from rookery.domains.memory.tables import memories, memory_recalls

_OURS = memories.c.tenant == sa.bindparam("of_tenant")


def _those(condition: sa.ColumnElement[bool], name: str) -> sa.ColumnElement[int]:
    return sa.func.sum(sa.case((condition, 1), else_=0)).label(name)


_EXPIRED = memories.c.expires_ms <= sa.bindparam("now", type_=sa.BigInteger)
_OWNERS = (
    sa.select(
        memories.c.owner,
        sa.func.count().label("memories"),
        _those(memories.c.archived, "archived"),
        _those(sa.and_(memories.c.expires_ms.is_not(None), _EXPIRED), "expired"),
        _those(memory_recalls.c.memory_seq.is_(None), "never_recalled"),
        _those(memories.c.key_version.is_(None), "plain"),
    )
    .outerjoin(memory_recalls, memory_recalls.c.memory_seq == memories.c.seq)
    .where(_OURS)
    .group_by(memories.c.owner)
    .order_by(sa.func.count().desc(), memories.c.owner)
    .limit(200)
)
# The tokens say what a text says, sealed or not; those of archived ones are empty.
_SAME = (
    sa.select(memories.c.owner, (sa.func.count() - 1).label("extra"))
    .where(_OURS, memories.c.archived.is_(sa.false()))
    .group_by(memories.c.owner, memories.c.tokens)
    .having(sa.func.count() > 1)
    .subquery()
)
_DUPLICATES = sa.select(_SAME.c.owner, sa.func.sum(_SAME.c.extra).label("duplicates")).group_by(_SAME.c.owner)


class MemoryReport(ToolOutput):
    owners: list[dict[str, Any]]


@tool(
    title="Report memories", effect="read", action="memory:report", tier="observe", group="System", profiles="",
    default=False, principals="people",
)  # fmt: skip
def report_memories(ctx: Context, args: NoInput) -> MemoryReport:
    """Count memories by owner: how many, archived, expired, duplicates, never recalled, not sealed.
    Use it to see what piles up. Returns at most 200 owners and nothing of what they remember. Only for people."""
    ours = {"of_tenant": ctx.actor.tenant}
    repeated = {row.owner: int(row.duplicates) for row in ctx.tx.all(_DUPLICATES, ours)}
    counts = ("memories", "archived", "expired", "never_recalled", "plain")
    return MemoryReport(
        owners=[
            {
                "owner": row.owner,
                **{name: int(getattr(row, name) or 0) for name in counts},
                "duplicates": repeated.get(row.owner, 0),
            }
            for row in ctx.tx.all(_OWNERS, {**ours, "now": now_ms()})
        ]
    )
