"""Tools with which a scanner remembers what it has looked at."""

import asyncio
from typing import Annotated, Any, Literal

import sqlalchemy as sa
from pydantic import Field, StringConstraints

from rookery.core.actor import Actor
from rookery.core.context import Context
from rookery.core.errors import ValidationFailed
from rookery.core.pages import decode_cursor, encode_cursor
from rookery.core.tool import ToolInput, ToolOutput, tool
from rookery.db.tx import Tx
from rookery.domains.tracker.coverage_store import Readings, content_at, keep_coverage
from rookery.domains.tracker.inputs import Ref
from rookery.domains.tracker.project_store import Projects, ProjectSettings
from rookery.domains.tracker.store import Issues, author, now_ms
from rookery.domains.tracker.tables import coverage
from rookery.lifecycle.issue_tables import issues

Status = Literal["covered", "has_issues"]
FilePath = Annotated[str, StringConstraints(min_length=1, max_length=1_000)]
Concept = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=100)]


class RecordCoverage(ToolInput):
    file_path: FilePath = Field(description="In the project.")
    concept: Concept = Field(description="Such as error_handling.")
    status: Status = Field(description="has_issues: a ticket was created.")
    ticket_id: Ref | None = Field(None, description="That ticket.")
    notes: str | None = Field(None, max_length=5_000, description="Briefly.")


class CoverageRecord(ToolOutput):
    file_path: str
    concept: str
    status: str
    ticket_id: str | None
    updated_ms: int


class ListCoverage(ToolInput):
    concept: Concept | None = Field(None, description="Only this concept.")
    status: Status | None = Field(None, description="Only this status.")
    path_prefix: str | None = Field(None, max_length=1_000, description="Only paths that start so.")
    limit: int = Field(100, ge=1, le=500, description="At most.")
    cursor: str | None = Field(None, max_length=10_000, description="Next page, as returned.")


class CoverageRecords(ToolOutput):
    records: list[dict[str, Any]]
    next_cursor: str | None


@tool(
    title="Record coverage", effect="external", action="tracker:write", tier="act", group="Write", profiles="S",
    critical="S", default=False, binds="project", idempotent=True, open_world=False, outline=False,
)  # fmt: skip
async def record_coverage(ctx: Context, args: RecordCoverage) -> CoverageRecord:
    """Record that you examined a file for a concept. Use it for every file; a later record replaces it. Returns it.
    has_issues needs ticket_id."""
    path = plain_path(args.file_path)
    if args.status == "has_issues" and args.ticket_id is None:
        raise ValidationFailed("has_issues needs the ticket_id", hint="create_issue first, then give its identifier")
    content = await _content(ctx, path)
    return await ctx.write(lambda tx: _record(tx, ctx.actor, args, path, content))


async def _content(ctx: Context, path: str) -> str | None:
    """Which content the caller has examined: what its session was given to read, else what the base branch has now."""
    actor = ctx.actor

    def look(tx: Tx) -> tuple[sa.Row[Any] | None, ProjectSettings]:
        return Readings(tx, actor.tenant).of(actor.session, actor.project), Projects(tx, actor).settings()

    reading, settings = await ctx.read(look)
    if reading is not None and path in reading.files:
        return reading.files[path]
    if not settings.path:
        return None
    # It asks git, so no transaction is open meanwhile.
    return await asyncio.to_thread(
        content_at, settings.path, settings.base_branch if reading is None else reading.head, path
    )


def _record(tx: Tx, actor: Actor, args: RecordCoverage, path: str, content: str | None) -> CoverageRecord:
    ticket = Issues(tx, actor).ours(args.ticket_id) if args.ticket_id is not None else None
    key = {"project_id": actor.project, "file_path": path, "concept": args.concept}
    values = {
        "status": args.status,
        "ticket_id": ticket.id if ticket is not None else None,
        "notes": args.notes,
        "author": author(actor),
        "updated_ms": now_ms(),
        "content": content,
    }
    row = keep_coverage(tx, key, values, actor.tenant)
    return CoverageRecord(
        file_path=row.file_path,
        concept=row.concept,
        status=row.status,
        ticket_id=ticket.identifier if ticket is not None else None,
        updated_ms=row.updated_ms,
    )


@tool(
    title="List coverage", effect="read", action="tracker:read", tier="observe", group="Read", profiles="S",
    default=False, binds="project", outline=False,
)  # fmt: skip
def list_coverage(ctx: Context, args: ListCoverage) -> CoverageRecords:
    """List what was examined in this project, by path. Use it before a scan, to do nothing twice. Returns a page of
    records."""
    table = coverage.c
    visible = (issues.c.id == table.ticket_id, issues.c.project_id.not_in(ctx.actor.closed))
    wanted = (
        sa.select(coverage, issues.c.identifier)
        .outerjoin(issues, sa.and_(issues.c.tenant == table.tenant, *visible))
        .where(table.tenant == ctx.actor.tenant, table.project_id == ctx.actor.project)
        .order_by(table.file_path, table.concept)
    )
    for column, value in ((table.concept, args.concept), (table.status, args.status)):
        if value is not None:
            wanted = wanted.where(column == value)
    if args.path_prefix:
        # LIKE would not tell the cases apart on SQLite.
        wanted = wanted.where(sa.func.substr(table.file_path, 1, len(args.path_prefix)) == args.path_prefix)
    if (after := decode_cursor(args.cursor)) is not None:
        path, _, concept = after.partition("\n")
        wanted = wanted.where(sa.tuple_(table.file_path, table.concept) > sa.tuple_(path, concept))
    rows = ctx.tx.all(wanted.limit(args.limit + 1))
    shown = rows[: args.limit]
    more = len(rows) > args.limit
    return CoverageRecords(
        records=[{**{name: row._mapping[name] for name in _SHOWN}, "ticket_id": row.identifier} for row in shown],
        next_cursor=encode_cursor(f"{shown[-1].file_path}\n{shown[-1].concept}") if more else None,
    )


def plain_path(text: str) -> str:
    """One spelling for each file: relative to the project, with no way out of it."""
    parts = [part for part in text.strip().split("/") if part not in ("", ".")]
    if text.strip().startswith(("/", "~")) or "\\" in text or ".." in parts or not parts or not text.isprintable():
        raise ValidationFailed(
            f"{text[:200]!r} is not a path inside the project",
            hint="give it relative to the project's folder, with / between folders and without ..",
        )
    return "/".join(parts)


_SHOWN = ("file_path", "concept", "status", "notes", "author", "updated_ms")
