"""Tools with which agents find work, take it, and give it back."""

from typing import Literal

from pydantic import Field

from rookery.core.context import Context
from rookery.core.tool import EVERY_PROFILE, ToolInput, ToolOutput, tool
from rookery.domains.tracker.inputs import OnIssue, Reason, Ref
from rookery.domains.tracker.issue_tools import Records, listed
from rookery.domains.tracker.issue_write_tools import Changed
from rookery.domains.tracker.lease_moves import LeaseMoves
from rookery.domains.tracker.lease_store import Leases
from rookery.domains.tracker.notices import issue_changed
from rookery.domains.tracker.store import Issues


class ListReadyIssues(ToolInput):
    phase: Literal["research", "architecture", "grooming", "ready"] | None = Field(None, description="Only this one.")
    limit: int = Field(20, ge=1, le=100, description="At most.")


class ClaimIssue(OnIssue):
    issue_id: Ref | None = Field(None, description="Absent: bound or first ready.")
    minutes: int = Field(30, ge=1, le=1440, description="How long.")


class ReleaseIssue(OnIssue):
    issue_id: Ref | None = Field(None, description="Absent: the one you hold.")
    reason: Reason | None = Field(None, description="Why; kept as a comment.")


class ReadyIssues(ToolOutput):
    issues: Records


class Claimed(ToolOutput):
    identifier: str
    fence: int
    until_ms: int
    renewed: bool


@tool(
    title="List ready issues", effect="read", action="tracker:read", tier="observe", group="Read",
    profiles=EVERY_PROFILE, default=False, binds="project", outline=False,
)  # fmt: skip
def list_ready_issues(ctx: Context, args: ListReadyIssues) -> ReadyIssues:
    """List the project's issues that can be claimed, by priority, oldest first. Use it to choose work.
    Returns no issue that is held or waits for another."""
    rows = Leases(ctx.tx, ctx.actor).ready(args.limit, [args.phase] if args.phase is not None else [])
    labels = Issues(ctx.tx, ctx.actor).labels(rows)
    return ReadyIssues(issues=[listed(row, labels[row.id]) for row in rows])


@tool(
    title="Claim issue", effect="write", action="tracker:write", tier="act", group="Write", profiles="WRAP",
    default=False, binds="project",
)  # fmt: skip
def claim_issue(ctx: Context, args: ClaimIssue) -> Claimed:
    """Take an issue or keep it longer. Use it before work; it binds you. Returns fence, your proof.
    Only one at a time."""
    claim = LeaseMoves(ctx.tx, ctx.actor).claim(args.issue_id, args.minutes, args.fence)
    issue = claim.issue
    issue_changed(ctx, issue)
    return Claimed(identifier=issue.identifier, fence=issue.fence, until_ms=issue.lease_until_ms, renewed=claim.renewed)


@tool(
    title="Release issue", effect="write", action="tracker:write", tier="act", group="Write", profiles="WRAP",
    default=False, binds="project",
)  # fmt: skip
def release_issue(ctx: Context, args: ReleaseIssue) -> Changed:
    """Give a claimed issue back to todo. Use it when you cannot finish it. Returns the new status.
    Only its holder may."""
    issue = LeaseMoves(ctx.tx, ctx.actor).release(args.issue_id, args.fence, args.reason)
    issue_changed(ctx, issue)
    return Changed(identifier=issue.identifier, status=issue.status)
