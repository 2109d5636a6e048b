"""With what people look through the audit log in the console, and take it with them.

Not in a module where tools are looked for: no agent has these, and no session pays for their listing. They are called,
decided and recorded like any other.
"""

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from pydantic import Field

from rookery.around.audit import audit_log
from rookery.around.chain import hash_before
from rookery.core.context import Context
from rookery.core.pages import encode_cursor
from rookery.core.record import COLUMNS
from rookery.core.tool import ToolOutput, tool
from rookery.domains.audit.log_filter import AuditFilter, conditions, stretch
from rookery.identity.tables import agents, people, projects
from rookery.lifecycle.issue_tables import issues

Row = sa.Row[Any]
PEOPLE: dict[str, Any] = {
    "effect": "read", "action": "audit:read", "tier": "observe", "group": "System", "profiles": "", "default": False,
    "principals": "people",
}  # fmt: skip
EXPORTED = ("id", "position", "previous", "hash", *COLUMNS)
"""What an exported record has. Its hash covers `previous`, `position` and the rest from `at_ms` on, in this order."""
_t = audit_log.c


class SearchAudit(AuditFilter):
    limit: int = Field(50, ge=1, le=200, description="At most this many, newest first.")


class ExportAudit(AuditFilter):
    limit: int = Field(2000, ge=1, le=5000, description="At most this many, newest first.")


class SeenRecord(ToolOutput):
    """A record with the names of what it is about, as they are now. `position` is None while it waits for its place in
    the chain."""

    id: int
    position: int | None
    hash: str | None
    at_ms: int
    kind: str
    subject: str
    agent: str | None
    who: str
    profile: str | None
    project: str | None
    project_slug: str | None
    issue: str | None
    issue_name: str | None
    session: str | None
    source: str
    request: str
    trace: str | None
    tool: str
    effect: str
    outcome: str
    code: str | None
    layer: str | None
    input_digest: str
    duration_us: int


class FoundRecords(ToolOutput):
    """`searched_to_ms` is set if the search ended before it had found enough: it goes on before this time. `newest` is
    the last record of the log, found or not; what comes later is not in the answer."""

    records: list[SeenRecord]
    next_cursor: str | None
    searched_to_ms: int | None
    newest: int


class ExportedRecords(ToolOutput):
    """Each record as it is in the log, as a list of the values of `fields`."""

    fields: tuple[str, ...]
    records: list[list[Any]]
    next_cursor: str | None


@tool(title="Search audit", **PEOPLE)
def search_audit(ctx: Context, args: SearchAudit) -> FoundRecords:
    """Find recorded calls, newest first; at most 100,000 records are looked at, and next_cursor goes on from there."""
    here = stretch(ctx.tx, args)
    wanted = sa.select(audit_log).where(*here.conditions(), *conditions(ctx, args)).order_by(_t.id.desc())
    rows = ctx.tx.all(wanted.limit(args.limit + 1))
    shown = named_records(ctx, rows[: args.limit])
    found = FoundRecords(records=shown, next_cursor=None, searched_to_ms=None, newest=here.newest)
    if len(rows) > args.limit:
        return found.model_copy(update={"next_cursor": encode_cursor(str(shown[-1].id))})
    if here.is_last:
        return found
    reached = ctx.tx.scalar(sa.select(_t.at_ms).where(_t.id >= here.first).order_by(_t.id).limit(1))
    return found.model_copy(update={"next_cursor": encode_cursor(str(here.first)), "searched_to_ms": reached})


@tool(title="Export audit", **PEOPLE)
def export_audit(ctx: Context, args: ExportAudit) -> ExportedRecords:
    """Recorded calls as they are in the log, each with the hash before its own, so that it can be checked elsewhere."""
    here = stretch(ctx.tx, args)
    columns = (hash_before(ctx.tx, audit_log) if name == "previous" else _t[name] for name in EXPORTED)
    wanted = sa.select(*columns).where(*here.conditions(), *conditions(ctx, args)).order_by(_t.id.desc())
    rows = ctx.tx.all(wanted.limit(args.limit + 1))
    records = [list(row) for row in rows[: args.limit]]
    if len(rows) > args.limit:
        return ExportedRecords(fields=EXPORTED, records=records, next_cursor=encode_cursor(str(records[-1][0])))
    after = None if here.is_last else encode_cursor(str(here.first))
    return ExportedRecords(fields=EXPORTED, records=records, next_cursor=after)


def named_records(ctx: Context, rows: Sequence[Row]) -> list[SeenRecord]:
    """The records with the names of agents, people, projects and issues; those that are gone keep their id."""
    actors = {row.agent or row.subject for row in rows}
    names = _names(ctx, agents, agents.c.name, actors) | _names(ctx, people, people.c.name, actors)
    slugs = _names(ctx, projects, projects.c.slug, {row.project for row in rows})
    identifiers = _names(ctx, issues, issues.c.identifier, {row.issue for row in rows})
    derived = ("who", "project_slug", "issue_name")
    own = [name for name in SeenRecord.model_fields if name not in derived]
    return [
        SeenRecord(
            **{name: getattr(row, name) for name in own},
            who=names.get(row.agent or row.subject) or row.agent or row.subject,
            project_slug=slugs.get(row.project),
            issue_name=identifiers.get(row.issue),
        )
        for row in rows
    ]


def _names(ctx: Context, table: sa.Table, name: sa.Column[Any], ids: set[str | None]) -> dict[str | None, str]:
    known = sorted(each for each in ids if each)
    if not known:
        return {}
    wanted = sa.select(table.c.id, name.label("name")).where(table.c.tenant == ctx.actor.tenant, table.c.id.in_(known))
    return {row.id: row.name for row in ctx.tx.all(wanted)}
