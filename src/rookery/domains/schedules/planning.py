"""What happens when a schedule is due, in one transaction: an execution begins or is skipped, the next is planned.

A due time has one execution at most, however many servers there are and however often a worker dies on the way: the
job that fires is deferred under a key that lasts, and the row has a unique key of its own.
"""

import uuid
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from rookery.core.errors import Conflict, NotFound, RookeryError
from rookery.db.clock import now_ms
from rookery.db.tx import Tx
from rookery.domains.schedules.action import needs_approval, stored_actions
from rookery.domains.schedules.ask_card import shown_whole
from rookery.domains.schedules.asking import ask_for
from rookery.domains.schedules.cron import MINUTE_MS, Timing, latest_due, next_due
from rookery.domains.schedules.tables import ACTIVE, COMPLETED, PAUSED, UNDER_WAY, executions, schedules
from rookery.jobs.kinds import JobArgs
from rookery.jobs.store import Jobs

FIRE, EXECUTE = "schedules.fire", "schedules.execute"
LATE_MS = MINUTE_MS
"""What is due for longer was missed."""
FIRE_ATTEMPTS, EXECUTE_ATTEMPTS = 5, 3
KEPT = 1_000
"""So many executions of a schedule are kept, and those that have not ended."""
Row = sa.Row[Any]
_LOCKED = (
    sa.select(schedules)
    .where(schedules.c.tenant == sa.bindparam("of_tenant"), schedules.c.id == sa.bindparam("schedule_id"))
    .with_for_update()
)
_PLAN = (
    sa.update(schedules)
    .where(schedules.c.id == sa.bindparam("schedule_id"))
    .values(next_due_ms=sa.bindparam("due", type_=sa.BigInteger))
)
_UNDER_WAY = (
    sa.select(executions.c.id, executions.c.status)
    .where(executions.c.schedule_id == sa.bindparam("schedule_id"), executions.c.status.in_(UNDER_WAY))
    .limit(1)
)
_INSERT = {
    name: dialect.insert(executions).on_conflict_do_nothing().returning(executions)
    for name, dialect in (("sqlite", sqlite), ("postgresql", postgresql))
}
_FIRED = (
    sa.update(schedules)
    .where(schedules.c.id == sa.bindparam("schedule_id"))
    .values(
        execution_count=schedules.c.execution_count + sa.bindparam("more", type_=sa.BigInteger),
        last_due_ms=sa.bindparam("due", type_=sa.BigInteger),
    )
    .returning(schedules)
)


_OLD = executions.alias()
_FORGET = sa.delete(executions).where(
    executions.c.schedule_id == sa.bindparam("of_schedule"),
    executions.c.status.not_in(UNDER_WAY),
    executions.c.due_ms
    <= sa.select(_OLD.c.due_ms)
    .where(_OLD.c.schedule_id == sa.bindparam("of_schedule"))
    .order_by(_OLD.c.due_ms.desc())
    .limit(1)
    .offset(sa.bindparam("kept", type_=sa.BigInteger))
    .scalar_subquery(),
)


class FireArgs(JobArgs):
    """Which due time, of which version of the schedule."""

    schedule_id: str
    version: int
    due_ms: int


class ExecuteArgs(JobArgs):
    execution_id: str
    schedule_id: str


def timing_of(row: Row) -> Timing:
    """When the schedule of this row is due."""
    return Timing(row.cron, row.interval_ms, row.timezone, row.anchor_ms)


def locked(tx: Tx, tenant: str, schedule_id: str) -> Row | None:
    """The schedule as it is now; nobody else changes it until the transaction ends."""
    return tx.one(_LOCKED, {"of_tenant": tenant, "schedule_id": schedule_id})


def fire_key(schedule_id: str, version: int, due_ms: int) -> str:
    return f"schedule:{schedule_id}:{version}:{due_ms}"


def plan(tx: Tx, schedule: Row, due_ms: int | None) -> None:
    """Let the schedule be due next at this time, or at none. What was planned before is void."""
    tx.run(_PLAN, [{"schedule_id": schedule.id, "due": due_ms}])
    if due_ms is not None:
        Jobs(tx, schedule.tenant).defer(
            FIRE,
            FireArgs(schedule_id=schedule.id, version=schedule.version, due_ms=due_ms),
            at_ms=due_ms,
            key=fire_key(schedule.id, schedule.version, due_ms),
            attempts=FIRE_ATTEMPTS,
            backoff_s=1.0,
        )


def begin_execution(tx: Tx, execution: Row) -> None:
    """Let a worker do what the execution is for, after other executions of the same schedule."""
    Jobs(tx, execution.tenant).defer(
        EXECUTE,
        ExecuteArgs(execution_id=execution.id, schedule_id=execution.schedule_id),
        key=execution_key(execution.id),
        lock=f"schedule:{execution.schedule_id}",
        attempts=EXECUTE_ATTEMPTS,
    )


def execution_key(execution_id: str) -> str:
    return f"execution:{execution_id}"


def halt(tx: Tx, schedule: Row, status: str, reason: str | None) -> None:
    """Make the schedule due no more; what was planned is void."""
    tx.run(
        sa.update(schedules)
        .where(schedules.c.id == schedule.id)
        .values(status=status, reason=reason, next_due_ms=None, version=schedules.c.version + 1, updated_ms=now_ms(tx))
    )


