"""What has to happen next to an issue's claims and verdicts. Pure: `advance` reads the rows and does it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from rookery.lifecycle.states import FINISHED, PHASES

AWAITING = "awaiting_verdict"
MAX_REJECTIONS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A claim that a phase is complete. `outcome` is None until it was validated."""

    id: str
    seq: int
    phase: str
    hash: str | None
    payload: dict[str, Any]
    outcome: str | None
    waiting: bool
    worktree: str | None = None
    head: str | None = None
    subject: str = ""
    profile: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What a judge said of an artifact, not yet acted on."""

    id: str
    seq: int
    phase: str
    hash: str
    approved: bool
    reason: str


@dataclass(frozen=True, slots=True)
class Step:
    """The one thing to do next. `drop` marks the finding as processed without effect."""

    kind: Literal["drop", "validate", "open_pr", "approve", "reject"]
    claim: Claim | None = None
    verdict: Verdict | None = None
    outcome: str = ""
    comment: str | None = None


def next_step(
    status: str, phase: str, latest: Claim | None, claims: Sequence[Claim], verdicts: Sequence[Verdict]
) -> Step | None:
    """What follows for an issue from its latest claim and from what waits, in the order in which it was recorded."""
    waiting = sorted([*claims, *verdicts], key=lambda found: found.seq)
    if status in FINISHED:
        return _dropped(waiting[0], "ignored") if waiting else None
    if status == "blocked":
        return None
    for found in waiting:
        if isinstance(found, Claim):
            if latest is None or found.id != latest.id or found.phase != phase:
                return _dropped(found, "superseded")
            if found.outcome is None:
                return Step("open_pr" if phase == "ready" else "validate", claim=found)
            continue
        if latest is None or not latest.waiting or latest.phase != phase or not _is_about(found, latest):
            return _dropped(found, "stale", _ignored(found, latest))
        if latest.outcome is None:
            # The same file was claimed again after the verdict; that does not spare it the validation.
            return Step("validate", claim=latest)
        return Step("approve" if found.approved else "reject", claim=latest, verdict=found)
    return None


def _is_about(verdict: Verdict, claim: Claim) -> bool:
    return (verdict.phase, verdict.hash) == (claim.phase, claim.hash)


def _dropped(found: Claim | Verdict, outcome: str, comment: str | None = None) -> Step:
    if isinstance(found, Claim):
        return Step("drop", claim=found, outcome=outcome, comment=comment)
    return Step("drop", verdict=found, outcome=outcome, comment=comment)


def _ignored(verdict: Verdict, latest: Claim | None) -> str:
    word = "approval" if verdict.approved else "rejection"
    told = f"The {word} of the {verdict.phase} artifact {verdict.hash[:12]} was ignored"
    if latest is not None and latest.hash is not None and latest.hash != verdict.hash:
        return f"{told}: the latest claim is for {latest.hash[:12]}."
    return f"{told}: it was decided already."


def following(phase: str, pipeline: Sequence[str], skipped: frozenset[str]) -> str:
    """The phase after `phase` in the project's pipeline, without those to be skipped. `ready` cannot be skipped."""
    later = PHASES[PHASES.index(phase) + 1 :]
    return next((each for each in later if each in pipeline and each not in skipped), "ready")
