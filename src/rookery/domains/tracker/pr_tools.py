"""Tools about pull requests: a worker opens one, a judge decides. Merging is in `merge_tools`."""

import asyncio
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from rookery.core.actor import Actor
from rookery.core.context import Context
from rookery.core.errors import Conflict, ValidationFailed
from rookery.core.tool import ToolInput, ToolOutput, tool
from rookery.db.tx import Tx
from rookery.domains.tracker.branches import Branch
from rookery.domains.tracker.diff import MAX_DIFF_BYTES, DiffStats, parse_diff
from rookery.domains.tracker.inputs import OnIssue, Reason
from rookery.domains.tracker.line_comment_store import LineComments
from rookery.domains.tracker.merging import the_pr
from rookery.domains.tracker.notices import issue_changed
from rookery.domains.tracker.pr_store import Row, Standing, binding_gates, decide_pr, not_run, open_pr
from rookery.domains.tracker.project_store import Projects, ProjectSettings
from rookery.domains.tracker.revalidation import standing_of
from rookery.domains.tracker.risk import GateResult, Risk, risk_of
from rookery.domains.tracker.store import Issues
from rookery.domains.tracker.worktree import verify_worktree
from rookery.lifecycle.run_store import Runs
from rookery.lifecycle.states import Who


def _exit_code(code: int) -> int:
    if not -(2**31) <= code < 2**32:
        raise ValueError("no program ends with such a number")
    return code


class GateRun(ToolInput):
    command: str = Field(max_length=2000, description="What was run.")
    label: str = Field(max_length=100, description="Its name.")
    exit_code: Annotated[int, AfterValidator(_exit_code)] = Field(description="0: passed.")
    output: str = Field(max_length=1_000_000, description="What it printed.")
    required: bool = Field(True, description="Whether it must pass.")


class CreatePr(OnIssue):
    diff: str = Field(max_length=MAX_DIFF_BYTES, description="Output of git diff.")
    branch_name: Branch = Field(description="Source.")
    base_branch: Branch = Field(description="Target.")
    gate_results: list[GateRun] = Field([], max_length=50, description="Quality gates.")


class ApprovePr(ToolInput):
    revision: int | None = Field(None, ge=1, description="Refuse unless it is this one.")
    reason: Reason | None = Field(None, description="Why.")


class RejectPr(ApprovePr):
    fix_instructions: Reason | None = Field(None, description="What to change.")


class Opened(ToolOutput):
    revision: int
    stats: dict[str, int]
    risk_score: int
    risk_level: str
    reasons: list[str]


class Decided(ToolOutput):
    identifier: str
    revision: int
    pr_status: str
    issue_status: str


@tool(
    title="Create PR", effect="external", action="tracker:write", tier="act", group="Review", profiles="W",
    default=False, deprecated=True, binds="issue", open_world=False, outline=False,
)  # fmt: skip
async def create_pr(ctx: Context, args: CreatePr) -> Opened:
    """Deprecated: use complete_phase, which opens the pull request. Returns revision and risk; the issue goes to
    review. Needs the worktree and phase ready."""
    actor = ctx.actor
    if args.branch_name == args.base_branch:
        raise ValidationFailed(f"{args.base_branch} cannot be merged into itself", hint="name two branches")
    given = [GateResult(**gate.model_dump()) for gate in args.gate_results]
    issue, settings = await ctx.read(lambda tx: (_ready(Issues(tx, actor).bound()), Projects(tx, actor).settings()))
    gates = _complete(binding_gates(given, settings), settings)
    stats, risk, standing = await asyncio.to_thread(_weigh, actor, issue, args, gates, settings)

    def record(tx: Tx) -> Row:
        # While the diff was read another may have moved or claimed the issue.
        store = Issues(tx, actor)
        current = _ready(store.held(args.fence))
        who: Who = "human" if actor.kind == "human" else "agent"
        pr = open_pr(
            tx, actor, current, diff=args.diff, stats=stats, branch=args.branch_name, base=args.base_branch,
            gates=gates, settings=settings, risk=risk, who=who, standing=standing,
        )  # fmt: skip
        store.move(current, "review", who, why=f"revision {pr.revision} of its pull request is open")
        return pr

    pr = await ctx.write(record)
    issue_changed(ctx, issue)
    counts = {"changed_files": len(stats.files), "added": stats.added, "deleted": stats.deleted}
    return Opened(
        revision=pr.revision, stats=counts, risk_score=risk.score, risk_level=risk.level, reasons=risk.reasons
    )


def _ready(issue: Row) -> Row:
    if issue.phase != "ready" or issue.status != "in_progress":
        raise Conflict(
            f"{issue.identifier} is {issue.status} in phase {issue.phase}",
            hint="a pull request is opened for an issue that is in_progress in phase ready",
        )
    return issue


