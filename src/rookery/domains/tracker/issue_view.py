"""An issue with everything that was recorded about it, bounded, newest last."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import sqlalchemy as sa

from rookery.core.actor import Actor
from rookery.db.tx import Tx
from rookery.domains.tracker.learning_tables import learnings
from rookery.domains.tracker.line_comment_store import LineComments
from rookery.domains.tracker.store import Issues, now_ms
from rookery.domains.tracker.tables import (
    comments,
    finding_processing,
    findings,
    issue_changes,
    issue_deps,
    prs,
)
from rookery.domains.tracker.test_health_tools import project_health
from rookery.lifecycle.issue_tables import issues
from rookery.lifecycle.run_store import Runs

SHOWN = 50
"""Of each kind of record the newest this many; `totals` says how many there are."""
MAX_CHARACTERS = 100_000
"""And of those no more than fit into this, but one at least: an answer is read by a model."""
RUN_FIELDS = ("id", "profile", "phase", "status", "error", "cost_micros", "created_ms", "ended_ms")
PR_FIELDS = ("id", "revision", "branch", "base", "stats", "risk_score", "risk_level", "risk_reasons", "status",
             "reason", "fix_instructions", "head", "merged_in", "url")  # fmt: skip


class IssueView:
    """Reads what belongs to one issue. The actor may see the issue; that was checked when it was found."""

    def __init__(self, tx: Tx, actor: Actor, issue: sa.Row[Any]) -> None:
        self.tx = tx
        self.actor = actor
        self.issue = issue

    def heading(self) -> dict[str, Any]:
        """The issue's own fields."""
        issue = self.issue
        return {
            "id": issue.id,
            "identifier": issue.identifier,
            "title": issue.title,
            "status": issue.status,
            "priority": issue.priority,
            "size": issue.size,
            "labels": Issues(self.tx, self.actor).labels([issue])[issue.id],
            "updated_ms": issue.updated_ms,
        }

    def findings(self, limit: int) -> list[dict[str, Any]]:
        mine = findings.c.issue_id == self.issue.id
        processed = finding_processing.c.processed_ms.label("processed_ms")
        waits = finding_processing.c.finding_id.label("waits")
        wanted = sa.select(findings, processed, waits).outerjoin(
            finding_processing, finding_processing.c.finding_id == findings.c.id
        )
        rows = self.tx.all(wanted.where(mine).order_by(findings.c.seq.desc()).limit(limit))
        return _fitting([finding_view(row) for row in rows])

    def comments(self, limit: int = SHOWN) -> list[dict[str, Any]]:
        return self._newest(comments, limit, ("id", "author", "content", "created_ms"))

    def learnings(self) -> list[dict[str, Any]]:
        shown = ("id", "pattern", "context", "applies_to", "learning_type", "quality_score", "verified")
        return self._newest(learnings, SHOWN, shown)

    def history(self) -> list[dict[str, Any]]:
        return self._newest(issue_changes, 200, ("field", "old", "new", "author", "why", "at_ms"))

    def _newest(self, table: sa.Table, limit: int, shown: Sequence[str]) -> list[dict[str, Any]]:
        mine = sa.select(*(table.c[name] for name in shown)).where(table.c.issue_id == self.issue.id)
        rows = self.tx.all(mine.order_by(table.c.seq.desc()).limit(limit))
        return _fitting([dict(zip(shown, row, strict=True)) for row in rows])

    def totals(self) -> dict[str, int]:
        """How many records there are of each kind that is shown in part."""
        kinds = {"findings": findings, "comments": comments, "learnings": learnings}
        counts = [
            sa.select(sa.func.count()).select_from(table).where(table.c.issue_id == self.issue.id).scalar_subquery()
            for table in kinds.values()
        ]
        row = self.tx.one(sa.select(*counts))
        return dict(zip(kinds, row or (), strict=True))

    def dependencies(self) -> list[dict[str, Any]]:
        """What the issue waits for. Of an issue in a project without a role only whether it is done is told."""
        needed = sa.select(issues).join(issue_deps, issue_deps.c.depends_on == issues.c.id)
        rows = self.tx.all(needed.where(issue_deps.c.issue_id == self.issue.id).order_by(issues.c.identifier))
        return [self._brief(row) for row in rows]

    def children(self) -> list[dict[str, Any]]:
        mine = sa.select(issues).where(issues.c.parent_id == self.issue.id).order_by(issues.c.number)
        return [self._brief(row) for row in self.tx.all(mine.limit(200))]

    def parent(self) -> str | None:
        if self.issue.parent_id is None:
            return None
        return self.tx.scalar(sa.select(issues.c.identifier).where(issues.c.id == self.issue.parent_id))

    def _brief(self, row: sa.Row[Any]) -> dict[str, Any]:
        if row.project_id in self.actor.closed:
            return {"identifier": row.identifier, "status": row.status}
        return {"id": row.id, "identifier": row.identifier, "title": row.title, "status": row.status}

    def runs(self, limit: int) -> list[dict[str, Any]]:
        rows = Runs(self.tx, self.actor.tenant, closed=self.actor.closed).recent(self.issue.id, limit)
        return [{name: getattr(row, name) for name in RUN_FIELDS} for row in rows]

    def pr(self) -> dict[str, Any] | None:
        """The newest revision of the pull request and what was said of its lines, without its diff."""
        wanted = sa.select(*(prs.c[name] for name in PR_FIELDS)).where(prs.c.issue_id == self.issue.id)
        row = self.tx.one(wanted.order_by(prs.c.revision.desc()).limit(1))
        if row is None:
            return None
        return {**dict(zip(PR_FIELDS, row, strict=True)), "line_comments": LineComments(self.tx, self.actor).of(row.id)}

    def lease(self) -> dict[str, Any] | None:
        """Who holds the issue, if anyone does."""
        issue = self.issue
        if issue.lease_until_ms is None or issue.lease_until_ms <= now_ms():
            return None
        return {"held_by": issue.lease_name, "until_ms": issue.lease_until_ms}

    def test_health(self) -> dict[str, Any] | None:
        trend = project_health(self.tx, self.issue.project_id)
        return None if trend is None else {"bloat": trend.bloat, **asdict(trend)}


def _fitting(newest_first: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """As many of the newest as fit, the newest last."""
    left = MAX_CHARACTERS
    for number, record in enumerate(newest_first):
        left -= len(json.dumps(record, ensure_ascii=False, default=str))
        if left < 0 and number:
            return newest_first[:number][::-1]
    return newest_first[::-1]


def finding_view(row: sa.Row[Any]) -> dict[str, Any]:
    """A finding as it was recorded; claims and verdicts also say whether they were processed."""
    about = {"id": row.id, "category": row.category, "author": row.author}
    processed = {} if row.waits is None else {"processed": row.processed_ms is not None}
    return {**about, **row.payload, **processed, "created_ms": row.created_ms}
