"""The tool with which agents and people keep schedules. docs/schedules.md explains it: a listing is dear."""

import math
from collections.abc import Callable
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, WithJsonSchema

from rookery.core.context import Context
from rookery.core.errors import InvalidParams, PermissionDenied, ValidationFailed
from rookery.core.tool import ToolInput, ToolOutput, tool
from rookery.db.clock import now_ms
from rookery.domains.schedules.action import Policy, read_actions
from rookery.domains.schedules.allowed import checked_actions
from rookery.domains.schedules.asking import ask_of
from rookery.domains.schedules.cron import MINUTE_MS, check_timing
from rookery.domains.schedules.shown import (
    awaiting_execution,
    short_execution,
    short_schedule,
    whole_execution,
    whole_schedule,
)
from rookery.domains.schedules.store import Schedules
from rookery.domains.schedules.tables import MICROS
from rookery.identity.binding import inherited
from rookery.identity.store import DEFAULT_AGENT, IdentityStore

MAX_NAME, MAX_DESCRIPTION, MAX_ADDRESS = 100, 2_000, 200
MAX_EXECUTIONS = 1_000_000
MAX_BUDGET_USD = 10_000.0
TIMING = ("cron_expression", "interval_minutes", "timezone")


Given = Annotated[dict[str, Any], WithJsonSchema({"type": "object"})]


class ManageSchedule(ToolInput):
    action: Literal[
        "list", "get", "create", "update", "delete", "pause", "resume", "history", "approve", "deny"
    ] = Field(description="Verb")  # fmt: skip
    schedule_id: str | None = Field(None, description="Id")
    execution_id: str | None = Field(None, description="Or its first 8")
    name: str | None = Field(None, description="Name")
    description: str | None = Field(None, description="Why")
    cron_expression: str | None = Field(None, description="5 fields")
    interval_minutes: int | None = Field(None, description="Or this")
    timezone: str | None = Field(None, description="IANA")
    schedule_actions: list[Given] | None = Field(
        None,
        description="type: star_repo fork_repo review_prs work_task send_message github_suggest codebase_review "
        "dependency_audit improvement_loop memory_maintenance reputation_attestation custom; and repos, description, "
        "project_id, to_agent_id, message, prompt",
    )
    approval_policy: Policy | None = Field(None, description="Default owner_approve")
    max_executions: int | None = Field(None, description="Limit")
    max_budget_per_run: float | None = Field(None, description="USD")
    notify_address: str | None = Field(None, description="Told")
    missed: Literal["run_once", "skip"] | None = Field(None, description="If late")
    agent_id: str | None = Field(None, description="For people")


def _without_fields(schema: dict[str, Any]) -> None:
    schema.pop("properties", None)


class Managed(ToolOutput):
    """`schedules` and `executions`, which shown.py has, and a `note` where there is nothing to show.

    The names are listed for no agent: whoever calls sees them.
    """

    model_config = ConfigDict(json_schema_extra=_without_fields)

    schedules: list[dict[str, Any]] = Field(default_factory=list[dict[str, Any]])
    executions: list[dict[str, Any]] = Field(default_factory=list[dict[str, Any]])
    note: str = ""


@tool(
    title="Manage schedule", effect="write", action="schedule:manage", tier="act", group="Write", profiles="",
    default=True,
)  # fmt: skip
def manage_schedule(ctx: Context, args: ManageSchedule) -> Managed:
    """Keep schedules of actions. Use it for recurring work. Returns schedules or executions; list also what awaits
    approval, which only people approve or deny. At least 5 minutes apart."""
    return _ACTIONS[args.action](ctx, args)


def _list(ctx: Context, args: ManageSchedule) -> Managed:
    store = Schedules(ctx.tx, ctx.actor)
    found = [short_schedule(row) for row in store.page()]
    awaiting = [awaiting_execution(row) for row in store.awaiting()]
    return Managed(schedules=found, executions=awaiting, note="" if found else "no schedules; action create makes one")


def _get(ctx: Context, args: ManageSchedule) -> Managed:
    return _one(Schedules(ctx.tx, ctx.actor).find(_schedule_id(args)))


