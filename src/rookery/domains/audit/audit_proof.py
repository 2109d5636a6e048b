"""What shows people in the console that the audit log is as it was written.

For people, in no list of tools: see search_audit.py.
"""

from typing import Any

import sqlalchemy as sa
from pydantic import Field

from rookery.around.audit import audit_log
from rookery.around.chain import START, Place, hash_before, next_hash, place_of, verify_part
from rookery.core.context import Context
from rookery.core.errors import NotFound
from rookery.core.record import COLUMNS
from rookery.core.tool import ToolInput, ToolOutput, tool
from rookery.domains.audit.log_filter import last_row, visible
from rookery.domains.audit.search_audit import PEOPLE, SeenRecord, named_records

NEIGHBOURS = 5_000
"""So many records before and after one are looked through for others of the same request."""
MOST_OF_REQUEST = 50
_t = audit_log.c


class AuditRecordNumber(ToolInput):
    id: int = Field(ge=1, lt=1 << 53, description="Of the record.")


class OneRecord(ToolOutput):
    """`intact` is None while the record waits for its place in the chain."""

    record: SeenRecord
    previous: str | None
    intact: bool | None
    same_request: list[SeenRecord]


class VerifyAuditPart(ToolInput):
    after: int = Field(0, ge=0, lt=1 << 53, description="The last record that was checked; 0: begin at the first.")
    head: str | None = Field(None, max_length=64, description="The hash that it had.")
    limit: int = Field(5_000, ge=1, le=100_000, description="At most so many records.")


class AuditPart(ToolOutput):
    """`last` is the last record that holds, from which to go on if there is `more`. `broken_row` is the record that was
    found at `broken_at`, if the caller may see it. `total` is about how many records there are."""

    intact: bool
    records: int
    waiting: int
    head: str
    last: int
    more: bool
    total: int
    broken_at: int | None
    broken_row: int | None
    why: str | None


@tool(title="Show audit record", **PEOPLE)
def show_audit_record(ctx: Context, args: AuditRecordNumber) -> OneRecord:
    """Show one recorded call, whether it matches its hash, and what else belongs to the same request."""
    wanted = sa.select(audit_log, hash_before(ctx.tx, audit_log).label("previous"))
    row = ctx.tx.one(wanted.where(_t.id == args.id, *visible(ctx)))
    if row is None:
        raise NotFound(f"there is no record {args.id}", hint="the page Audit finds records")
    near = (_t.id.between(row.id - NEIGHBOURS, row.id + NEIGHBOURS), _t.id != row.id, _t.request == row.request)
    others = ctx.tx.all(sa.select(audit_log).where(*visible(ctx), *near).order_by(_t.id).limit(MOST_OF_REQUEST))
    shown = named_records(ctx, [row, *others])
    return OneRecord(record=shown[0], previous=row.previous, intact=_is_intact(row), same_request=shown[1:])


@tool(title="Verify part of the audit log", **PEOPLE)
def verify_audit_part(ctx: Context, args: VerifyAuditPart) -> AuditPart:
    """Compute a part of the audit log's hash chain again. Whoever begins at 0 and goes on while there is more has
    checked all of it."""
    total = last_row(ctx.tx)
    after = START if args.after == 0 else place_of(ctx.tx, args.after)
    if after is None or args.head not in (None, after.hash):
        return _replaced(args, after, total)
    state, last, more = verify_part(ctx.tx, after, args.limit)
    return AuditPart(
        intact=state.broken_at is None,
        records=state.records,
        waiting=state.waiting,
        head=state.head,
        last=last.row,
        more=more,
        total=max(total, state.records),
        broken_at=state.broken_at,
        broken_row=_seen(ctx, state.broken_row),
        why=state.why,
    )


def _replaced(args: VerifyAuditPart, after: Place | None, total: int) -> AuditPart:
    """The record from which to go on is not what it was: the end was cut off, or the log was written anew."""
    found = "is gone" if after is None else "has another hash than it had"
    return AuditPart(
        intact=False,
        records=0,
        waiting=0,
        head="" if after is None else after.hash,
        last=args.after,
        more=False,
        total=total,
        broken_at=None if after is None else after.position,
        broken_row=None,
        why=f"record {args.after}, which was there when it was last checked, {found}",
    )


def _is_intact(row: sa.Row[Any]) -> bool | None:
    if row.position is None:
        return None
    record = tuple(getattr(row, name) for name in COLUMNS)
    return row.previous is not None and row.hash == next_hash(row.previous, row.position, record)


def _seen(ctx: Context, row: int | None) -> int | None:
    return None if row is None else ctx.tx.scalar(sa.select(_t.id).where(_t.id == row, *visible(ctx)))
