"""Reads what an issue's document is made of."""

from typing import Any

import sqlalchemy as sa

from rookery.core.actor import Actor
from rookery.core.errors import NotFound
from rookery.db.tx import Tx
from rookery.domains.tracker.claim_store import Claims
from rookery.domains.tracker.issue_markdown import IssueData
from rookery.domains.tracker.issue_view import SHOWN, IssueView, finding_view
from rookery.domains.tracker.tables import artifacts, finding_processing, findings
from rookery.identity.tables import projects

ABOUT_PHASES = ("phase_completion", "phase_verdict")


def issue_data(tx: Tx, actor: Actor, issue: sa.Row[Any], *, shown: int = SHOWN, history: bool = True) -> IssueData:
    """The issue with the newest `shown` of each kind of record. The actor may see it; that was checked before."""
    view = IssueView(tx, actor, issue)
    is_claim = findings.c.category.in_(ABOUT_PHASES)
    claims, claims_total = _findings(tx, issue, is_claim, shown)
    found, found_total = _findings(tx, issue, ~is_claim, shown)
    return IssueData(
        **{name: value for name, value in view.heading().items() if name != "id"},
        project=tx.scalar(sa.select(projects.c.slug).where(projects.c.id == issue.project_id)),
        phase=issue.phase,
        blocked_on=issue.blocked_on,
        rejections=issue.rejections,
        author=issue.author,
        created_ms=issue.created_ms,
        description=issue.description,
        parent=view.parent(),
        subtasks=view.children(),
        depends_on=view.dependencies(),
        claims=claims,
        findings=found,
        learnings=view.learnings()[-shown:],
        comments=view.comments(shown),
        runs=view.runs(shown),
        pr=view.pr(),
        lease=view.lease(),
        test_health=view.test_health(),
        history=view.history() if history else [],
        totals=view.totals() | {"findings": found_total, "claims": claims_total},
    )


def _findings(
    tx: Tx, issue: sa.Row[Any], wanted: sa.ColumnElement[bool], shown: int
) -> tuple[list[dict[str, Any]], int]:
    """The newest findings of one sort, newest last, and how many there are. Claims must not drown in the others."""
    mine = (findings.c.issue_id == issue.id, wanted)
    processed = finding_processing.c.processed_ms.label("processed_ms")
    waits = finding_processing.c.finding_id.label("waits")
    newest = (
        sa.select(findings, processed, waits)
        .outerjoin(finding_processing, finding_processing.c.finding_id == findings.c.id)
        .where(*mine)
        .order_by(findings.c.seq.desc())
        .limit(shown)
    )
    rows = [finding_view(row) for row in reversed(tx.all(newest))]
    if len(rows) < shown:
        return rows, len(rows)
    return rows, tx.scalar(sa.select(sa.func.count()).select_from(findings).where(*mine))


def claimed_artifact(tx: Tx, actor: Actor, issue: sa.Row[Any], phase: str) -> str:
    """The artifact of the phase's latest claim, byte for byte; NotFound if there is none."""
    claim = Claims(tx, actor).latest(issue.id, phase)
    content = None
    if claim is not None and claim.artifact_hash is not None:
        same = (artifacts.c.issue_id == issue.id, artifacts.c.hash == claim.artifact_hash)
        content = tx.scalar(sa.select(artifacts.c.content).where(*same))
    if content is None:
        raise NotFound(
            f"{issue.identifier} has no claimed artifact of {phase}", hint="get_issue shows what was claimed"
        )
    return content
