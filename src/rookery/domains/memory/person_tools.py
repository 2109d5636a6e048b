"""What people see of memories: how many there are and how they are used, never what they say."""

from collections import Counter
from typing import Any

import sqlalchemy as sa

from rookery.core.context import Context
from rookery.core.tool import NoInput, ToolOutput, tool
from rookery.domains.memory.row_seal import RowSeal
from rookery.domains.memory.store import now_ms
from rookery.domains.memory.tables import memories, memory_recalls
from rookery.fulltext.words import normalized

COMPARED = 20_000
"""So many of the newest memories are compared with each other."""
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
_NEWEST = sa.select(memories).where(_OURS, memories.c.archived.is_(sa.false())).order_by(memories.c.seq.desc())


class MemoryReport(ToolOutput):
    owners: list[dict[str, Any]]


@tool(
    title="Report memories", effect="read", action="memory:report", tier="observe", group="System", profiles="",
    default=False, principals="people",
)  # fmt: skip
def report_memories(ctx: Context, args: NoInput) -> MemoryReport:
    """Count memories by owner: all, archived, expired, duplicates, never recalled, not sealed. Never tells what
    they say."""
    repeated = _repeated(ctx)
    counts = ("memories", "archived", "expired", "never_recalled", "plain")
    return MemoryReport(
        owners=[
            {
                "owner": row.owner,
                **{name: int(getattr(row, name) or 0) for name in counts},
                "duplicates": repeated[row.owner],
            }
            for row in ctx.tx.all(_OWNERS, {"of_tenant": ctx.actor.tenant, "now": now_ms()})
        ]
    )


def _repeated(ctx: Context) -> Counter[str]:
    """How many memories of each owner say what another of theirs says."""
    seal = RowSeal(ctx.platform.facts.get("keyring"))
    told: set[tuple[str, int]] = set()
    again: Counter[str] = Counter()
    for row in ctx.tx.all(_NEWEST.limit(COMPARED), {"of_tenant": ctx.actor.tenant}):
        ctx.check()
        said = (row.owner, hash(normalized(seal.content_of(row))))
        again[row.owner] += said in told
        told.add(said)
    return again
