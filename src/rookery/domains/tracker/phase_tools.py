"""The tool with which an agent says that its phase is complete. It records a claim; `advance` moves the issue."""

import asyncio

from rookery.core.context import Context
from rookery.core.errors import Conflict, InvalidParams, PermissionDenied
from rookery.core.tool import ToolOutput, tool
from rookery.db.tx import Tx
from rookery.domains.tracker.claim_check import CompletePhase, checked_claim
from rookery.domains.tracker.claim_store import Claims, Row
from rookery.domains.tracker.notices import issue_changed
from rookery.domains.tracker.project_store import Projects, ProjectSettings
from rookery.domains.tracker.store import Issues
from rookery.lifecycle.states import PHASE_PROFILES

NEEDED = ("contract_version", "artifact_path", "artifact_hash", "recommended_next_phase")
OF_AN_ARTIFACT = ("artifact_path", "artifact_hash", "recommended_next_phase", "promote_to")


class PhaseClaim(ToolOutput):
    id: str
    identifier: str
    phase: str
    message: str


@tool(
    title="Complete phase", effect="external", action="tracker:write", tier="act", group="Phase", profiles="WRAP",
    critical="WRAP", default=False, binds="issue", open_world=False, outline=False,
)  # fmt: skip
async def complete_phase(ctx: Context, args: CompletePhase) -> PhaseClaim:
    """Claim that the bound issue's phase is complete. Use it last; ready needs commits, other phases an artifact.
    Returns the claim. Moves nothing yet. A refusal says what to mend."""
    _refuse_profile(ctx.actor.profile, args.completed_phase)
    _refuse_fields(args)
    # Looking at a lease locks the issue, which a read-only transaction cannot.
    issue, settings = await ctx.write(lambda tx: _claimable(tx, ctx, args))
    claim, contract = await asyncio.to_thread(checked_claim, ctx.actor, issue, settings, args)

    def record(tx: Tx) -> Row:
        # While the files were read another may have moved or claimed the issue.
        current, _ = _claimable(tx, ctx, args)
        Issues(tx, ctx.actor).touch(current)
        return Claims(tx, ctx.actor).add_claim(current, claim)

    finding = await ctx.write(record)
    issue_changed(ctx, issue)
    judged = contract.requires_judge and claim.phase not in settings.unjudged
    return PhaseClaim(
        id=finding.id, identifier=issue.identifier, phase=claim.phase, message=_what_follows(claim.head, judged)
    )


def _refuse_profile(profile: str | None, phase: str) -> None:
    able = PHASE_PROFILES[phase]
    if profile is not None and profile not in able:
        mine = [each for each, profiles in PHASE_PROFILES.items() if profile in profiles]
        raise PermissionDenied(
            f"a {profile} cannot complete {phase}; {' or '.join(sorted(able))} can",
            hint=f"a {profile} completes {' or '.join(mine) or 'no phase'}",
            layer="phase",
        )


def _refuse_fields(args: CompletePhase) -> None:
    """One error for all fields that are missing, or that ready has no use for."""
    phase = args.completed_phase
    if phase == "ready":
        if extra := [name for name in OF_AN_ARTIFACT if getattr(args, name) is not None]:
            raise InvalidParams(
                f"complete_phase: ready has no artifact, so no {', '.join(extra)}",
                hint="leave these out; the claim records the branch and its last commit",
            )
    elif missing := [name for name in NEEDED if getattr(args, name) is None]:
        raise InvalidParams(
            f"complete_phase: {phase} needs {', '.join(missing)}",
            hint="the contract of the phase tells its version; sha256sum prints the artifact's hash",
        )


def _claimable(tx: Tx, ctx: Context, args: CompletePhase) -> tuple[Row, ProjectSettings]:
    """The bound issue, if its phase can be claimed by this actor now."""
    store = Issues(tx, ctx.actor)
    _refuse_state(store.bound(), args.completed_phase)
    issue = store.held(args.fence)
    # Again, since only now nobody else can change the row.
    _refuse_state(issue, args.completed_phase)
    return issue, Projects(tx, ctx.actor).settings()


def _refuse_state(issue: Row, phase: str) -> None:
    if issue.phase != phase:
        raise Conflict(
            f"{issue.identifier} is in {issue.phase}, not in {phase}",
            hint=f"only {issue.phase} can be completed now",
        )
    if issue.status != "in_progress":
        raise Conflict(
            f"{issue.identifier} is {issue.status}, not in_progress",
            hint="a phase is completed while the issue is in_progress; get_issue shows what happened",
        )


def _what_follows(head: str | None, judged: bool) -> str:
    if head is not None:
        then = f"runs the gates on {head[:12]} and opens a pull request. Stop here and commit nothing more."
    elif judged:
        then = "validates the claim and lets a judge decide. Stop here and leave the artifact as it is."
    else:
        then = "validates the claim and moves the issue on. Stop here and leave the artifact as it is."
    return f"Claim recorded. Nothing has moved yet: the orchestrator {then}"
