"""Tools that read the audit log. Nothing here can write it."""

from typing import Any

import sqlalchemy as sa
from pydantic import Field

from rookery.around.audit import audit_log
from rookery.around.chain import verify
from rookery.core.context import Context
from rookery.core.pages import decode_number, encode_cursor
from rookery.core.tool import NoInput, ToolInput, ToolOutput, tool


class ListAuditRecords(ToolInput):
    tool: str | None = Field(None, max_length=100, description="Only of this tool.")
    agent: str | None = Field(None, max_length=100, description="Only of the agent with this id.")
    outcome: str | None = Field(None, max_length=20, description="Such as done, refused or failed.")
    limit: int = Field(50, ge=1, le=500, description="At most this many, newest first.")
    cursor: str | None = Field(None, max_length=200, description="Next page, as returned.")


class AuditRecord(ToolOutput):
    id: int
    at_ms: int
    subject: str
    agent: str | None
    session: str | None
    request: str
    tool: str
    outcome: str
    code: str | None
    layer: str | None
    duration_us: int


class AuditRecords(ToolOutput):
    records: list[AuditRecord]
    next_cursor: str | None


class AuditState(ToolOutput):
    intact: bool
    records: int
    waiting: int
    head: str
    broken_at: int | None
    why: str | None


@tool(
    title="List audit records", effect="read", action="audit:read", tier="observe", group="System", profiles="",
    default=False, principals="people",
)  # fmt: skip
def list_audit_records(ctx: Context, args: ListAuditRecords) -> AuditRecords:
    """List recorded calls without arguments or results, newest first."""
    table = audit_log.c
    wanted = sa.select(audit_log).where(table.tenant == ctx.actor.tenant).order_by(table.id.desc())
    filters: dict[str, Any] = {"tool": args.tool, "agent": args.agent, "outcome": args.outcome}
    for name, value in filters.items():
        if value is not None:
            wanted = wanted.where(table[name] == value)
    after = decode_number(args.cursor)
    if after is not None:
        wanted = wanted.where(table.id < after)
    rows = ctx.tx.all(wanted.limit(args.limit + 1))
    fields = AuditRecord.model_fields
    return AuditRecords(
        records=[AuditRecord(**{name: row._mapping[name] for name in fields}) for row in rows[: args.limit]],
        next_cursor=encode_cursor(str(rows[args.limit - 1].id)) if len(rows) > args.limit else None,
    )


@tool(
    title="Verify audit", effect="read", action="audit:read", tier="observe", group="System", profiles="",
    default=False, principals="people", timeout_s=600,
)  # fmt: skip
def verify_audit(ctx: Context, args: NoInput) -> AuditState:
    """Compute the audit log's hash chain again, to prove that no record was changed or removed. Reads the whole
    log."""
    state = verify(ctx.tx)
    return AuditState(
        intact=state.broken_at is None,
        records=state.records,
        waiting=state.waiting,
        head=state.head,
        broken_at=state.broken_at,
        why=state.why,
    )
