"""Keeps work tasks. Every change of a task is one guarded statement; none revives one that has ended."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from rookery.core.actor import Actor
from rookery.core.errors import NotFound
from rookery.core.ids import new_id
from rookery.db.clock import now_ms
from rookery.db.tx import Tx
from rookery.domains.work.daily_limit import count_one
from rookery.domains.work.naming import branch_name
from rookery.domains.work.states import OPEN, TASK, Status
from rookery.domains.work.tables import work_tasks
from rookery.repute.events import EventType, ReputationEvent, add_events

Row = sa.Row[Any]
KEPT_CHARACTERS = 2000
SUMMARY_CHARACTERS = 500
COMPLETED_POINTS, FAILED_POINTS, NO_POINTS = 5, -2, 0
IMPROVEMENT = "improvement:"
"""How a `source_id` begins that an improvement loop gave. It only tells the event apart; no score depends on it."""
_ONE = (work_tasks.c.tenant == sa.bindparam("of_tenant"), work_tasks.c.id == sa.bindparam("the_id"))
_OF = sa.select(work_tasks).where(*_ONE)
_BY_SOURCE = sa.select(work_tasks).where(
    work_tasks.c.tenant == sa.bindparam("of_tenant"),
    work_tasks.c.agent_id == sa.bindparam("of_agent"),
    work_tasks.c.source_id == sa.bindparam("wanted"),
)
_INSERT = {
    name: dialect.insert(work_tasks).on_conflict_do_nothing().returning(*work_tasks.c)
    for name, dialect in (("sqlite", sqlite), ("postgresql", postgresql))
}


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTask:
    """What is known of a task when somebody asks for it. `source_id` is the asker's own key."""

    agent_id: str
    agent_name: str
    project_id: str
    description: str
    source: str
    source_id: str | None = None
    requester: dict[str, Any]


class WorkTasks:
    """The tasks of one tenant; with an `actor`, only those that it may see."""

    def __init__(self, tx: Tx, tenant: str, actor: Actor | None = None) -> None:
        self.tx = tx
        self.tenant = tenant
        self.actor = actor

    def create(self, new: NewTask, limit: int) -> tuple[Row, bool]:
        """A task that waits for its turn, and whether it is new: with a `source_id` that the agent has used before, it
        is the task of then. A new one counts against the agent's daily `limit`."""
        at = now_ms(self.tx)
        values = {
            "id": new_id("wtk"),
            "tenant": self.tenant,
            "agent_id": new.agent_id,
            "project_id": new.project_id,
            "source": new.source,
            "source_id": new.source_id,
            "requester": new.requester,
            "description": new.description,
            "branch_name": branch_name(new.agent_name, new.description, at, secrets.token_hex(3)),
            "status": "pending",
            "iteration": 0,
            "pr_asked": False,
            "cost_micros": 0,
            "created_ms": at,
            "updated_ms": at,
        }
        made = self.tx.one(_INSERT[self.tx.dialect].values(**values))
        if made is None:
            mine = {"of_tenant": self.tenant, "of_agent": new.agent_id, "wanted": new.source_id}
            first = self.tx.one(_BY_SOURCE, mine)
            assert first is not None
            return first, False
        # After the insert: whoever is refused leaves nothing, and one key counts once however many ask at the moment.
        count_one(self.tx, self.tenant, new.agent_id, at, limit)
        return made, True

    def find(self, task_id: str) -> Row | None:
        """The task, or None."""
        row = self.tx.one(_OF, {"of_tenant": self.tenant, "the_id": task_id})
        return row if row is not None and self._visible(row) else None

    def of(self, task_id: str) -> Row:
        """The task, or NotFound: also for one that the actor may not see."""
        row = self.find(task_id)
        if row is None:
            raise NotFound(f"there is no work task {task_id}", hint="list_work_tasks shows yours")
        return row

    def newest(self, limit: int, status: str | None = None) -> Sequence[Row]:
        """Tasks, newest first."""
        wanted = sa.select(work_tasks).where(work_tasks.c.tenant == self.tenant)
        actor = self.actor
        if actor is not None and actor.kind != "human":
            wanted = wanted.where(work_tasks.c.agent_id == (actor.agent or ""))
        if actor is not None and actor.closed:
            wanted = wanted.where(work_tasks.c.project_id.not_in(sorted(actor.closed)))
        if status is not None:
            wanted = wanted.where(work_tasks.c.status == status)
        return self.tx.all(wanted.order_by(work_tasks.c.created_ms.desc(), work_tasks.c.id.desc()).limit(limit))

    def move(self, task: Row, to: Status, **values: Any) -> Row | None:
        """Bring the task from where it was seen to the next state; None if somebody else has moved it meanwhile."""
        TASK.check(task.status, to, "orchestrator")
        return self._change(task.id, [work_tasks.c.status == task.status], status=to, **values)

    def note(self, task: Row, **values: Any) -> Row | None:
        """Keep something about the task in the state in which it was seen; None if it has left that."""
        return self._change(task.id, [work_tasks.c.status == task.status], **values)

    def fail(self, task_id: str, error: str) -> Row | None:
        """End the task without success, whatever it was at; None if it has ended before."""
        return self._change(task_id, [work_tasks.c.status.in_(OPEN)], status="failed", error=kept(error))

    def forget_worktree(self, task_id: str) -> None:
        """Its working tree is gone."""
        self._change(task_id, [], worktree_dir=None)

    def _change(self, task_id: str, guards: Sequence[sa.ColumnElement[bool]], **values: Any) -> Row | None:
        at = now_ms(self.tx)
        ends = {"completed_ms": at} if values.get("status") in ("completed", "failed") else {}
        mine = (work_tasks.c.tenant == self.tenant, work_tasks.c.id == task_id)
        changed = sa.update(work_tasks).where(*mine, *guards).values(**values, **ends, updated_ms=at)
        row = self.tx.one(changed.returning(*work_tasks.c))
        if row is not None and ends:
            self._tell(row)
        return row

    def _tell(self, task: Row) -> None:
        """How a task ends counts for the reputation of the agent that did it, if somebody else gave it the task."""
        completed = task.status == "completed"
        points = COMPLETED_POINTS if completed else FAILED_POINTS
        weights: dict[EventType, int] = {
            "task_completed" if completed else "task_failed": points if _given(task) else NO_POINTS
        }
        if (task.source_id or "").startswith(IMPROVEMENT):
            weights["improvement_loop_completed" if completed else "improvement_loop_failed"] = points
        ended = [
            ReputationEvent(
                tenant=self.tenant,
                agent_id=task.agent_id,
                type=each,
                impact=impact,
                about={"task": task.id},
                key=f"{each}:{task.id}",
            )
            for each, impact in weights.items()
        ]
        add_events(self.tx, ended)

    def _visible(self, row: Row) -> bool:
        actor = self.actor
        if actor is None:
            return True
        return row.project_id not in actor.closed and (actor.kind == "human" or row.agent_id == actor.agent)


def _given(task: Row) -> bool:
    """Whether somebody else wanted the task: a person, another agent, or whoever had a session begun that is deeper
    than the first. What an agent gives itself says nothing of it, and it could give itself as much as it likes."""
    asked: dict[str, Any] = task.requester
    return asked.get("subject") != task.agent_id or asked.get("depth", 1) > 1


def kept(text: str, limit: int = KEPT_CHARACTERS) -> str:
    """The end of a text, which is where programs say what went wrong, as far as both databases can keep it."""
    return text.replace("\0", "").encode("utf-8", "replace").decode()[-limit:]
