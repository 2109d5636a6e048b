"""Keeps what agents claim to have completed, and what judges say of it. Rows are added and never changed."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from rookery.core.actor import Actor
from rookery.core.errors import Conflict
from rookery.core.ids import new_id
from rookery.db.tx import Tx
from rookery.domains.tracker.ratings import rate
from rookery.domains.tracker.store import author, now_ms
from rookery.domains.tracker.tables import artifacts, finding_processing, findings, phase_claims, phase_verdicts
from rookery.lifecycle.issue_tables import WAKE

Row = sa.Row[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class NewClaim:
    """A claim that was found to be in order. What has to do with an artifact is None for ready."""

    phase: str
    contract_version: int
    summary: str
    open_questions: list[str]
    confidence: str
    artifact_path: str | None = None
    artifact_hash: str | None = None
    content: str | None = None
    promote_to: str | None = None
    recommended_next_phase: str | None = None
    worktree: str | None = None
    branch: str | None = None
    head: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewVerdict:
    """What a judge says of a claimed artifact."""

    verdict: Literal["approved", "rejected"]
    reason: str
    fix_instructions: str | None = None


class Claims:
    """Claims and verdicts of issues that the actor may change; whether it may was asked when the issue was found."""

    def __init__(self, tx: Tx, actor: Actor) -> None:
        self.tx = tx
        self.actor = actor

    def add_claim(self, issue: Row, new: NewClaim) -> Row:
        """Record that a phase is claimed to be complete, with the artifact's content. Returns the finding."""
        payload: dict[str, Any] = {
            "completed_phase": new.phase,
            "contract_version": new.contract_version,
            "artifact_path": new.artifact_path,
            "artifact_hash": new.artifact_hash,
            "summary": new.summary,
            "open_questions": new.open_questions,
            "confidence": new.confidence,
            "promote_to": new.promote_to,
            "recommended_next_phase": new.recommended_next_phase,
        }
        finding = self._add(issue, "pc", "phase_completion", payload)
        claim = {name: getattr(new, name) for name in ("phase", "artifact_hash", "worktree", "branch", "head")}
        whose = {"subject": self.actor.subject, "profile": self.actor.profile}
        self.tx.run(
            sa.insert(phase_claims).values(finding_id=finding.id, seq=finding.seq, issue_id=issue.id, **claim, **whose)
        )
        if new.content is not None:
            self._keep(issue, new, finding.created_ms)
        return finding

    def latest(self, issue_id: str, phase: str) -> Row | None:
        """The newest claim of a phase, with the finding's payload and when it was processed; None if there is none."""
        wanted = (
            sa.select(phase_claims, findings.c.payload, findings.c.created_ms, finding_processing.c.processed_ms)
            .join(findings, findings.c.id == phase_claims.c.finding_id)
            .join(finding_processing, finding_processing.c.finding_id == phase_claims.c.finding_id)
            .where(phase_claims.c.issue_id == issue_id, phase_claims.c.phase == phase)
        )
        return self.tx.one(wanted.order_by(phase_claims.c.seq.desc()).limit(1))

    def add_verdict(self, issue: Row, claim: Row, new: NewVerdict) -> Row:
        """Record the verdict on a claim and return the finding. Of two verdicts on one claim the later is refused."""
        payload: dict[str, Any] = {
            "phase": claim.phase,
            "artifact_hash": claim.artifact_hash,
            "verdict": new.verdict,
            "reason": new.reason,
        }
        if new.fix_instructions is not None:
            payload["fix_instructions"] = new.fix_instructions
        finding = self._add(issue, "pv", "phase_verdict", payload)
        row = {"finding_id": finding.id, "claim_id": claim.finding_id, "verdict": new.verdict}
        # On PostgreSQL this waits for another who judges the claim in an open transaction.
        if not self.tx.run(self._insert(phase_verdicts).values(**row).on_conflict_do_nothing()):
            raise Conflict(
                f"the {claim.phase} claim {claim.finding_id} has its verdict already",
                hint="get_issue shows it; a claim is judged once",
            )
        rate(self.tx, issue.tenant, claim.subject, new.verdict, claim.finding_id)
        return finding

    def _add(self, issue: Row, prefix: str, category: str, payload: dict[str, Any]) -> Row:
        at_ms = now_ms()
        finding_id = new_id(prefix)
        created_at = datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="milliseconds")
        finding = self.tx.one(
            sa.insert(findings)
            .values(
                id=finding_id,
                tenant=issue.tenant,
                issue_id=issue.id,
                run_id=self.actor.run,
                category=category,
                author=author(self.actor),
                subject=self.actor.subject,
                payload={"id": finding_id, "category": category, **payload, "created_at": created_at},
                created_ms=at_ms,
            )
            .returning(*findings.c)
        )
        assert finding is not None
        waits = {"project_id": issue.project_id, "issue_id": issue.id, "seq": finding.seq}
        self.tx.run(sa.insert(finding_processing).values(finding_id=finding_id, **waits))
        self.tx.wake(WAKE)
        return finding

    def _keep(self, issue: Row, new: NewClaim, at_ms: int) -> None:
        """Keep the content once for each hash, however often it is claimed."""
        row = {"hash": new.artifact_hash, "phase": new.phase, "path": new.artifact_path, "content": new.content}
        kept = self._insert(artifacts).values(issue_id=issue.id, **row, created_ms=at_ms)
        self.tx.run(kept.on_conflict_do_nothing())

    def _insert(self, table: sa.Table) -> postgresql.Insert | sqlite.Insert:
        return (sqlite if self.tx.dialect == "sqlite" else postgresql).insert(table)