def _history(ctx: Context, args: ManageSchedule) -> Managed:
    """One execution with its steps if its id is given, else the newest."""
    store = Schedules(ctx.tx, ctx.actor)
    if args.execution_id is not None:
        return Managed(executions=[whole_execution(store.execution(args.execution_id))])
    found = [short_execution(row) for row in store.history(args.schedule_id)]
    return Managed(executions=found, note="" if found else "nothing was due yet")


def _create(ctx: Context, args: ManageSchedule) -> Managed:
    if args.name is None or args.schedule_actions is None:
        missing = "name" if args.name is None else "schedule_actions"
        raise InvalidParams(f"{missing}: is needed to create a schedule", hint="give name, schedule_actions and a time")
    agent_id = _agent_id(ctx, args)
    actions = checked_actions(ctx, agent_id, read_actions(args.schedule_actions))
    timing = check_timing(args.cron_expression, args.interval_minutes, args.timezone or "UTC", now_ms(ctx.tx))
    row = Schedules(ctx.tx, ctx.actor).create(
        {
            "description": "",
            "max_executions": None,
            "max_budget_micros": None,
            "notify_address": None,
            **_plain_values(args),
            "agent_id": agent_id,
            "cron": timing.cron,
            "interval_ms": timing.interval_ms,
            "timezone": timing.zone,
            "anchor_ms": timing.anchor_ms,
            "actions": [action.stored() for action in actions],
            "requester": _requester(ctx),
            "approval_policy": args.approval_policy or "owner_approve",
            "missed": args.missed or "run_once",
        }
    )
    return _changed(ctx, row, "created")


def _update(ctx: Context, args: ManageSchedule) -> Managed:
    store = Schedules(ctx.tx, ctx.actor)
    row = store.steered(_schedule_id(args))
    if args.agent_id is not None:
        raise InvalidParams("agent_id: a schedule stays with its agent", hint="create another and delete this one")
    values = _plain_values(args)
    for name in ("approval_policy", "missed"):
        if getattr(args, name) is not None:
            values[name] = getattr(args, name)
    if args.schedule_actions is not None:
        actions = checked_actions(ctx, row.agent_id, read_actions(args.schedule_actions))
        values["actions"] = [action.stored() for action in actions]
        values["requester"] = _requester(ctx)
    if any(getattr(args, name) is not None for name in TIMING):
        values |= _new_timing(ctx, args, row)
    if not values:
        raise InvalidParams("update: there is nothing to change", hint="give the new values")
    return _changed(ctx, store.update(row.id, values), "updated")


def _requester(ctx: Context) -> dict[str, Any]:
    """What the caller is held to: what it schedules must not reach further than it does itself."""
    held = inherited(ctx.actor)
    return held | {"source": "stdio"} if ctx.actor.kind == "human" else held


def _new_timing(ctx: Context, args: ManageSchedule, row: Any) -> dict[str, Any]:
    cron, minutes = args.cron_expression, args.interval_minutes
    if cron is None and minutes is None:
        cron, minutes = row.cron, None if row.interval_ms is None else row.interval_ms // MINUTE_MS
    timing = check_timing(cron, minutes, args.timezone or row.timezone, now_ms(ctx.tx))
    return {
        "cron": timing.cron,
        "interval_ms": timing.interval_ms,
        "timezone": timing.zone,
        "anchor_ms": timing.anchor_ms,
    }


def _plain_values(args: ManageSchedule) -> dict[str, Any]:
    """What was given and needs no look at the database. A null takes a limit away."""
    given = {name: getattr(args, name) for name in args.model_fields_set}
    for name, most in (("name", MAX_NAME), ("description", MAX_DESCRIPTION), ("notify_address", MAX_ADDRESS)):
        text = given.get(name)
        if text is not None and len(text) > most:
            raise ValidationFailed(f"{name}: has {len(text)} characters, at most {most} are kept", hint="shorten it")
    if "name" in given and not (given["name"] or "").strip():
        raise ValidationFailed("name: is empty", hint="give it a name")
    most_runs, budget = given.get("max_executions"), given.get("max_budget_per_run")
    if most_runs is not None and not 1 <= most_runs <= MAX_EXECUTIONS:
        raise ValidationFailed(f"max_executions: must be from 1 to {MAX_EXECUTIONS}", hint="null: no limit")
    if budget is not None and not (math.isfinite(budget) and 0 < budget <= MAX_BUDGET_USD):
        raise ValidationFailed("max_budget_per_run: must be above 0 and not huge", hint="null: no limit")
    values = {name: given[name] for name in ("max_executions", "notify_address") if name in given}
    if "max_budget_per_run" in given:
        values["max_budget_micros"] = None if budget is None else max(1, round(budget * MICROS))
    if "name" in given:
        values["name"] = given["name"].strip()
    if given.get("description") is not None:
        values["description"] = given["description"]
    return values


