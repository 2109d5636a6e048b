"""What people see of schedules, and the one thing that only they can do to them: run one now.

Not in a module where tools are looked for: no agent has them, and no session pays for their listing. They are called,
decided and recorded like any other.
"""

from collections import defaultdict
from itertools import islice
from typing import Any

import sqlalchemy as sa
from pydantic import Field

from rookery.core.context import Context
from rookery.core.errors import RookeryError
from rookery.core.tool import NoInput, ToolInput, ToolOutput, tool
from rookery.db.clock import now_ms
from rookery.db.tx import Tx
from rookery.domains.schedules.asking import ask_of
from rookery.domains.schedules.cron import Timing, check_timing, next_due, parse
from rookery.domains.schedules.cron_words import in_words
from rookery.domains.schedules.planning import run_now, timing_of
from rookery.domains.schedules.shown import awaiting_execution, moment, whole_execution, whole_schedule
from rookery.domains.schedules.store import Schedules
from rookery.domains.schedules.tables import MICROS, executions
from rookery.identity.store import IdentityStore

FIRES = 5
LAST = 8
HISTORY = 50
Row = sa.Row[Any]
Json = dict[str, Any]
_ranked = (
    sa.select(
        executions.c.schedule_id, executions.c.id, executions.c.status, executions.c.due_ms, executions.c.cost_micros,
        executions.c.result, executions.c.completed_ms,
        sa.func.row_number()
        .over(partition_by=executions.c.schedule_id, order_by=(executions.c.due_ms.desc(), executions.c.id))
        .label("place"),
    )
    .where(executions.c.schedule_id.in_(sa.bindparam("ids", expanding=True)))
    .subquery()
)  # fmt: skip
_LAST = sa.select(_ranked).where(_ranked.c.place <= LAST).order_by(_ranked.c.schedule_id, _ranked.c.place)


class OneSchedule(ToolInput):
    schedule_id: str = Field(max_length=100, description="Its id.")


class OneExecution(ToolInput):
    execution_id: str = Field(max_length=100, description="Its id.")


class PreviewSchedule(ToolInput):
    cron_expression: str | None = Field(None, max_length=600, description="5 fields.")
    interval_minutes: int | None = Field(None, description="Or this.")
    timezone: str = Field("UTC", max_length=100, description="IANA.")


class SchedulesOverview(ToolOutput):
    schedules: list[Json]
    awaiting: list[Json]


class ScheduleShown(ToolOutput):
    schedule: Json
    executions: list[Json]


class ExecutionShown(ToolOutput):
    execution: Json


class SchedulePreview(ToolOutput):
    words: str
    timezone: str
    fires: list[str]


@tool(
    title="Schedules overview", effect="read", action="schedule:read", tier="observe", group="System", profiles="",
    default=False, principals="people",
)  # fmt: skip
def schedules_overview(ctx: Context, args: NoInput) -> SchedulesOverview:
    """Show every schedule with its next due times and last results, and what awaits approval."""
    store = Schedules(ctx.tx, ctx.actor)
    rows, now, names = store.page(), now_ms(ctx.tx), _names(ctx)
    last = _last(ctx.tx, [row.id for row in rows])
    awaiting = [
        awaiting_execution(row) | {"id": row.id, "agent": names.get(row.agent_id, row.agent_id)}
        for row in store.awaiting()
    ]
    return SchedulesOverview(
        schedules=[_schedule(row, now, names) | {"last": last[row.id]} for row in rows], awaiting=awaiting
    )


@tool(
    title="Show schedule", effect="read", action="schedule:read", tier="observe", group="System", profiles="",
    default=False, principals="people",
)  # fmt: skip
def show_schedule(ctx: Context, args: OneSchedule) -> ScheduleShown:
    """Show a schedule with its next due times and its newest executions."""
    store = Schedules(ctx.tx, ctx.actor)
    row = store.find(args.schedule_id)
    found = [_execution(each, row.timezone) for each in store.history(row.id, HISTORY)]
    return ScheduleShown(schedule=_schedule(row, now_ms(ctx.tx), _names(ctx)), executions=found)


