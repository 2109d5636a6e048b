"""Reads what agents are told when they start, and refuses what they could not do anyway."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import sqlalchemy as sa

from rookery.core.actor import Actor
from rookery.core.errors import Conflict, NotFound, PermissionDenied
from rookery.db.tx import Tx
from rookery.domains.tracker.briefs import Coverage, Work
from rookery.domains.tracker.claim_store import Claims
from rookery.domains.tracker.contract import Contract
from rookery.domains.tracker.issue_data import claimed_artifact, issue_data
from rookery.domains.tracker.issue_markdown import IssueData, Record
from rookery.domains.tracker.issue_view import PR_FIELDS
from rookery.domains.tracker.line_comment_store import LineComments
from rookery.domains.tracker.pipeline import following
from rookery.domains.tracker.pr_store import latest_pr
from rookery.domains.tracker.project_store import Projects, ProjectSettings
from rookery.domains.tracker.review_briefs import Delivered, Review
from rookery.domains.tracker.store import Issues, now_ms
from rookery.domains.tracker.tables import coverage, pr_gates
from rookery.lifecycle.issue_tables import issues
from rookery.lifecycle.states import OPEN, PHASE_PROFILES

Row = sa.Row[Any]
SHOWN = 20
SHOWN_CONCEPTS = 50
SHOWN_RECORDS = 100
_COUNTED = ("concept", "files", "with_issues")
_COVERED = ("file_path", "concept", "status", "ticket", "notes", "updated_ms")


def phase_to_work_on(tx: Tx, actor: Actor, wanted: str | None) -> tuple[ProjectSettings, str]:
    """The bound issue's phase, if the actor's profile can complete it and it is the one that was asked for."""
    issue = Issues(tx, actor).bound()
    phase = wanted or issue.phase
    able = PHASE_PROFILES[phase]
    if actor.profile is not None and actor.profile not in able:
        mine = [each for each, profiles in PHASE_PROFILES.items() if actor.profile in profiles]
        raise PermissionDenied(
            f"a {actor.profile} does not work on {phase}; {' or '.join(sorted(able))} does",
            hint=f"a {actor.profile} works on {' or '.join(mine) or 'no phase'}",
            layer="phase",
        )
    if phase != issue.phase:
        raise Conflict(f"{issue.identifier} is in {issue.phase}, not in {phase}", hint="leave the phase out")
    return Projects(tx, actor).settings(), phase


def refuse_contract(contract: Contract, profile: str | None) -> None:
    """A project's own contract may leave out a profile that could do the phase elsewhere."""
    if profile is not None and profile not in contract.profiles:
        raise PermissionDenied(
            f"the project's contract of {contract.phase} is for {' or '.join(contract.profiles)}, not for a {profile}",
            hint="leave this phase to them",
            layer="phase",
        )


def read_work(tx: Tx, actor: Actor, settings: ProjectSettings, contract: Contract) -> Work:
    """What there is to know about the phase that the contract is for."""
    row = _same_phase(tx, actor, contract)
    data = issue_data(tx, actor, row, shown=SHOWN, history=False)
    skipped = frozenset(label.removeprefix("skip:") for label in data.labels if label.startswith("skip:"))
    return Work(
        profile=actor.profile or contract.profiles[0],
        issue=data,
        contract=contract,
        settings=settings,
        root=actor.worktree or settings.path,
        fence=row.fence if _holds(actor, row) else None,
        next_phase=following(contract.phase, settings.pipeline, skipped),
        rejected=_rejected(data, contract.phase),
    )


def _same_phase(tx: Tx, actor: Actor, contract: Contract) -> Row:
    """The bound issue. It may have moved on while the contract was read."""
    issue = Issues(tx, actor).bound()
    if issue.phase != contract.phase:
        raise Conflict(f"{issue.identifier} has just moved on to {issue.phase}", hint="ask again")
    return issue


def _holds(actor: Actor, issue: Row) -> bool:
    live = issue.lease_until_ms is not None and issue.lease_until_ms > now_ms()
    return live and issue.lease_subject == actor.subject


def _rejected(data: IssueData, phase: str) -> Record | None:
    """What was said of the last attempt, if it was rejected and nothing was claimed since."""
    if phase == "ready":
        return data.pr if data.pr is not None and data.pr["status"] == "rejected" else None
    told = [each for each in data.claims if phase in (each.get("completed_phase"), each.get("phase"))]
    return told[-1] if told and told[-1].get("verdict") == "rejected" else None


def phase_to_judge(tx: Tx, actor: Actor) -> tuple[ProjectSettings, str]:
    """The bound issue's phase, if a claim of it waits for a verdict."""
    issue = Issues(tx, actor).bound()
    _waiting_claim(tx, actor, issue)
    return Projects(tx, actor).settings(), issue.phase


