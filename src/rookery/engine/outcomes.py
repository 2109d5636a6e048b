"""What the end of an attempt means: whether its agent did what it was there for, and what follows from that.

What counts is what is on record, not how the session ended: a claim made in the run is a success though its agent
crashed a moment later, and an agent that says it is done without having claimed anything has not succeeded.
"""

from dataclasses import dataclass
from typing import Any, Literal

import sqlalchemy as sa

from rookery.db.tx import Tx
from rookery.domains.tracker.pr_store import latest_pr
from rookery.domains.tracker.store import Issues
from rookery.domains.tracker.tables import findings, issue_changes, phase_claims, phase_verdicts, prs
from rookery.engine.assigning import give_back, orchestrator_of, tell, undecidable
from rookery.engine.background import background_outcome
from rookery.engine.dispatches import Dispatches, Outcome
from rookery.engine.refusals import Refusals
from rookery.engine.tables import ENDED
from rookery.lifecycle.issue_tables import issues
from rookery.lifecycle.run_tables import agent_runs
from rookery.lifecycle.session_store import SessionRuns
from rookery.sessions.lost import tell_lost
from rookery.sessions.store import SessionRows
from rookery.sessions.tables import ENDED as SESSION_ENDED

Row = sa.Row[Any]
Seen = Literal["done", "failed", "timed_out", "stalled", "lost", "cancelled"]
IDLE: dict[str, str] = {
    "phase": "the agent ended without claiming that the phase is complete",
    "judge_phase": "the judge ended without a verdict",
    "judge_pr": "the judge ended without a decision",
}
UNCLAIMED = "the agent put the issue into review without a claim, so there is nothing to judge"


