"""Whether the audit log has grown, for somebody who reads in the middle of it. For people, in no list of tools: see
search_audit.py."""

import sqlalchemy as sa
from pydantic import Field

from rookery.around.audit import audit_log
from rookery.core.context import Context
from rookery.core.tool import ToolOutput, tool
from rookery.domains.audit.log_filter import AuditFilter, conditions, stretch
from rookery.domains.audit.search_audit import PEOPLE

MOST = 100
"""More are not counted."""
_t = audit_log.c


class CountNewRecords(AuditFilter):
    after: int = Field(ge=0, lt=1 << 53, description="The newest record that is known.")


class NewRecords(ToolOutput):
    """How many there are, at most `most`."""

    count: int
    most: int = MOST


@tool(title="Count new audit records", **PEOPLE)
def count_new_records(ctx: Context, args: CountNewRecords) -> NewRecords:
    """How many recorded calls came after one, without those by which the same session only looks."""
    here = stretch(ctx.tx, args)
    wanted = [*here.conditions(), _t.id > args.after, *conditions(ctx, args)]
    if ctx.actor.session is not None:
        # Whoever looks at the log writes into it: told of that, they would look again.
        wanted.append(sa.or_(_t.session.is_(None), _t.session != ctx.actor.session, _t.effect != "read"))
    few = sa.select(_t.id).where(*wanted).limit(MOST).subquery()
    return NewRecords(count=ctx.tx.scalar(sa.select(sa.func.count()).select_from(few)) or 0)