def fire(tx: Tx, tenant: str, args: FireArgs) -> Row | None:
    """A due time has come: the execution that it led to, None if it led to none because it is no longer planned."""
    schedule = locked(tx, tenant, args.schedule_id)
    if schedule is None or schedule.status != ACTIVE:
        return None
    if (schedule.version, schedule.next_due_ms) != (args.version, args.due_ms):
        return None
    now = now_ms(tx)
    timing = timing_of(schedule)
    due = args.due_ms if now - args.due_ms <= LATE_MS else latest_due(timing, args.due_ms, now)
    execution = _execute_or_skip(tx, schedule, due, now)
    tx.run(_FORGET, [{"of_schedule": schedule.id, "kept": KEPT}])
    counted = execution is not None and execution.status != "skipped"
    fired = tx.one(_FIRED, {"schedule_id": schedule.id, "more": int(counted), "due": due})
    assert fired is not None
    if fired.max_executions is not None and fired.execution_count >= fired.max_executions:
        halt(tx, fired, COMPLETED, f"it has run {fired.execution_count} times")
        return execution
    following = next_due(timing, max(now, due))
    if following is None:
        halt(tx, fired, COMPLETED, "it is due no more")
    else:
        plan(tx, fired, following)
    return execution


def _execute_or_skip(tx: Tx, schedule: Row, due: int, now: int) -> Row | None:
    if now - due > LATE_MS and schedule.missed == "skip":
        return add_execution(tx, schedule, due, "skipped", f"missed by {(now - due) // MINUTE_MS} min")
    other = tx.one(_UNDER_WAY, {"schedule_id": schedule.id})
    if other is not None:
        return add_execution(tx, schedule, due, "skipped", f"execution {other.id[:8]} was still {other.status}")
    if needs_approval(schedule.approval_policy, stored_actions(schedule.actions)):
        waits = add_execution(tx, schedule, due, "awaiting_approval", None)
        if waits is not None:
            ask_for(tx, waits)
        return waits
    execution = add_execution(tx, schedule, due, "running", None)
    if execution is not None:
        begin_execution(tx, execution)
    return execution


def add_execution(tx: Tx, schedule: Row, due: int, status: str, result: str | None) -> Row | None:
    """The execution of a due time, with the schedule as it is now; None if the due time has one already."""
    now = now_ms(tx)
    values = {
        "id": uuid.uuid4().hex,
        "tenant": schedule.tenant,
        "schedule_id": schedule.id,
        "agent_id": schedule.agent_id,
        "due_ms": due,
        "status": status,
        "result": result,
        "steps": [{"type": action["type"], "status": "pending"} for action in schedule.actions],
        "config_snapshot": {
            "name": schedule.name,
            "description": schedule.description,
            "number": schedule.execution_count + 1,
            "version": schedule.version,
            "agent_id": schedule.agent_id,
            "actions": schedule.actions,
            "requester": schedule.requester,
            "approval_policy": schedule.approval_policy,
            "max_executions": schedule.max_executions,
            "max_budget_micros": schedule.max_budget_micros,
            "notify_address": schedule.notify_address,
            # Of what was asked for otherwise, as before an update of the program, nobody knows.
            "shown_whole": shown_whole(schedule.actions) if status == "awaiting_approval" else [],
        },
        "cost_micros": 0,
        "decided_by": None,
        "created_ms": now,
        "started_ms": None,
        "completed_ms": now if status in ("skipped", "failed") else None,
    }
    return tx.one(_INSERT[tx.dialect].values(values))


def run_now(tx: Tx, tenant: str, schedule_id: str) -> Row:
    """Execute a schedule besides its due times, also one that is paused. It counts like any other execution."""
    schedule = locked(tx, tenant, schedule_id)
    if schedule is None:
        raise NotFound(f"there is no schedule {schedule_id}", hint="it may have just been deleted")
    if schedule.max_executions is not None and schedule.execution_count >= schedule.max_executions:
        raise Conflict(
            f"the schedule has run {schedule.execution_count} times, as often as it may",
            hint="update it with a higher max_executions first",
        )
    if (other := tx.one(_UNDER_WAY, {"schedule_id": schedule.id})) is not None:
        raise Conflict(f"execution {other.id[:8]} is still {other.status}", hint="wait until it has ended")
    now = now_ms(tx)
    execution = _execute_or_skip(tx, schedule, now, now)
    if execution is None:
        raise Conflict("the schedule was due at this very moment", hint="its history shows the execution")
    fired = tx.one(_FIRED, {"schedule_id": schedule.id, "more": 1, "due": now})
    assert fired is not None
    if fired.max_executions is not None and fired.execution_count >= fired.max_executions:
        halt(tx, fired, COMPLETED, f"it has run {fired.execution_count} times")
    return execution


def not_fired(tx: Tx, tenant: str, args: FireArgs, status: str, why: str) -> None:
    """Firing itself failed for good, or somebody cancelled it: the due time is recorded and the next is planned."""
    schedule = locked(tx, tenant, args.schedule_id)
    if schedule is None or schedule.status != ACTIVE or schedule.version != args.version:
        return
    add_execution(tx, schedule, args.due_ms, status, why[:2000])
    try:
        following = next_due(timing_of(schedule), max(now_ms(tx), args.due_ms))
    except RookeryError as broken:
        # Such as a time zone that the machine does not know any more.
        halt(tx, schedule, PAUSED, broken.message)
        return
    if following is None:
        halt(tx, schedule, COMPLETED, "it is due no more")
    else:
        plan(tx, schedule, following)
