"""Reads and changes issues. What the actor may not see is NotFound, in one sentence whatever the reason."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from rookery.core.actor import Actor
from rookery.core.errors import Conflict, NotFound
from rookery.core.ids import new_id
from rookery.db.clock import DbNow
from rookery.db.tx import Tx
from rookery.domains.tracker.project_store import Projects
from rookery.domains.tracker.tables import comments, issue_changes, issue_deps, issue_labels
from rookery.identity.store import begin_change
from rookery.identity.tables import tenants
from rookery.lifecycle.issue_ref import find_issue
from rookery.lifecycle.issue_tables import WAKE, issues
from rookery.lifecycle.states import FINISHED, ISSUE, Who

# Built once: to build them costs more than to run them.
_ADD_ISSUE = sa.insert(issues).returning(*issues.c)
_ADD_LABELS = sa.insert(issue_labels)
_ADD_DEPENDENCIES = sa.insert(issue_deps)
# By the clock that all share: what happened before and after a change is compared with it.
_ADD_COMMENT = sa.insert(comments).values(created_ms=DbNow()).returning(*comments.c)
_ADD_CHANGE = sa.insert(issue_changes).values(at_ms=DbNow())
_OWN = sa.select(issues).where(issues.c.tenant == sa.bindparam("of_tenant"), issues.c.id == sa.bindparam("wanted"))
_OWN_LOCKED = _OWN.with_for_update()
_LABELS = (
    sa.select(issue_labels)
    .where(issue_labels.c.issue_id.in_(sa.bindparam("ids", expanding=True)))
    .order_by(issue_labels.c.label)
)
_TOUCH = sa.update(issues).where(issues.c.id == sa.bindparam("wanted")).values(updated_ms=sa.bindparam("at"))

NO_LEASE: dict[str, None] = dict.fromkeys(("lease_subject", "lease_session", "lease_name", "lease_until_ms"))


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def author(actor: Actor) -> str:
    """How the actor signs: as its profile, else by its name."""
    return actor.profile or actor.agent_name or ("owner" if actor.kind == "human" else actor.subject)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewIssue:
    """An issue to be made. Dependencies are ids or identifiers."""

    title: str
    status: str
    phase: str
    description: str = ""
    priority: int = 3
    size: str | None = None
    labels: Sequence[str] = ()
    depends_on: Sequence[str] = ()
    parent_id: str | None = None


class Issues:
    """The issues of the actor's tenant."""

    def __init__(self, tx: Tx, actor: Actor) -> None:
        self.tx = tx
        self.actor = actor

    def find(self, text: str) -> sa.Row[Any]:
        """The issue with this id or identifier, in any project in which the actor has a role."""
        row = find_issue(self.tx, self.actor.tenant, text)
        if row is None or row.project_id in self.actor.closed:
            raise NotFound(f"there is no issue {text}", hint="list_issues shows those of this project")
        return row

    def ours(self, text: str, *, lock: bool = False) -> sa.Row[Any]:
        """The same, in the bound project only; with `lock`, nobody else changes it until the end of the transaction."""
        row = self.find(text)
        if lock:
            row = self.tx.one(_OWN_LOCKED, {"of_tenant": row.tenant, "wanted": row.id}) or row
        if row.project_id != self.actor.project:
            raise NotFound(f"there is no issue {text} in this project", hint="list_issues shows those of this project")
        return row

    def bound(self, *, lock: bool = False) -> sa.Row[Any]:
        """The issue that this session acts on; with `lock`, nobody else changes it until the end of the transaction."""
        bound = {"of_tenant": self.actor.tenant, "wanted": self.actor.issue}
        row = self.tx.one(_OWN_LOCKED if lock else _OWN, bound)
        if row is None or row.project_id in self.actor.closed:
            raise NotFound("the bound issue is not there", hint="start with the --issue-id of one that is")
        if row.project_id != self.actor.project:
            raise NotFound(
                f"the bound issue was moved to another project and is {row.identifier} there",
                hint=f"start a session with --issue-id {row.identifier}",
            )
        return row

    def held(self, fence: int | None = None) -> sa.Row[Any]:
        """The same for a change of it: nobody else may hold a lease, and a number given must be the newest lease's.

        On PostgreSQL the row stays locked until the end of the transaction, so that no lease changes hands meanwhile.
        """
        issue = self.bound(lock=True)
        if fence is not None and fence != issue.fence:
            raise Conflict(
                f"{issue.identifier} was claimed again since: its number is {issue.fence}, not {fence}",
                hint="stop working on it, or claim_issue again",
            )
        # A lease that has run out still tells who worked last: whoever goes on without it claims the issue first.
        if issue.lease_subject is None or self.actor.kind == "human" or self._is_holder(issue, fence):
            return issue
        raise Conflict(
            f"{issue.identifier} is claimed by {issue.lease_name}",
            hint="claim_issue takes it once it is free; if it is yours, give the number of your claim as fence",
        )

    def _is_holder(self, issue: sa.Row[Any], fence: int | None) -> bool:
        same_session = issue.lease_session == self.actor.session and not self.actor.shared_session
        return issue.lease_subject == self.actor.subject and (same_session or fence is not None)

    def create(self, new: NewIssue) -> sa.Row[Any]:
        """Add an issue to the bound project."""
        identifier, number = Projects(self.tx, self.actor).next_identifier()
        needed = [self.find(text).id for text in new.depends_on]
        at = now_ms()
        values = {
            "id": new_id("iss"),
            "tenant": self.actor.tenant,
            "project_id": self.actor.project,
            "identifier": identifier,
            "number": number,
            "parent_id": new.parent_id,
            "title": new.title,
            "description": new.description,
            "status": new.status,
            "phase": new.phase,
            "priority": new.priority,
            "size": new.size,
            "rejections": 0,
            "created_by": self.actor.subject,
            "author": author(self.actor),
            "created_ms": at,
            "updated_ms": at,
            "fence": 0,
            "run_id": self.actor.run,
        }
        row = self.tx.one(_ADD_ISSUE, values)
        assert row is not None
        self._put_labels(row, sorted(set(new.labels)))
        self.add_dependencies(row, needed)
        self.tx.wake(WAKE)
        return row

    def move(
        self, issue: sa.Row[Any], to: str, who: Who, *, why: str | None = None, blocked_on: str | None = None
    ) -> sa.Row[Any]:
        """Change the status, as the state machine allows it to `who`; of two who try at once one is refused.

        Leaving in_progress ends the lease. The last subtask that finishes unblocks its parent.
        """
        ISSUE.check(issue.status, to, who)
        values: dict[str, Any] = {"status": to, "updated_ms": now_ms()}
        values["blocked_on"] = (blocked_on or "person") if to == "blocked" else None
        values |= NO_LEASE if issue.status == "in_progress" else {}
        same = (issues.c.id == issue.id, issues.c.status == issue.status)
        row = self.tx.one(sa.update(issues).where(*same).values(**values).returning(*issues.c))
        if row is None:
            raise Conflict(f"{issue.identifier} has just been changed by another", hint="get_issue_status, then again")
        self.note(issue, "status", issue.status, to, why)
        if to in FINISHED and issue.parent_id is not None:
            self._unblock(issue.parent_id, f"{issue.identifier} was its last open subtask")
        if issue.lease_subject is not None and row.lease_subject is None:
            # Last, after every row is locked: the session that held it is bound to it no longer.
            begin_change(self.tx)
        return row

    def _unblock(self, parent_id: str, why: str) -> None:
        # The parent's row is locked first: two last subtasks that finish at once must not each see the other open.
        locked = self.tx.one(sa.select(issues).where(issues.c.id == parent_id).with_for_update())
        if locked is None or locked.status != "blocked" or locked.blocked_on != "subtasks":
            return
        still_open = sa.select(issues.c.id).where(issues.c.parent_id == parent_id, issues.c.status.not_in(FINISHED))
        if self.tx.one(still_open.limit(1)) is None:
            self.move(locked, "todo", "orchestrator", why=why)

    def change(self, issue: sa.Row[Any], *, why: str | None = None, **values: Any) -> sa.Row[Any]:
        """Set fields that have no machine, and note each that is new."""
        new = {name: value for name, value in values.items() if getattr(issue, name) != value}
        for name, value in new.items():
            self.note(issue, name, getattr(issue, name), value, why)
        statement = sa.update(issues).where(issues.c.id == issue.id).values(**new, updated_ms=now_ms())
        row = self.tx.one(statement.returning(*issues.c))
        assert row is not None
        return row

    def touch(self, issue: sa.Row[Any]) -> None:
        """Something about the issue is new, though none of its own fields."""
        self.tx.run(_TOUCH, [{"wanted": issue.id, "at": now_ms()}])

    def comment(self, issue: sa.Row[Any], content: str, by: str | None = None) -> sa.Row[Any]:
        """Add a comment, signed by the actor unless said otherwise."""
        values = {
            "id": new_id("cmt"),
            "tenant": issue.tenant,
            "issue_id": issue.id,
            "author": by or author(self.actor),
            "subject": self.actor.subject,
            "content": content,
        }
        row = self.tx.one(_ADD_COMMENT, values)
        assert row is not None
        return row

    def note(self, issue: sa.Row[Any], name: str, old: Any, new: Any, why: str | None = None) -> None:
        """Add a line to the history of the issue's fields."""
        values = {"field": name, "old": old, "new": new, "why": why, "subject": self.actor.subject}
        told = {"tenant": issue.tenant, "issue_id": issue.id, "author": author(self.actor)}
        self.tx.run(_ADD_CHANGE, [{**values, **told}])
        self.tx.wake(WAKE)

    def labels(self, found: Sequence[sa.Row[Any]]) -> dict[str, list[str]]:
        """The labels by issue id: the phase first, the others sorted."""
        stored = self.tx.all(_LABELS, {"ids": [row.id for row in found]})
        labels = {row.id: [f"phase:{row.phase}"] for row in found}
        for row in stored:
            labels[row.issue_id].append(row.label)
        return labels

    def add_labels(self, issue: sa.Row[Any], labels: Sequence[str]) -> None:
        """Add those that it lacks. The phase is no label here: it has a column, so there is always exactly one."""
        if not labels:
            return
        known = {row.label for row in self.tx.all(_LABELS, {"ids": [issue.id]})}
        self._put_labels(issue, [label for label in dict.fromkeys(labels) if label not in known])

    def _put_labels(self, issue: sa.Row[Any], labels: Sequence[str]) -> None:
        if labels:
            rows = [{"issue_id": issue.id, "label": label, "project_id": issue.project_id} for label in labels]
            self.tx.run(_ADD_LABELS, rows)

    def add_dependencies(self, issue: sa.Row[Any], needed: Sequence[str]) -> None:
        """Let the issue wait for others, by their ids."""
        rows = [{"issue_id": issue.id, "depends_on": other} for other in dict.fromkeys(needed)]
        if rows:
            self.tx.run(_ADD_DEPENDENCIES, rows)

    def would_wait(self, needed: Sequence[str], issue_id: str) -> bool:
        """Whether any of `needed` waits for the issue, itself or through others.

        Two edits at once could each close half a circle, so they take turns within a tenant.
        """
        self.tx.one(sa.select(tenants.c.id).where(tenants.c.id == self.actor.tenant).with_for_update())
        # A parent waits for its subtasks as well.
        waits = sa.union_all(
            sa.select(issue_deps.c.issue_id.label("waiting"), issue_deps.c.depends_on.label("awaited")),
            sa.select(issues.c.parent_id, issues.c.id).where(issues.c.parent_id.is_not(None)),
        ).subquery()
        reached = sa.select(issues.c.id).where(issues.c.id.in_(needed)).cte("reached", recursive=True)
        reached = reached.union(sa.select(waits.c.awaited).join(reached, waits.c.waiting == reached.c.id))
        return self.tx.one(sa.select(reached.c.id).where(reached.c.id == issue_id)) is not None
