"""Schedules and executions as a caller may see and change them: an agent its own, people all of their tenant."""

from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from rookery.asks.answering import Decision
from rookery.core.actor import Actor
from rookery.core.errors import Conflict, NotFound, PermissionDenied
from rookery.core.ids import new_id
from rookery.db.clock import now_ms
from rookery.db.tx import Tx
from rookery.domains.schedules.asking import take_back
from rookery.domains.schedules.cron import next_due
from rookery.domains.schedules.deciding import decided_here
from rookery.domains.schedules.planning import (
    execution_key,
    fire_key,
    halt,
    locked,
    plan,
    timing_of,
)
from rookery.domains.schedules.tables import ACTIVE, PAUSED, UNDER_WAY, executions, schedules
from rookery.identity.store import IdentityStore
from rookery.jobs.store import Jobs

HISTORY = 20
LISTED = 500
MOST_SCHEDULES = 100
"""So many may an agent make: with any number of them, five minutes between two due times would mean nothing."""
LEAST_PREFIX = 8
Row = sa.Row[Any]


class Schedules:
    """The schedules of a caller. Anybody else's are not found, as if they were not there."""

    def __init__(self, tx: Tx, actor: Actor) -> None:
        self.tx = tx
        self.actor = actor

    def _mine(self, table: sa.Table) -> list[sa.ColumnElement[bool]]:
        mine = [table.c.tenant == self.actor.tenant]
        return mine if self.actor.kind == "human" else [*mine, table.c.agent_id == (self.actor.agent or "")]

    def find(self, schedule_id: str) -> Row:
        """The schedule of that id."""
        row = self.tx.one(sa.select(schedules).where(*self._mine(schedules), schedules.c.id == schedule_id))
        if row is None:
            raise NotFound(f"there is no schedule {schedule_id}", hint="action list shows them")
        return row

    def page(self) -> Sequence[Row]:
        """The schedules that are due next first."""
        order = (schedules.c.next_due_ms.is_(None), schedules.c.next_due_ms, schedules.c.id)
        return self.tx.all(sa.select(schedules).where(*self._mine(schedules)).order_by(*order).limit(LISTED))

    def create(self, values: Mapping[str, Any]) -> Row:
        """A schedule that is active from now on."""
        self._check_room()
        now = now_ms(self.tx)
        made = self.tx.one(
            sa.insert(schedules)
            .values(
                id=new_id("sch"),
                tenant=self.actor.tenant,
                status=ACTIVE,
                reason=None,
                execution_count=0,
                failures=0,
                version=1,
                last_due_ms=None,
                next_due_ms=None,
                created_by=self.actor.subject,
                created_ms=now,
                updated_ms=now,
                **values,
            )
            .returning(schedules)
        )
        assert made is not None
        plan(self.tx, made, next_due(timing_of(made), now))
        return self.find(made.id)

    def _check_room(self) -> None:
        if self.actor.kind == "human":
            return
        count = sa.select(sa.func.count()).select_from(schedules).where(*self._mine(schedules))
        if self.tx.scalar(count) >= MOST_SCHEDULES:
            raise Conflict(f"you have {MOST_SCHEDULES} schedules already", hint="delete or update one of them")

    def update(self, schedule_id: str, values: Mapping[str, Any]) -> Row:
        """Change these values; an active schedule is planned anew."""
        row = self._void(schedule_id)
        changed = self._set(row, **values)
        if changed.status == ACTIVE:
            same = timing_of(changed) == timing_of(row)
            plan(self.tx, changed, row.next_due_ms if same else next_due(timing_of(changed), now_ms(self.tx)))
        return self.find(schedule_id)

    def steered(self, schedule_id: str) -> Row:
        """The same, for who may say what it does and whether it runs: of what a person made, only people."""
        row = self.find(schedule_id)
        if self.actor.kind != "human" and row.created_by != row.agent_id:
            raise PermissionDenied(
                "a person made this schedule, so only people change it", hint="pause stops it", layer="principal"
            )
        return row

    def pause(self, schedule_id: str) -> Row:
        """Make it due no more until it is resumed. What runs goes on."""
        row = self._void(schedule_id)
        if row.status != ACTIVE:
            raise Conflict(f"the schedule is {row.status}", hint="only an active one can be paused")
        halt(self.tx, row, PAUSED, "paused by hand")
        return self.find(schedule_id)

    def resume(self, schedule_id: str) -> Row:
        """Make it due again, from now on: what was due meanwhile is not made up for."""
        row = self._void(schedule_id)
        if row.status == ACTIVE:
            raise Conflict("the schedule is active already", hint="nothing to do")
        if row.max_executions is not None and row.execution_count >= row.max_executions:
            raise Conflict(
                f"the schedule has run {row.execution_count} times, as often as it may",
                hint="update it with a higher max_executions first",
            )
        resumed = self._set(row, status=ACTIVE, reason=None, failures=0)
        plan(self.tx, resumed, next_due(timing_of(resumed), now_ms(self.tx)))
        return self.find(schedule_id)

    def delete(self, schedule_id: str) -> None:
        """Remove it with its history. What runs is stopped."""
        self.find(schedule_id)
        open_ones = sa.select(executions.c.id).where(
            executions.c.schedule_id == schedule_id, executions.c.status.in_(UNDER_WAY)
        )
        jobs = Jobs(self.tx, self.actor.tenant)
        for row in self.tx.all(open_ones):
            jobs.cancel_key(execution_key(row.id), "its schedule was deleted")
            take_back(self.tx, self.actor.tenant, row.id)
        self._void(schedule_id)
        self.tx.run(sa.delete(executions).where(executions.c.schedule_id == schedule_id))
        self.tx.run(sa.delete(schedules).where(schedules.c.id == schedule_id))

    def _void(self, schedule_id: str) -> Row:
        """The schedule, held until the end, without the job that would fire it next."""
        row = self.find(schedule_id)
        jobs = Jobs(self.tx, row.tenant)
        waiting = jobs.by_key(fire_key(row.id, row.version, row.next_due_ms)) if row.next_due_ms is not None else None
        # Before the schedule is held: a worker that is just firing holds the job and waits for the schedule. What
        # runs already finds another version and does nothing.
        if waiting is not None and waiting.state == "waiting":
            jobs.cancel(waiting.id, "planned anew")
        held = locked(self.tx, row.tenant, schedule_id)
        if held is None:
            raise NotFound(f"there is no schedule {schedule_id}", hint="action list shows them")
        return held

    def _set(self, row: Row, **values: Any) -> Row:
        changed = self.tx.one(
            sa.update(schedules)
            .where(schedules.c.id == row.id)
            .values(version=schedules.c.version + 1, updated_ms=now_ms(self.tx), **values)
            .returning(schedules)
        )
        assert changed is not None
        return changed

    def history(self, schedule_id: str | None, limit: int = HISTORY) -> Sequence[Row]:
        """The newest executions of a schedule, or of all."""
        wanted = sa.select(executions).where(*self._mine(executions))
        if schedule_id is not None:
            wanted = wanted.where(executions.c.schedule_id == self.find(schedule_id).id)
        return self.tx.all(wanted.order_by(executions.c.due_ms.desc(), executions.c.id).limit(limit))

    def awaiting(self) -> Sequence[Row]:
        """The executions that wait for the owner, the oldest first."""
        wanted = sa.select(executions).where(*self._mine(executions), executions.c.status == "awaiting_approval")
        return self.tx.all(wanted.order_by(executions.c.due_ms, executions.c.id).limit(LISTED))

    def execution(self, execution_id: str) -> Row:
        """The execution of that id; its first eight characters are enough if no other has them."""
        column = executions.c.id
        whole = [column == execution_id]
        if LEAST_PREFIX <= len(execution_id) < 32 and execution_id.isalnum():
            whole = [column.startswith(execution_id)]
        rows = self.tx.all(sa.select(executions).where(*self._mine(executions), *whole).limit(2))
        if not rows:
            raise NotFound(f"there is no execution {execution_id}", hint="action history shows them")
        if len(rows) > 1:
            raise Conflict(f"more than one execution begins with {execution_id}", hint="give more of its id")
        return rows[0]

    def named_executions(self, ids: Sequence[str]) -> Sequence[Row]:
        """Of each of these executions that is there: its id, and the id and the name of its schedule."""
        wanted = sa.select(executions.c.id, executions.c.schedule_id, schedules.c.name)
        joined = wanted.join(schedules, schedules.c.id == executions.c.schedule_id)
        return self.tx.all(joined.where(*self._mine(executions), executions.c.id.in_(ids)))

    def decide(self, execution_id: str, *, approved: bool) -> tuple[Row, bool]:
        """Say yes or no to an execution that waits, and whether that answered an ask. The first answer counts."""
        found = self.execution(execution_id)
        if found.status != "awaiting_approval":
            raise Conflict(f"execution {found.id[:8]} is {found.status}", hint="only what awaits approval is decided")
        person = IdentityStore(self.tx, self.actor.tenant).person(self.actor.subject).name
        decision = Decision("yes" if approved else "no")
        return decided_here(self.tx, found, decision, self.actor.subject, person, self.actor.source)
