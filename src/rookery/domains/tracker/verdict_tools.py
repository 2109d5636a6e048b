"""Tools with which a judge answers a claim. They record the verdict; `advance` moves the issue."""

from pydantic import Field

from rookery.core.context import Context
from rookery.core.errors import Conflict
from rookery.core.tool import ToolInput, ToolOutput, tool
from rookery.domains.tracker.artifact import plain_hash
from rookery.domains.tracker.claim_store import Claims, NewVerdict, Row
from rookery.domains.tracker.contract import Phase
from rookery.domains.tracker.inputs import Reason
from rookery.domains.tracker.notices import issue_changed
from rookery.domains.tracker.store import Issues
from rookery.lifecycle.states import FINISHED


class ApprovePhase(ToolInput):
    phase: Phase = Field(description="The issue's phase.")
    artifact_hash: str = Field(max_length=80, description="As in the latest claim.")
    reason: Reason = Field("", description="Why.")


class RejectPhase(ToolInput):
    phase: Phase = Field(description="The issue's phase.")
    artifact_hash: str = Field(max_length=80, description="As in the latest claim.")
    reason: Reason = Field(min_length=1, description="What is wrong.")
    fix_instructions: Reason | None = Field(None, min_length=1, description="What to change.")


class Verdict(ToolOutput):
    id: str
    identifier: str
    verdict: str
    message: str


@tool(
    title="Approve phase", effect="write", action="tracker:judge", tier="act", group="Review", profiles="J",
    critical="J", default=False, binds="issue", outline=False,
)  # fmt: skip
def approve_phase(ctx: Context, args: ApprovePhase) -> Verdict:
    """Approve the artifact of the bound issue's phase. Use it after reading it against its contract. Returns the
    verdict; the orchestrator acts on it later. Refused for an old hash."""
    return _record(ctx, args, NewVerdict(verdict="approved", reason=args.reason))


@tool(
    title="Reject phase", effect="write", action="tracker:judge", tier="act", group="Review", profiles="J",
    critical="J", default=False, binds="issue", outline=False,
)  # fmt: skip
def reject_phase(ctx: Context, args: RejectPhase) -> Verdict:
    """Reject the artifact of the bound issue's phase, with a comment. Use it to say what is wrong and how to mend
    it. Returns the verdict; the orchestrator acts on it later. Refused for an old hash."""
    new = NewVerdict(verdict="rejected", reason=args.reason, fix_instructions=args.fix_instructions)
    return _record(ctx, args, new)


def _record(ctx: Context, args: ApprovePhase | RejectPhase, new: NewVerdict) -> Verdict:
    store, claims = Issues(ctx.tx, ctx.actor), Claims(ctx.tx, ctx.actor)
    # Locked, or it could move on, or away to another project, under a verdict that nobody would ever act on.
    issue = store.bound(lock=True)
    _refuse_other_phase(issue, args.phase)
    claim = _waiting(claims.latest(issue.id, args.phase), issue, args.phase)
    judged = plain_hash(args.artifact_hash)
    if judged != claim.artifact_hash:
        raise Conflict(
            f"the latest {args.phase} claim of {issue.identifier} is for {_short(claim.artifact_hash)}, not for "
            f"{_short(judged)}",
            hint="read the artifact as it is now and judge that one; get_issue shows the claim",
        )
    mine = (claim.subject, claim.profile) == (ctx.actor.subject, ctx.actor.profile)
    if mine and ctx.actor.kind != "human":
        raise Conflict(
            "a claim cannot be judged by whoever made it", hint="another agent, or a person, has to judge it"
        )
    finding = claims.add_verdict(issue, claim, new)
    if new.verdict == "rejected":
        fix = f"\n\n**To fix:** {new.fix_instructions}" if new.fix_instructions else ""
        store.comment(issue, f"**{args.phase} rejected** ({_short(judged)}): {new.reason}{fix}")
    store.touch(issue)
    issue_changed(ctx, issue)
    follows = "moves on" if new.verdict == "approved" else "goes back to todo"
    message = f"Recorded. {issue.identifier} {follows} when the orchestrator acts on it; nothing has moved yet."
    return Verdict(id=finding.id, identifier=issue.identifier, verdict=new.verdict, message=message)


def _refuse_other_phase(issue: Row, phase: str) -> None:
    if phase == "ready":
        raise Conflict("ready has no artifact to judge", hint="approve_pr and reject_pr judge its pull request")
    if issue.phase != phase:
        raise Conflict(f"{issue.identifier} is in {issue.phase}, not in {phase}", hint=f"judge {issue.phase}")
    if issue.status in FINISHED:
        raise Conflict(f"{issue.identifier} is {issue.status}", hint="there is nothing to judge any more")


def _waiting(claim: Row | None, issue: Row, phase: str) -> Row:
    if claim is None or claim.processed_ms is not None:
        raise Conflict(
            f"no {phase} claim of {issue.identifier} waits for a verdict", hint="complete_phase makes one; wait for it"
        )
    return claim


def _short(digest: str | None) -> str:
    return f"{(digest or 'none')[:12]}…"
