"""Tools with which people steer issues: they may go where the state machine lets a person go."""

from typing import Any, Literal

import sqlalchemy as sa
from pydantic import Field

from rookery.core.context import Context
from rookery.core.errors import Conflict, InvalidParams
from rookery.core.tool import ToolInput, ToolOutput, tool
from rookery.domains.tracker.inputs import Labels, LongText, Priority, Reason, Ref, Title
from rookery.domains.tracker.issue_tools import Status
from rookery.domains.tracker.issue_write_tools import Changed
from rookery.domains.tracker.notices import issue_changed
from rookery.domains.tracker.pr_store import UNDECIDED, decide_pr, latest_pr
from rookery.domains.tracker.project_store import Projects
from rookery.domains.tracker.store import Issues
from rookery.domains.tracker.tables import issue_deps, issue_labels
from rookery.lifecycle.states import FINISHED, ISSUE, PHASE


class SetIssueStatus(ToolInput):
    issue_id: Ref = Field(description="Id or identifier.")
    status: Status = Field(description="Where it goes.")
    reason: Reason | None = Field(None, description="Why; kept as a comment.")


class EditIssue(ToolInput):
    issue_id: Ref = Field(description="Id or identifier.")
    title: Title | None = Field(None, description="New title.")
    description: LongText | None = Field(None, description="New description.")
    priority: Priority | None = Field(None, description="1 urgent to 4 low.")
    size: Literal["XS", "S", "M", "L", "XL"] | None = Field(None, description="How much work.")
    phase: Literal["research", "architecture", "grooming", "ready"] | None = Field(None, description="New phase.")
    labels: Labels | None = Field(None, description="All its labels, without the phase.")
    depends_on: list[Ref] | None = Field(None, max_length=50, description="All that must be done first.")


class Edited(ToolOutput):
    identifier: str
    changed: list[str]


@tool(
    title="Set issue status", effect="write", action="tracker:write", tier="act", group="Write", profiles="",
    default=False, principals="operators", binds="project",
)  # fmt: skip
def set_issue_status(ctx: Context, args: SetIssueStatus) -> Changed:
    """Move an issue as the state machine lets a person; done and cancelled are final."""
    store = Issues(ctx.tx, ctx.actor)
    issue = store.ours(args.issue_id, lock=True)
    moved = store.move(issue, args.status, "human", why=args.reason)
    if moved.status in FINISHED:
        _settle_pr(ctx, moved)
    if args.reason:
        store.comment(issue, f"**{args.status}**: {args.reason}")
    issue_changed(ctx, issue)
    return Changed(identifier=moved.identifier, status=moved.status)


def _settle_pr(ctx: Context, issue: sa.Row[Any]) -> None:
    """No pull request stays undecided once its issue is finished."""
    pr = latest_pr(ctx.tx, issue.id)
    if pr is not None and pr.status in UNDECIDED:
        merged = issue.status == "done" and pr.status == "approved"
        decide_pr(ctx.tx, ctx.actor, issue, pr, "merged" if merged else "closed", "human")


@tool(
    title="Edit issue", effect="write", action="tracker:write", tier="act", group="Write", profiles="", default=False,
    principals="operators", binds="project",
)  # fmt: skip
def edit_issue(ctx: Context, args: EditIssue) -> Edited:
    """Change fields of an issue, noted in its history; finished issues cannot be edited."""
    store = Issues(ctx.tx, ctx.actor)
    issue = store.ours(args.issue_id, lock=True)
    if ISSUE.terminal(issue.status):
        raise Conflict(f"{issue.identifier} is {issue.status}", hint="create_issue makes a new one")
    plain = ("title", "description", "priority", "size", "phase")
    values = {name: getattr(args, name) for name in plain if getattr(args, name) is not None}
    if args.phase is not None and args.phase not in (pipeline := Projects(ctx.tx, ctx.actor).settings().pipeline):
        raise InvalidParams(f"the project has no phase {args.phase}", hint=f"it has {', '.join(pipeline)}")
    if args.phase not in (None, issue.phase):
        PHASE.check(issue.phase, args.phase, "human")
    edited = [name for name, value in values.items() if getattr(issue, name) != value]
    store.change(issue, **values)
    if args.labels is not None and _replace_labels(store, issue, args.labels):
        edited.append("labels")
    if args.depends_on is not None and _replace_dependencies(store, issue, args.depends_on):
        edited.append("depends_on")
    issue_changed(ctx, issue)
    return Edited(identifier=issue.identifier, changed=edited)


def _replace_labels(store: Issues, issue: sa.Row[Any], labels: list[str]) -> bool:
    if any(label.startswith("phase:") for label in labels):
        raise InvalidParams("the phase is no label of this list", hint="give it as phase")
    old, new = store.labels([issue])[issue.id][1:], sorted(set(labels))
    if old == new:
        return False
    store.tx.run(sa.delete(issue_labels).where(issue_labels.c.issue_id == issue.id))
    store.add_labels(issue, new)
    store.note(issue, "labels", old, new)
    return True


def _replace_dependencies(store: Issues, issue: sa.Row[Any], wanted: list[str]) -> bool:
    mine = issue_deps.c.issue_id == issue.id
    old = sorted(row.depends_on for row in store.tx.all(sa.select(issue_deps).where(mine)))
    new = sorted({store.find(text).id for text in wanted})
    if old == new:
        return False
    if store.would_wait(new, issue.id):
        raise Conflict(f"{issue.identifier} would wait for itself", hint="leave out what depends on it")
    store.tx.run(sa.delete(issue_deps).where(mine))
    store.add_dependencies(issue, new)
    store.note(issue, "depends_on", old, new)
    return True
