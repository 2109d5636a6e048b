"""Tools with which agents make and change issues."""

from typing import Any, Literal

import sqlalchemy as sa
from pydantic import Field

from rookery.core.context import Context
from rookery.core.errors import Conflict, InvalidParams
from rookery.core.tool import EVERY_PROFILE, ToolInput, ToolOutput, tool
from rookery.domains.tracker.inputs import Labels, LongText, OnIssue, Priority, Reason, Ref, Title
from rookery.domains.tracker.notices import issue_changed
from rookery.domains.tracker.project_store import Projects
from rookery.domains.tracker.store import Issues, NewIssue

RESERVED = ("phase:", "skip:", "moved-from:")


class CreateIssue(ToolInput):
    title: Title = Field(description="What is to be done.")
    description: LongText = Field("", description="Details in Markdown.")
    priority: Priority = Field(3, description="1 urgent to 4 low.")
    labels: Labels = Field([], description="Labels.")
    depends_on: list[Ref] = Field([], max_length=50, description="Issues that must be done first.")


class CreateSubtask(OnIssue):
    title: Title = Field(description="What is to be done.")
    description: LongText = Field("", description="Details in Markdown.")
    priority: Priority = Field(3, description="1 urgent to 4 low.")
    labels: Labels = Field([], description="Labels.")


class UpdateIssueStatus(OnIssue):
    status: Literal["review", "todo", "blocked"] = Field(description="review: done; todo: give up; blocked: need help.")
    reason: Reason | None = Field(None, description="Why; kept as a comment.")


class AddComment(OnIssue):
    content: str = Field(min_length=1, max_length=20_000, description="Markdown.")


class Made(ToolOutput):
    id: str
    identifier: str
    status: str
    labels: list[str]


class Changed(ToolOutput):
    identifier: str
    status: str


class Commented(ToolOutput):
    id: str


@tool(
    title="Create issue", effect="write", action="tracker:write", tier="act", group="Write", profiles="WRSAPI",
    critical="SI", default=False, binds="project", outline=False,
)  # fmt: skip
def create_issue(ctx: Context, args: CreateIssue) -> Made:
    """Create an issue in the project. Use it for work beyond the bound issue. Returns its identifier.
    From an agent it starts in backlog and research; phase labels cannot be chosen."""
    store, settings = Issues(ctx.tx, ctx.actor), Projects(ctx.tx, ctx.actor).settings()
    labels, phase = list(args.labels), settings.pipeline[0]
    if ctx.actor.kind == "human":
        phase = _chosen_phase(labels, settings.pipeline) or "ready"
        labels = [label for label in labels if not label.startswith("phase:")]
    else:
        refuse_reserved(labels)
    issue = store.create(
        NewIssue(
            title=args.title,
            description=args.description,
            priority=args.priority,
            labels=labels,
            depends_on=args.depends_on,
            status="todo" if ctx.actor.kind == "human" else "backlog",
            phase=phase,
        )
    )
    issue_changed(ctx, issue)
    return _made(issue, labels)


def _made(issue: sa.Row[Any], labels: list[str]) -> Made:
    """A new issue with the labels that it was given."""
    shown = [f"phase:{issue.phase}", *sorted(set(labels))]
    return Made(id=issue.id, identifier=issue.identifier, status=issue.status, labels=shown)


def refuse_reserved(labels: list[str]) -> None:
    """Labels that steer the pipeline are not an agent's to give."""
    reserved = [label for label in labels if label.startswith(RESERVED)]
    if reserved:
        raise InvalidParams(f"the pipeline sets {', '.join(reserved)} itself", hint="leave these labels out")


def _chosen_phase(labels: list[str], pipeline: tuple[str, ...]) -> str | None:
    chosen = [label.removeprefix("phase:") for label in labels if label.startswith("phase:")]
    if len(chosen) > 1 or any(phase not in pipeline for phase in chosen):
        known = ", ".join(f"phase:{phase}" for phase in pipeline)
        raise InvalidParams("an issue has exactly one phase of the project's pipeline", hint=f"one of {known}")
    return chosen[0] if chosen else None


@tool(
    title="Create subtask", effect="write", action="tracker:write", tier="act", group="Write", profiles="WAP",
    default=False, binds="issue", outline=False,
)  # fmt: skip
def create_subtask(ctx: Context, args: CreateSubtask) -> Made:
    """Create a child of the bound issue, which is blocked until all its children are finished. Use it to split work.
    Returns the child. Only while the bound issue is in_progress, or blocked by subtasks."""
    store = Issues(ctx.tx, ctx.actor)
    refuse_reserved(args.labels)
    parent = store.held(args.fence)
    if parent.status == "blocked" and parent.blocked_on != "subtasks":
        raise Conflict(f"{parent.identifier} is blocked and waits for a person", hint="add_comment says what is needed")
    child = store.create(
        NewIssue(
            title=args.title,
            description=args.description,
            priority=args.priority,
            labels=args.labels,
            status="todo",
            phase=parent.phase,
            parent_id=parent.id,
        )
    )
    if parent.status != "blocked":
        store.move(parent, "blocked", "agent", why=f"waits for {child.identifier}", blocked_on="subtasks")
    issue_changed(ctx, parent)
    issue_changed(ctx, child)
    return _made(child, args.labels)


@tool(
    title="Update issue status", effect="write", action="tracker:write", tier="act", group="Write", profiles="WRAP",
    default=False, binds="issue",
)  # fmt: skip
def update_issue_status(ctx: Context, args: UpdateIssueStatus) -> Changed:
    """Move the bound issue on from in_progress. Use it when you are done, give up, or need a person.
    Returns the new status. Other moves are refused."""
    store = Issues(ctx.tx, ctx.actor)
    issue = store.held(args.fence)
    if issue.status != "in_progress":
        raise Conflict(
            f"{issue.identifier} is {issue.status}; only an issue in_progress can be moved with this tool",
            hint="from in_progress it can become review, todo or blocked",
        )
    moved = store.move(issue, args.status, "agent", why=args.reason)
    if args.reason:
        store.comment(issue, f"**{args.status}**: {args.reason}")
    issue_changed(ctx, issue)
    return Changed(identifier=moved.identifier, status=moved.status)


@tool(
    title="Add comment", effect="write", action="tracker:write", tier="act", group="Write", profiles=EVERY_PROFILE,
    default=False, binds="issue", outline=False,
)  # fmt: skip
def add_comment(ctx: Context, args: AddComment) -> Commented:
    """Comment on the bound issue. Use it to tell people and agents what they need to know. Returns its id.
    Comments cannot be changed."""
    store = Issues(ctx.tx, ctx.actor)
    issue = store.bound() if args.fence is None else store.held(args.fence)
    comment = store.comment(issue, args.content)
    store.touch(issue)
    issue_changed(ctx, issue)
    return Commented(id=comment.id)
