"""Claims and verdicts as `advance` reads them."""

from typing import Any

import sqlalchemy as sa

from rookery.db.tx import Tx
from rookery.domains.tracker.pipeline import Claim, Verdict
from rookery.domains.tracker.tables import finding_processing, findings, phase_claims, phase_verdicts

_CLAIMS = (
    sa.select(
        findings.c.id,
        findings.c.seq,
        findings.c.payload,
        phase_claims.c.phase,
        phase_claims.c.artifact_hash,
        phase_claims.c.worktree,
        phase_claims.c.head,
        phase_claims.c.subject,
        phase_claims.c.profile,
        finding_processing.c.outcome,
        finding_processing.c.processed_ms,
    )
    .join(phase_claims, phase_claims.c.finding_id == findings.c.id)
    .join(finding_processing, finding_processing.c.finding_id == findings.c.id)
)
_VERDICTS = (
    sa.select(findings.c.id, findings.c.seq, findings.c.payload)
    .join(phase_verdicts, phase_verdicts.c.finding_id == findings.c.id)
    .join(finding_processing, finding_processing.c.finding_id == findings.c.id)
)
_WAITING = finding_processing.c.processed_ms.is_(None)


def waiting_issues(tx: Tx, project_id: str) -> list[str]:
    """The issues of a project with something to act on, longest waiting first."""
    first = sa.func.min(finding_processing.c.seq)
    mine = (finding_processing.c.project_id == project_id, _WAITING)
    found = sa.select(finding_processing.c.issue_id).where(*mine).group_by(finding_processing.c.issue_id)
    return [row.issue_id for row in tx.all(found.order_by(first))]


def latest_claim(tx: Tx, issue_id: str) -> Claim | None:
    """The newest claim of an issue, whatever its phase."""
    row = tx.one(_CLAIMS.where(findings.c.issue_id == issue_id).order_by(findings.c.seq.desc()).limit(1))
    return None if row is None else _claim(row)


def waiting_claims(tx: Tx, issue_id: str) -> list[Claim]:
    rows = tx.all(_CLAIMS.where(findings.c.issue_id == issue_id, _WAITING).order_by(findings.c.seq))
    return [_claim(row) for row in rows]


def waiting_verdicts(tx: Tx, issue_id: str) -> list[Verdict]:
    rows = tx.all(_VERDICTS.where(findings.c.issue_id == issue_id, _WAITING).order_by(findings.c.seq))
    return [_verdict(row) for row in rows]


def _claim(row: sa.Row[Any]) -> Claim:
    return Claim(
        id=row.id,
        seq=row.seq,
        phase=row.phase,
        hash=row.artifact_hash,
        payload=row.payload,
        outcome=row.outcome,
        waiting=row.processed_ms is None,
        worktree=row.worktree,
        head=row.head,
        subject=row.subject,
        profile=row.profile,
    )


def _verdict(row: sa.Row[Any]) -> Verdict:
    told = row.payload
    return Verdict(
        id=row.id,
        seq=row.seq,
        phase=told["phase"],
        hash=told["artifact_hash"],
        approved=told["verdict"] == "approved",
        reason=told.get("reason") or "",
    )
