"""Keeps findings. Nobody can change or remove one: the database itself refuses."""

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from rookery.core.actor import Actor
from rookery.core.ids import new_id
from rookery.db.tx import Tx
from rookery.domains.tracker.store import author, now_ms
from rookery.domains.tracker.tables import findings


class Findings:
    """What was found while working on an issue."""

    def __init__(self, tx: Tx, actor: Actor) -> None:
        self.tx = tx
        self.actor = actor

    def add(self, issue: sa.Row[Any], category: str, summary: str, details: str | None, files: Sequence[str]) -> str:
        """Record a finding and return its id."""
        finding = new_id("fnd")
        self.tx.run(
            sa.insert(findings).values(
                id=finding,
                tenant=issue.tenant,
                issue_id=issue.id,
                run_id=self.actor.run,
                category=category,
                author=author(self.actor),
                subject=self.actor.subject,
                payload={"summary": summary, "details": details, "files": list(files)},
                created_ms=now_ms(),
            )
        )
        return finding