def _complete(gates: list[GateResult], settings: ProjectSettings) -> list[GateResult]:
    """The results, if none is missing that the project requires."""
    if missing := not_run(gates, settings):
        names = ", ".join(f"{gate.label} ({gate.command})" for gate in missing)
        raise ValidationFailed(
            f"the project requires gates that were not run: {names}"[:1000], hint="run them and give their results"
        )
    return gates


def _weigh(
    actor: Actor, issue: Row, args: CreatePr, gates: list[GateResult], settings: ProjectSettings
) -> tuple[DiffStats, Risk, Standing | None]:
    """What the diff changes, how risky that is and which commit's it is, once the agent is in the issue's worktree."""
    place = verify_worktree(actor.worktree, actor.cwd, issue.identifier, issue.id)
    stats = parse_diff(args.diff)
    risk = risk_of(stats, settings.risk_thresholds, settings.sensitive_paths, gates)
    return stats, risk, standing_of(place.path, args.branch_name, args.base_branch, args.diff)


@tool(
    title="Approve PR", effect="write", action="tracker:judge", tier="act", group="Review", profiles="J",
    critical="J", default=False, binds="issue", outline=False,
)  # fmt: skip
def approve_pr(ctx: Context, args: ApprovePr) -> Decided:
    """Approve the bound issue's open pull request. Use it after reading the change and its gates.
    Returns the new status; the issue stays in review until a person merges. Not for your own work."""
    store = Issues(ctx.tx, ctx.actor)
    issue = store.held()
    if issue.status != "review":
        raise Conflict(f"{issue.identifier} is {issue.status}, not in review", hint="get_issue shows what happened")
    pr = _judge(ctx, issue, args, "approved")
    store.touch(issue)
    issue_changed(ctx, issue)
    return Decided(identifier=issue.identifier, revision=pr.revision, pr_status=pr.status, issue_status=issue.status)


@tool(
    title="Reject PR", effect="write", action="tracker:judge", tier="act", group="Review", profiles="J",
    critical="J", default=False, binds="issue", outline=False,
)  # fmt: skip
def reject_pr(ctx: Context, args: RejectPr) -> Decided:
    """Reject the bound issue's open pull request, with a comment. Use it to say what is wrong and how to mend it.
    Returns the new status; the issue goes back to todo. Not for your own work."""
    store = Issues(ctx.tx, ctx.actor)
    issue = store.held()
    pr = _judge(ctx, issue, args, "rejected", args.fix_instructions)
    why = f": {args.reason}" if args.reason else ""
    fix = f"\n\n**To fix:** {args.fix_instructions}" if args.fix_instructions else ""
    lines = _on_lines(len(LineComments(ctx.tx, ctx.actor).of(pr.id)))
    store.comment(issue, f"**Pull request rejected** (revision {pr.revision}){why}{fix}{lines}")
    if issue.status == "review":
        issue = store.move(issue, "todo", _judging(ctx.actor), why=f"revision {pr.revision} was rejected")
    else:
        # A person has taken it back already.
        store.touch(issue)
    issue_changed(ctx, issue)
    return Decided(identifier=issue.identifier, revision=pr.revision, pr_status=pr.status, issue_status=issue.status)


def _on_lines(count: int) -> str:
    """What points to the comments on lines, which are kept by themselves."""
    if not count:
        return ""
    return f"\n\nWith {count} comment{'s' if count > 1 else ''} on lines of the change."


def _judging(actor: Actor) -> Who:
    return "human" if actor.kind == "human" else "judge"


def _check_seen(ctx: Context, issue: Row, pr: Row) -> None:
    """Refuse a judge who does not say which revision is meant and may have read an earlier one."""
    run = None if ctx.actor.run is None else Runs(ctx.tx, ctx.actor.tenant).of(ctx.actor.run)
    if run is not None and run.created_ms < pr.created_ms:
        raise Conflict(
            f"revision {pr.revision} of {issue.identifier}'s pull request was opened after your run had begun",
            hint=f"read the change as it is now and give revision {pr.revision}",
        )


def _judge(
    ctx: Context, issue: Row, args: ApprovePr, to: Literal["approved", "rejected"], fix: str | None = None
) -> Row:
    pr, who = the_pr(ctx.tx, issue), _judging(ctx.actor)
    if args.revision is None and who != "human":
        _check_seen(ctx, issue, pr)
    if args.revision is not None and args.revision != pr.revision:
        raise Conflict(
            f"the pull request of {issue.identifier} is at revision {pr.revision}, not {args.revision}",
            hint="read the change as it is now and judge that one",
        )
    if who != "human" and (pr.subject, pr.profile) == (ctx.actor.subject, ctx.actor.profile):
        raise Conflict(
            "a pull request cannot be judged by whoever opened it", hint="another agent, or a person, has to judge it"
        )
    return decide_pr(ctx.tx, ctx.actor, issue, pr, to, who, reason=args.reason, fix_instructions=fix)
