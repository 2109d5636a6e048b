"""Claims and verdicts as `advance` reads them."""

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from rookery.db.tx import Tx
from rookery.domains.tracker.pipeline import Claim, Verdict
from rookery.domains.tracker.tables import finding_processing, findings, phase_claims, phase_verdicts
from rookery.lifecycle.issue_tables import issues

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
# A claim that awaits its verdict, in an issue that stands where the claim left it, waits for somebody else.
_AWAITED = sa.and_(
    finding_processing.c.outcome.is_not(None), issues.c.status == "review", phase_claims.c.phase == issues.c.phase
)
_PLACES = finding_processing.join(issues, issues.c.id == finding_processing.c.issue_id).outerjoin(
    phase_claims, phase_claims.c.finding_id == finding_processing.c.finding_id
)
_TO_ACT_ON = (_WAITING, issues.c.status != "blocked", ~sa.func.coalesce(_AWAITED, False))
# Built once: every tick asks them, and to build them costs more than to run them.
_ISSUES = (
    sa.select(finding_processing.c.issue_id)
    .select_from(_PLACES)
    .where(finding_processing.c.project_id == sa.bindparam("wanted"), *_TO_ACT_ON)
    .group_by(finding_processing.c.issue_id)
    .order_by(sa.func.min(finding_processing.c.seq))
)
_PROJECTS = (
    sa.select(issues.c.tenant, finding_processing.c.project_id)
    .select_from(_PLACES)
    .where(*_TO_ACT_ON)
    .distinct()
    .order_by(issues.c.tenant, finding_processing.c.project_id)
)
_OURS = findings.c.issue_id == sa.bindparam("wanted")
_LATEST_CLAIM = _CLAIMS.where(_OURS).order_by(findings.c.seq.desc()).limit(1)
_WAITING_CLAIMS = _CLAIMS.where(_OURS, _WAITING).order_by(findings.c.seq)
_WAITING_VERDICTS = _VERDICTS.where(_OURS, _WAITING).order_by(findings.c.seq)


def waiting_issues(tx: Tx, project_id: str) -> list[str]:
    """The issues of a project with something to act on, longest waiting first."""
    return [row.issue_id for row in tx.all(_ISSUES, {"wanted": project_id})]


def waiting_projects(tx: Tx) -> Sequence[sa.Row[Any]]:
    """The `tenant` and the `project_id` of every project with something to act on."""
    return tx.all(_PROJECTS)


def latest_claim(tx: Tx, issue_id: str) -> Claim | None:
    """The newest claim of an issue, whatever its phase."""
    row = tx.one(_LATEST_CLAIM, {"wanted": issue_id})
    return None if row is None else _claim(row)


def waiting_claims(tx: Tx, issue_id: str) -> list[Claim]:
    return [_claim(row) for row in tx.all(_WAITING_CLAIMS, {"wanted": issue_id})]


def waiting_verdicts(tx: Tx, issue_id: str) -> list[Verdict]:
    return [_verdict(row) for row in tx.all(_WAITING_VERDICTS, {"wanted": issue_id})]


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
