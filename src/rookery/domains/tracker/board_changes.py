"""What has changed on a project's board since a moment, found by the numbers that changes and new issues have."""

from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from rookery.db.tx import Tx
from rookery.domains.tracker.tables import issue_changes, tracker_projects
from rookery.lifecycle.issue_tables import issues

MOST = 100
"""With more than so many changes at once the board is better read again."""


@dataclass(frozen=True, slots=True, order=True)
class Mark:
    """A moment in the life of a board: the last change of any issue, and the number that the next new one gets."""

    change: int
    number: int

    def __str__(self) -> str:
        return f"{self.change}.{self.number}"

    @classmethod
    def parse(cls, text: str) -> "Mark | None":
        """The mark that was written so, or None."""
        change, _, number = text.partition(".")
        known = all(part.isascii() and part.isdigit() and len(part) < 18 for part in (change, number))
        return cls(int(change), int(number)) if known else None


@dataclass(frozen=True, slots=True)
class Changes:
    """The ids of what has changed; None: too much. `seqs` are the changes that were looked at."""

    ids: frozenset[str] | None
    seqs: frozenset[int]
    mark: Mark


def mark_of(tx: Tx, project_id: str) -> Mark:
    """The present moment."""
    mine = tracker_projects.c.project_id == project_id
    last = sa.select(sa.func.max(issue_changes.c.seq)).scalar_subquery()
    number = sa.select(tracker_projects.c.next_number).where(mine).scalar_subquery()
    row = tx.one(sa.select(last.label("change"), number.label("number")))
    return Mark(row.change or 0, row.number or 1) if row is not None else Mark(0, 1)


def changes_since(tx: Tx, tenant: str, project_id: str, mark: Mark, known: frozenset[int] = frozenset()) -> Changes:
    """What has changed after `mark` except the changes in `known`. What was moved away counts as well."""
    now = mark_of(tx, project_id)
    c = issue_changes.c
    # Numbers of changes are not committed in their order on PostgreSQL, so those that were seen are told apart by
    # `known` and not by the largest alone.
    wanted = sa.select(c.seq, c.issue_id).join(issues, issues.c.id == c.issue_id)
    ours = (c.seq > mark.change, c.tenant == tenant, sa.or_(issues.c.project_id == project_id, c.field == "project"))
    changed = tx.all(wanted.where(*ours).order_by(c.seq).limit(2 * MOST))
    new: list[Any] = []
    if now.number > mark.number:
        numbered = (issues.c.project_id == project_id, issues.c.number >= mark.number)
        new = list(tx.all(sa.select(issues.c.id).where(*numbered).limit(MOST + 1)))
    ids = {row.issue_id for row in changed if row.seq not in known} | {row.id for row in new}
    too_many = len(changed) == 2 * MOST or len(ids) > MOST
    return Changes(None if too_many else frozenset(ids), frozenset(row.seq for row in changed), now)