def _waiting_claim(tx: Tx, actor: Actor, issue: Row) -> Row:
    if issue.phase == "ready":
        raise Conflict(
            f"{issue.identifier} is in ready, which has no artifact", hint="review_pr is for what it delivers"
        )
    claim = Claims(tx, actor).latest(issue.id, issue.phase)
    if claim is None or claim.processed_ms is not None:
        raise Conflict(
            f"no {issue.phase} claim of {issue.identifier} waits for a verdict", hint="complete_phase makes one"
        )
    return claim


def read_delivered(tx: Tx, actor: Actor, settings: ProjectSettings, contract: Contract) -> Delivered:
    """The claim that waits, with everything it is to be judged by."""
    issue = _same_phase(tx, actor, contract)
    claim = _waiting_claim(tx, actor, issue)
    data = issue_data(tx, actor, issue, shown=SHOWN, history=False)
    told = {"author": claim.profile or "a person", "created_ms": claim.created_ms, "processed": False}
    return Delivered(
        issue=data,
        contract=contract,
        settings=settings,
        claim={**claim.payload, **told},
        artifact=claimed_artifact(tx, actor, issue, claim.phase),
        rejections=[
            each for each in data.claims if (each.get("phase"), each.get("verdict")) == (claim.phase, "rejected")
        ],
    )


def pull_request_to_review(tx: Tx, actor: Actor) -> tuple[ProjectSettings, str]:
    """The project's settings and the phase ready, if the bound issue's pull request is open."""
    _open_pr(tx, Issues(tx, actor).bound())
    return Projects(tx, actor).settings(), "ready"


def _open_pr(tx: Tx, issue: Row) -> Row:
    pr = latest_pr(tx, issue.id)
    if pr is None:
        raise Conflict(f"{issue.identifier} has no pull request", hint="complete_phase of ready makes one")
    if pr.status != "open":
        raise Conflict(
            f"revision {pr.revision} of {issue.identifier}'s pull request is {pr.status}, not open",
            hint="wait for the next revision",
        )
    return pr


def read_review(tx: Tx, actor: Actor, settings: ProjectSettings, contract: Contract) -> Review:
    """The open pull request, with everything it is to be judged by."""
    issue = Issues(tx, actor).bound()
    pr = _open_pr(tx, issue)
    gates = tx.all(sa.select(pr_gates).where(pr_gates.c.pr_id == pr.id).order_by(pr_gates.c.position))
    return Review(
        issue=replace(issue_data(tx, actor, issue, shown=SHOWN, history=False), pr=None),
        contract=contract,
        settings=settings,
        pr={**_records([pr], PR_FIELDS)[0], "line_comments": LineComments(tx, actor).of(pr.id)},
        diff=pr.diff,
        gates=_records(gates, ("command", "label", "exit_code", "output", "required")),
        plan=_plan(tx, actor, issue),
    )


def _plan(tx: Tx, actor: Actor, issue: Row) -> str | None:
    try:
        return claimed_artifact(tx, actor, issue, "grooming")
    except NotFound:
        return None


def read_coverage(tx: Tx, actor: Actor, concept: str | None) -> tuple[str, Coverage]:
    """The bound project's slug, and what scans have looked at there, for one concept or for all."""
    table = coverage.c
    mine = [table.tenant == actor.tenant, table.project_id == actor.project]
    mine += [table.concept == concept] if concept is not None else []
    files = sa.func.count().label("files")
    with_issues = sa.func.sum(sa.case((table.status == "has_issues", 1), else_=0)).label("with_issues")
    counted = sa.select(table.concept, files, with_issues).where(*mine).group_by(table.concept)
    visible = (issues.c.id == table.ticket_id, issues.c.project_id.not_in(sorted(actor.closed)))
    newest = (
        sa.select(coverage, issues.c.identifier.label("ticket"))
        .outerjoin(issues, sa.and_(issues.c.tenant == table.tenant, *visible))
        .where(*mine)
        .order_by(table.updated_ms.desc(), table.file_path, table.concept)
    )
    return Projects(tx, actor).settings().slug, Coverage(
        total=tx.scalar(sa.select(sa.func.count()).select_from(coverage).where(*mine)),
        concepts=_records(tx.all(counted.order_by(files.desc()).limit(SHOWN_CONCEPTS)), _COUNTED),
        records=_records(tx.all(newest.limit(SHOWN_RECORDS)), _COVERED),
    )


def read_known(tx: Tx, actor: Actor) -> tuple[str, list[Record]]:
    """The bound project's slug and its newest open issues."""
    mine = (issues.c.tenant == actor.tenant, issues.c.project_id == actor.project, issues.c.status.in_(OPEN))
    newest = sa.select(issues.c.identifier, issues.c.status, issues.c.title).where(*mine)
    rows = tx.all(newest.order_by(issues.c.created_ms.desc(), issues.c.id.desc()).limit(SHOWN_RECORDS))
    return Projects(tx, actor).settings().slug, _records(rows, ("identifier", "status", "title"))


def _records(rows: Sequence[Row], names: Sequence[str]) -> list[Record]:
    return [{name: getattr(row, name) for name in names} for row in rows]
