"""How many work tasks an agent may create on one day."""

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from rookery.core.errors import RateLimited
from rookery.db.tx import Tx
from rookery.domains.work.tables import work_days

DAY_MS = 86_400_000


def _counting(dialect: str) -> sa.Executable:
    insert = (sqlite if dialect == "sqlite" else postgresql).insert(work_days)
    # A transaction that began before midnight may come after one that began later; the day never goes back.
    new_day = work_days.c.day < insert.excluded.day
    return (
        insert.values(
            tenant=sa.bindparam("tenant"), agent_id=sa.bindparam("agent_id"), day=sa.bindparam("day"), created=1
        )
        .on_conflict_do_update(
            index_elements=[work_days.c.tenant, work_days.c.agent_id],
            set_={
                "created": sa.case((new_day, 1), else_=work_days.c.created + 1),
                "day": sa.case((new_day, insert.excluded.day), else_=work_days.c.day),
            },
            where=sa.or_(new_day, work_days.c.created < sa.bindparam("limit")),
        )
        .returning(work_days.c.created)
    )


_COUNT = {dialect: _counting(dialect) for dialect in ("sqlite", "postgresql")}


def count_one(tx: Tx, tenant: str, agent_id: str, at_ms: int, limit: int) -> None:
    """Count one more task of this agent on the UTC day of `at_ms`; RateLimited if it has `limit` already.

    One statement: of calls at the same moment no more pass than there is room for.
    """
    values = {"tenant": tenant, "agent_id": agent_id, "day": at_ms // DAY_MS, "limit": limit}
    if limit <= 0 or tx.one(_COUNT[tx.dialect], values) is None:
        raise RateLimited(
            f"Rate limit exceeded: maximum {limit} work tasks per day.",
            hint="days are counted in UTC; the setting is work_task_max_per_day",
        )
