"""Tools that read issues."""

from typing import Any, Literal

import sqlalchemy as sa
from pydantic import Field

from rookery.core.context import Context
from rookery.core.errors import InvalidParams, NotFound
from rookery.core.pages import decode_cursor, encode_cursor
from rookery.core.tool import EVERY_PROFILE, ToolInput, ToolOutput, tool
from rookery.domains.tracker.inputs import Label, Ref
from rookery.domains.tracker.issue_view import SHOWN, IssueView
from rookery.domains.tracker.store import Issues
from rookery.domains.tracker.tables import issue_labels
from rookery.lifecycle.issue_tables import issues

Status = Literal["backlog", "todo", "in_progress", "review", "blocked", "done", "cancelled"]
Records = list[dict[str, Any]]


class GetIssue(ToolInput):
    issue_id: Ref | None = Field(None, description="Id or identifier; absent: the bound issue.")
    include_history: bool = Field(False, description="Also who changed which field, when.")


class GetIssueStatus(ToolInput):
    issue_id: Ref | None = Field(None, description="Id or identifier; absent: the bound issue.")


class ListIssues(ToolInput):
    status: Status | None = Field(None, description="Only these.")
    labels: Label | None = Field(None, description="Only with this label, such as phase:ready.")
    limit: int = Field(50, ge=1, le=100, description="At most.")
    cursor: str | None = Field(None, max_length=200, description="Next page, as returned.")


class Heading(ToolOutput):
    id: str
    identifier: str
    title: str
    status: str
    priority: int
    size: str | None
    labels: list[str]
    updated_ms: int


class IssueStatus(Heading):
    recent_findings: Records
    recent_runs: Records


class Issue(Heading):
    description: str
    blocked_on: str | None
    parent: str | None
    subtasks: Records
    depends_on: Records
    findings: Records
    learnings: Records
    comments: Records
    runs: Records
    pr: dict[str, Any] | None
    lease: dict[str, Any] | None
    test_health: dict[str, Any] | None
    history: Records | None
    totals: dict[str, int]
    author: str
    created_ms: int


class IssueList(ToolOutput):
    issues: Records
    next_cursor: str | None


def wanted_issue(ctx: Context, text: str | None) -> sa.Row[Any]:
    """The issue that was named, or the bound one."""
    if text is not None:
        return Issues(ctx.tx, ctx.actor).find(text)
    if ctx.actor.issue is None:
        raise NotFound("no issue is bound", hint="give issue_id; list_issues shows them")
    return Issues(ctx.tx, ctx.actor).bound()


@tool(
    title="Get issue", effect="read", action="tracker:read", tier="observe", group="Read", profiles=EVERY_PROFILE,
    critical="WRJAP", default=False, outline=False,
)  # fmt: skip
def get_issue(ctx: Context, args: GetIssue) -> Issue:
    """Read an issue with its findings, learnings, comments, dependencies and runs. Use it before you start.
    Returns the newest 50 of each; totals counts all. Reads only projects where you have a role."""
    issue = wanted_issue(ctx, args.issue_id)
    view = IssueView(ctx.tx, ctx.actor, issue)
    return Issue(
        **view.heading(),
        description=issue.description,
        blocked_on=issue.blocked_on,
        parent=view.parent(),
        subtasks=view.children(),
        depends_on=view.dependencies(),
        findings=view.findings(SHOWN),
        learnings=view.learnings(),
        comments=view.comments(),
        runs=view.runs(SHOWN),
        pr=view.pr(),
        lease=view.lease(),
        test_health=view.test_health(),
        history=view.history() if args.include_history else None,
        totals=view.totals(),
        author=issue.author,
        created_ms=issue.created_ms,
    )


@tool(
    title="Get issue status", effect="read", action="tracker:read", tier="observe", group="Read", profiles="WRJAP",
    default=False, outline=False,
)  # fmt: skip
def get_issue_status(ctx: Context, args: GetIssueStatus) -> IssueStatus:
    """Read an issue's state, its last 5 findings and 3 runs. Use it for a quick check; get_issue has the rest.
    Returns summaries, no details."""
    view = IssueView(ctx.tx, ctx.actor, wanted_issue(ctx, args.issue_id))
    brief = ("id", "category", "summary", "created_ms")
    recent = [{name: found.get(name) for name in brief} for found in view.findings(5)]
    return IssueStatus(**view.heading(), recent_findings=recent, recent_runs=view.runs(3))


@tool(
    title="List issues", effect="read", action="tracker:read", tier="observe", group="Read", profiles=EVERY_PROFILE,
    critical="I", default=False, binds="project",
)  # fmt: skip
def list_issues(ctx: Context, args: ListIssues) -> IssueList:
    """List the project's issues by priority, oldest first. Use it to find work or duplicates.
    Returns a page without descriptions; other projects are not listed."""
    table = issues.c
    wanted = sa.select(issues).where(table.tenant == ctx.actor.tenant, table.project_id == ctx.actor.project)
    if args.status is not None:
        wanted = wanted.where(table.status == args.status)
    if args.labels is not None:
        wanted = _labelled(wanted, args.labels, ctx.actor.project)
    order = (table.priority, table.created_ms, table.id)
    wanted = wanted.order_by(*order)
    after = _after(args.cursor)
    if after is not None:
        wanted = wanted.where(sa.tuple_(*order) > sa.tuple_(*(sa.literal(part) for part in after)))
    rows = ctx.tx.all(wanted.limit(args.limit + 1))
    shown = rows[: args.limit]
    labels = Issues(ctx.tx, ctx.actor).labels(shown)
    last = shown[-1] if len(rows) > args.limit else None
    return IssueList(
        issues=[listed(row, labels[row.id]) for row in shown],
        next_cursor=encode_cursor(f"{last.priority} {last.created_ms} {last.id}") if last is not None else None,
    )


def listed(row: sa.Row[Any], labels: list[str]) -> dict[str, Any]:
    """An issue as it stands in a list."""
    fields = ("id", "identifier", "title", "status", "priority", "size", "created_ms", "updated_ms")
    return {**{name: getattr(row, name) for name in fields}, "labels": labels}


def _labelled(wanted: sa.Select[Any], label: str, project: str | None) -> sa.Select[Any]:
    if label.startswith("phase:"):
        return wanted.where(issues.c.phase == label.removeprefix("phase:"))
    having = sa.select(issue_labels.c.issue_id).where(
        issue_labels.c.project_id == project, issue_labels.c.label == label
    )
    return wanted.where(issues.c.id.in_(having))


def _after(cursor: str | None) -> tuple[int, int, str] | None:
    key = decode_cursor(cursor)
    if key is None:
        return None
    match key.split(" "):
        case [priority, created, last] if priority.isdecimal() and created.isdecimal() and len(created) < 18:
            return int(priority[:9]), int(created), last
        case _:
            raise InvalidParams("the cursor is not one of ours", hint="start again without a cursor")
