"""With what people read a pull request: any of its revisions, its diff, and what can be done with it now.

Not in a module where tools are looked for: agents have get_issue and git, and no session pays for a listing.
"""

from collections.abc import Callable
from typing import Any

import sqlalchemy as sa
from pydantic import Field

from rookery.core.context import Context
from rookery.core.errors import Conflict, NotFound
from rookery.core.tool import ToolInput, ToolOutput, tool
from rookery.db.tx import Tx
from rookery.domains.tracker.inputs import Ref
from rookery.domains.tracker.issue_view import PR_FIELDS
from rookery.domains.tracker.line_comment_store import SHOWN, LineComments
from rookery.domains.tracker.pr_store import Row
from rookery.domains.tracker.project_store import Projects, ProjectSettings
from rookery.domains.tracker.risk import HIGH, MEDIUM, matching
from rookery.domains.tracker.signatures import names_of
from rookery.domains.tracker.store import Issues
from rookery.domains.tracker.tables import pr_gates, prs
from rookery.identity.store import IdentityStore
from rookery.lifecycle.states import ISSUE, PR

OUTPUT_SHOWN = 20_000
"""Of each gate's output the end."""
_BRIEF = ("revision", "status", "risk_level", "created_ms")
_GATE = ("command", "label", "exit_code", "required")
Records = list[dict[str, Any]]


class ReadPr(ToolInput):
    issue_id: Ref = Field(description="Id or identifier.")
    revision: int | None = Field(None, ge=1, description="Absent: the newest.")


class PullRequest(ToolOutput):
    identifier: str
    title: str
    issue_status: str
    pr: dict[str, Any]
    newest: int
    revisions: Records
    gates: Records
    line_comments: Records
    sensitive: list[str]
    measures: dict[str, int]
    refused: dict[str, str | None]


class PrDiff(ToolOutput):
    pr_id: str
    revision: int
    diff: str

    def as_text(self) -> str:
        return f"the diff of revision {self.revision}, {len(self.diff)} characters"


@tool(
    title="Read PR", effect="read", action="tracker:read", tier="observe", group="Review", profiles="", default=False,
    principals="people",
)  # fmt: skip
def read_pr(ctx: Context, args: ReadPr) -> PullRequest:
    """Show a revision of an issue's pull request, its gates and comments, and what can be done with it."""
    tx, actor = ctx.tx, ctx.actor
    issue = Issues(tx, actor).find(args.issue_id)
    every = tx.all(sa.select(*_slim()).where(prs.c.issue_id == issue.id).order_by(prs.c.revision.desc()))
    pr = next((row for row in every if args.revision in (None, row.revision)), None)
    if pr is None:
        raise _missing(issue, args.revision)
    settings = Projects(tx, actor).settings(issue.project_id)
    names = names_of(tx, actor.tenant, [row for row in (pr.subject, pr.judged_by) if row])
    about = {name: getattr(pr, name) for name in (*PR_FIELDS, "created_ms", "updated_ms", "diff_hash", "approved_head")}
    about["opened_by"] = names.get(pr.subject) or pr.profile or pr.subject
    about["judged_by"] = (names.get(pr.judged_by) or _agent(tx, actor.tenant, pr.judged_by)) if pr.judged_by else None
    return PullRequest(
        identifier=issue.identifier,
        title=issue.title,
        issue_status=issue.status,
        pr=about,
        newest=every[0].revision,
        revisions=[{name: getattr(row, name) for name in _BRIEF} for row in every],
        gates=_gates(tx, pr.id),
        line_comments=_comments(ctx, pr.id),
        sensitive=_sensitive(settings, pr),
        measures={**settings.risk_thresholds.model_dump(), "medium": MEDIUM, "high": HIGH},
        refused=_refused(issue, pr, every[0].revision, settings),
    )


@tool(
    title="Read PR diff", effect="read", action="tracker:read", tier="observe", group="Review", profiles="",
    default=False, principals="people",
)  # fmt: skip
def read_pr_diff(ctx: Context, args: ReadPr) -> PrDiff:
    """Read the whole diff of a revision."""
    issue = Issues(ctx.tx, ctx.actor).find(args.issue_id)
    wanted = sa.select(prs.c.id, prs.c.revision, prs.c.diff).where(prs.c.issue_id == issue.id)
    if args.revision is not None:
        wanted = wanted.where(prs.c.revision == args.revision)
    row = ctx.tx.one(wanted.order_by(prs.c.revision.desc()).limit(1))
    if row is None:
        raise _missing(issue, args.revision)
    return PrDiff(pr_id=row.id, revision=row.revision, diff=row.diff)


def _agent(tx: Tx, tenant: str, subject: str) -> str:
    found = (each.name for each in IdentityStore(tx, tenant).agents() if each.id == subject)
    return next(found, "an agent")


def _slim() -> list[sa.Column[Any]]:
    """Everything but the diff, which has megabytes."""
    return [column for column in prs.c if column.name != "diff"]


def _missing(issue: Row, revision: int | None) -> NotFound:
    if revision is None:
        return NotFound(
            f"{issue.identifier} has no pull request",
            hint="one is opened when complete_phase claims that ready is done",
        )
    return NotFound(f"{issue.identifier} has no revision {revision}", hint="leave the revision out for the newest")


def _gates(tx: Tx, pr_id: str) -> Records:
    rows = tx.all(sa.select(pr_gates).where(pr_gates.c.pr_id == pr_id).order_by(pr_gates.c.position))
    return [
        {name: getattr(row, name) for name in _GATE} | {"output": row.output[-OUTPUT_SHOWN:], "length": len(row.output)}
        for row in rows
    ]


def _comments(ctx: Context, pr_id: str) -> Records:
    rows = LineComments(ctx.tx, ctx.actor).rows(pr_id)
    names = names_of(ctx.tx, ctx.actor.tenant, (row.subject for row in rows))
    return [
        {name: getattr(row, name) for name in SHOWN}
        | {"author": names.get(row.subject, row.author), "mine": row.subject == ctx.actor.subject}
        for row in rows
    ]


def _sensitive(settings: ProjectSettings, pr: Row) -> list[str]:
    """Which of the files that are kept by name match a sensitive path, as the settings are now."""
    files: Records = pr.stats.get("files", [])
    paths = [path for file in files for path in (file["path"], file.get("old_path")) if path]
    return sorted(matching(settings.sensitive_paths, paths))


def _refused(issue: Row, pr: Row, newest: int, settings: ProjectSettings) -> dict[str, str | None]:
    """For each decision why a person cannot make it now; None where they can."""
    if pr.revision != newest:
        return dict.fromkeys(("approve", "reject", "merge"), f"revision {newest} has replaced this one")
    approve = _why(lambda: PR.check(pr.status, "approved", "human"))
    if approve is None and issue.status != "review":
        approve = f"the issue is {issue.status.replace('_', ' ')}, not in review"
    merge = _why(lambda: PR.check(pr.status, "merged", "human")) or _why(
        lambda: ISSUE.check(issue.status, "done", "human")
    )
    if merge is None and settings.path is not None and not (pr.approved_head and pr.approved_diff):
        merge = "the diff that was reviewed is not known to be that of a commit"
    if pr.status == "open":
        merge = "it has to be approved first"
    return {"approve": approve, "reject": _why(lambda: PR.check(pr.status, "rejected", "human")), "merge": merge}


def _why(check: Callable[[], None]) -> str | None:
    try:
        check()
    except Conflict as refusal:
        return refusal.message
    return None