def _delete(ctx: Context, args: ManageSchedule) -> Managed:
    store = Schedules(ctx.tx, ctx.actor)
    row = store.steered(_schedule_id(args))
    store.delete(row.id)
    ctx.publish("ScheduleChanged", subject=row.id, change="deleted", agent=row.agent_id)
    return Managed(note=f"{row.name} and its history are gone")


def _pause(ctx: Context, args: ManageSchedule) -> Managed:
    return _changed(ctx, Schedules(ctx.tx, ctx.actor).pause(_schedule_id(args)), "paused")


def _resume(ctx: Context, args: ManageSchedule) -> Managed:
    store = Schedules(ctx.tx, ctx.actor)
    row = store.steered(_schedule_id(args))
    checked_actions(ctx, row.agent_id, read_actions(row.actions))
    return _changed(ctx, store.resume(row.id), "resumed")


def _approve(ctx: Context, args: ManageSchedule) -> Managed:
    return _decide(ctx, args, approved=True)


def _deny(ctx: Context, args: ManageSchedule) -> Managed:
    return _decide(ctx, args, approved=False)


def _decide(ctx: Context, args: ManageSchedule, *, approved: bool) -> Managed:
    # The tool itself is for agents too, so this is asked here and not by `decide`.
    actor = ctx.actor
    if actor.kind != "human" or actor.role != "owner" or actor.scheduler or actor.unattended:
        raise PermissionDenied(
            f"{args.action} is for the owner, who has to be there", hint="leave it to the owner", layer="principal"
        )
    if args.execution_id is None:
        raise InvalidParams("execution_id: is needed", hint="action list shows what awaits approval")
    row, answered = Schedules(ctx.tx, ctx.actor).decide(args.execution_id, approved=approved)
    ctx.publish("ScheduleExecutionDecided", subject=row.id, schedule=row.schedule_id, approved=approved)
    asked = ask_of(ctx.tx, row.tenant, row.id) if answered else None
    if asked is not None:
        ctx.publish("AskAnswered", subject=asked.id, kind=asked.kind, agent=asked.agent_id, session=asked.session)
    return Managed(executions=[whole_execution(row)])


def _schedule_id(args: ManageSchedule) -> str:
    if args.schedule_id is None:
        raise InvalidParams(f"schedule_id: is needed to {args.action}", hint="action list shows them")
    return args.schedule_id


def _agent_id(ctx: Context, args: ManageSchedule) -> str:
    """Whose schedule it will be."""
    if ctx.actor.kind == "human":
        return IdentityStore(ctx.tx, ctx.actor.tenant).agent(args.agent_id or DEFAULT_AGENT).id
    if ctx.actor.agent is None:
        raise PermissionDenied("only agents and people have schedules", hint="ask the owner", layer="principal")
    if args.agent_id not in (None, ctx.actor.agent, ctx.actor.agent_name):
        raise PermissionDenied(
            "agent_id is for people: an agent makes schedules for itself", hint="leave it out", layer="principal"
        )
    return ctx.actor.agent


def _one(row: Any) -> Managed:
    return Managed(schedules=[whole_schedule(row)])


def _changed(ctx: Context, row: Any, change: str) -> Managed:
    ctx.publish("ScheduleChanged", subject=row.id, change=change, agent=row.agent_id)
    return _one(row)


_ACTIONS: dict[str, Callable[[Context, ManageSchedule], Managed]] = {
    "list": _list,
    "get": _get,
    "create": _create,
    "update": _update,
    "delete": _delete,
    "pause": _pause,
    "resume": _resume,
    "history": _history,
    "approve": _approve,
    "deny": _deny,
}