@dataclass(frozen=True, slots=True)
class End:
    """How an attempt ended as far as its worker knows: how its session did, and why."""

    seen: Seen
    why: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What is on record about an attempt that is over. `overtaken` is why nobody wants it any more.

    One that is `parked` waits for others by the agent's own decision, one that is `unclaimed` for nobody.
    """

    did: bool = False
    parked: bool = False
    unclaimed: bool = False
    overtaken: str | None = None
    idle: str = ""


def outcome_of(end: End, found: Found) -> tuple[Outcome, str | None]:
    """What the attempt came to, and why. Pure."""
    if found.did or found.parked:
        return "succeeded", None
    if end.seen == "cancelled":
        return "cancelled", end.why
    if found.overtaken is not None:
        return "cancelled", found.overtaken
    if end.seen == "done":
        return "idle", UNCLAIMED if found.unclaimed else found.idle
    return end.seen, end.why


def settle(tx: Tx, tenant: str, dispatch_id: str, end: End) -> Row | None:
    """End the attempt by what is on record, and give its issue back unless something was claimed; None if it was over.

    Who finds an attempt whose worker is gone says `lost`: its session and its run are ended with it.
    """
    store = Dispatches(tx, tenant)
    row = store.of(dispatch_id)
    if row is None or row.state == ENDED:
        return None
    # The issue first, as everywhere: then no two transactions wait for each other.
    issue = _issue(tx, row)
    if end.seen == "lost":
        _end_session(tx, row)
    found = Found() if row.issue_id is None else _found(tx, row, issue)
    outcome, why = _background(tx, row, end) if row.issue_id is None else outcome_of(end, found)
    ended = store.end(row.id, outcome, why)
    if ended is not None and outcome != "succeeded":
        reason = f"{outcome.replace('_', ' ')}: {why}" if why else outcome
        if not give_back(tx, row, reason) and found.unclaimed and issue is not None:
            Issues(tx, orchestrator_of(tx, row)).move(issue, "todo", "orchestrator", why=reason)
    if ended is not None and issue is not None:
        _tell_refusals(tx, row, outcome)
    return ended


def _tell_refusals(tx: Tx, row: Row, outcome: Outcome) -> None:
    """What was refused to the agent is told on its issue, a claim only if no other one succeeded."""
    refused = Refusals(tx, row)
    wanted = (refused.edits, refused.claim if outcome not in ("succeeded", "cancelled") else None)
    for text in filter(None, wanted):
        tell(tx, row, text)


def has_claimed(tx: Tx, dispatch: Row) -> bool:
    """Whether the agent of an attempt at a phase has claimed in its run that the phase is complete."""
    claim = (
        sa.select(findings.c.id)
        .join(phase_claims, phase_claims.c.finding_id == findings.c.id)
        .where(
            findings.c.issue_id == dispatch.issue_id,
            findings.c.run_id == dispatch.run_id,
            phase_claims.c.phase == dispatch.phase,
        )
    )
    return dispatch.run_id is not None and tx.one(claim.limit(1)) is not None


def _issue(tx: Tx, row: Row) -> Row | None:
    same = (issues.c.tenant == row.tenant, issues.c.id == row.issue_id)
    return tx.one(sa.select(issues).where(*same).with_for_update()) if row.issue_id is not None else None


def _background(tx: Tx, row: Row, end: End) -> tuple[Outcome, str | None]:
    """A scan or an intake succeeds if what it was given is done, however its session ended."""
    outcome, why = background_outcome(tx, row)
    if outcome == "succeeded" or end.seen == "done":
        return outcome, why
    return end.seen, end.why


def _found(tx: Tx, row: Row, issue: Row | None) -> Found:
    if issue is None:
        return Found(overtaken="the issue is gone")
    idle = IDLE[row.work]
    if row.work == "phase":
        did = has_claimed(tx, row)
        own = not did and _moved_itself(tx, row, issue)
        parked = own and (issue.status == "blocked" or (issue.status == "review" and _has_open_pr(tx, issue)))
        unclaimed = own and issue.status == "review" and not parked
        overtaken = None if did or parked or unclaimed else _taken_away(row, issue, own=own)
        return Found(did=did, parked=parked, unclaimed=unclaimed, overtaken=overtaken, idle=idle)
    did = _judged(tx, row) if row.work == "judge_phase" else _decided(tx, row)
    overtaken = None if did else undecidable(tx, orchestrator_of(tx, row), issue, row)
    return Found(did=did, overtaken=overtaken, idle=idle)


def _moved_itself(tx: Tx, row: Row, issue: Row) -> bool:
    """Whether the issue is where the agent itself has put it in this attempt."""
    if row.run_id is None or issue.phase != row.phase or issue.fence != row.fence:
        return False
    moves = (issue_changes.c.issue_id == issue.id, issue_changes.c.field == "status")
    mover = sa.select(issue_changes.c.subject).where(*moves).order_by(issue_changes.c.seq.desc()).limit(1)
    return issue.status != "in_progress" and tx.scalar(mover) == _agent_of(tx, row)


def _has_open_pr(tx: Tx, issue: Row) -> bool:
    pr = latest_pr(tx, issue.id)
    return pr is not None and pr.status == "open"


def _taken_away(row: Row, issue: Row, *, own: bool) -> str | None:
    """Why the issue is not the attempt's any more; None if it is, or if the agent has put it back on its `own`."""
    if issue.project_id != row.project_id:
        return "the issue was moved to another project"
    if issue.phase != row.phase:
        return f"the issue is in {issue.phase} by now"
    if row.fence is not None and issue.fence != row.fence:
        return "another has claimed the issue since"
    if issue.status == "in_progress":
        return None
    # One that never held it has found it so.
    if issue.status == "todo" and (row.fence is None or own):
        return None
    return f"the issue is {issue.status} by now"


def _judged(tx: Tx, row: Row) -> bool:
    verdict = (
        sa.select(findings.c.id)
        .join(phase_verdicts, phase_verdicts.c.finding_id == findings.c.id)
        .where(phase_verdicts.c.claim_id == row.about, findings.c.run_id == row.run_id)
    )
    return row.run_id is not None and tx.one(verdict) is not None


def _decided(tx: Tx, row: Row) -> bool:
    pr = tx.one(sa.select(prs).where(prs.c.id == row.about, prs.c.judged_by.is_not(None)))
    return pr is not None and pr.judged_by == _agent_of(tx, row)


def _agent_of(tx: Tx, row: Row) -> str | None:
    """The id of the agent that ran, whatever name it was dispatched by; None if none did."""
    return tx.scalar(sa.select(agent_runs.c.agent).where(agent_runs.c.id == row.run_id))


def _end_session(tx: Tx, row: Row) -> None:
    """Nobody looks after the attempt's session any more: what still calls tools for it is refused from here on."""
    SessionRuns(tx, row.tenant).end_lost()
    rows = SessionRows(tx, row.tenant)
    session = rows.find(row.session) if row.session is not None else None
    if session is None or session.state == SESSION_ENDED:
        return
    if row.run_id is not None and session.run_id == row.run_id:
        tell_lost(tx, row.tenant, session.id, row.run_id, None)
        session = rows.of(session.id)
    if session.state != SESSION_ENDED:
        rows.end(session.id)