@tool(
    title="Show execution", effect="read", action="schedule:read", tier="observe", group="System", profiles="",
    default=False, principals="people",
)  # fmt: skip
def show_execution(ctx: Context, args: OneExecution) -> ExecutionShown:
    """Show one execution of a schedule, step by step."""
    row = Schedules(ctx.tx, ctx.actor).execution(args.execution_id)
    asked = ask_of(ctx.tx, row.tenant, row.id)
    names = _names(ctx)
    more = {"agent": names.get(row.agent_id, row.agent_id), "ask": None if asked is None else asked.id}
    return ExecutionShown(execution=whole_execution(row) | more)


@tool(
    title="Preview schedule", effect="read", action="schedule:read", tier="observe", group="System", profiles="",
    default=False, principals="people",
)  # fmt: skip
def preview_schedule(ctx: Context, args: PreviewSchedule) -> SchedulePreview:
    """Say in words when something would be due, and the next times."""
    now = now_ms(ctx.tx)
    timing = check_timing(args.cron_expression, args.interval_minutes, args.timezone, now)
    return SchedulePreview(words=_words(timing), timezone=timing.zone, fires=_fires(timing, now))


@tool(
    title="Run schedule now", effect="write", action="schedule:manage", tier="act", group="System", profiles="",
    default=False, principals="operators",
)  # fmt: skip
def run_schedule_now(ctx: Context, args: OneSchedule) -> ExecutionShown:
    """Execute a schedule now, besides its due times. Whoever has to agree to it is asked as always."""
    row = run_now(ctx.tx, ctx.actor.tenant, Schedules(ctx.tx, ctx.actor).find(args.schedule_id).id)
    ctx.publish("ScheduleChanged", subject=row.schedule_id, change="run", agent=row.agent_id)
    if (asked := ask_of(ctx.tx, row.tenant, row.id)) is not None:
        ctx.publish("AskOpened", subject=asked.id, kind=asked.kind, agent=asked.agent_id, question=asked.question)
    return ExecutionShown(execution=whole_execution(row))


def _names(ctx: Context) -> dict[str, str]:
    return {row.id: row.name for row in IdentityStore(ctx.tx, ctx.actor.tenant).agents()}


def _schedule(row: Row, now: int, names: dict[str, str]) -> Json:
    timing = timing_of(row)
    try:
        words, fires = _words(timing), _fires(timing, now) if row.next_due_ms is not None else []
    except RookeryError as broken:
        # Such as a time zone that the machine does not know any more.
        words, fires = broken.message, []
    agent = names.get(row.agent_id, row.agent_id)
    return whole_schedule(row) | {"agent": agent, "words": words, "fires": fires, "created_by": row.created_by}


def _words(timing: Timing) -> str:
    return in_words(timing.cron, timing.interval_ms)


def _fires(timing: Timing, now: int) -> list[str]:
    """The next due times, with the offset of the schedule's zone."""
    if timing.cron is not None:
        found = list(islice(parse(timing.cron, timing.zone).due_after(now), FIRES))
    else:
        first = next_due(timing, now)
        assert first is not None
        assert timing.interval_ms is not None
        found = [first + timing.interval_ms * place for place in range(FIRES)]
    return [moment(at, timing.zone) or "" for at in found]


def _last(tx: Tx, ids: list[str]) -> defaultdict[str, list[Json]]:
    found: defaultdict[str, list[Json]] = defaultdict(list)
    for row in tx.all(_LAST, {"ids": ids}) if ids else ():
        found[row.schedule_id].append(_execution(row, "UTC"))
    return found


def _execution(row: Row, zone: str) -> Json:
    return {
        "id": row.id,
        "status": row.status,
        "due": moment(row.due_ms, zone),
        "completed": moment(row.completed_ms, zone),
        "cost_usd": row.cost_micros / MICROS,
        "result": row.result,
    }
