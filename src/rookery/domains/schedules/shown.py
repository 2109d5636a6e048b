"""Schedules and executions as their readers see them."""

from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import sqlalchemy as sa

from rookery.core.errors import ValidationFailed
from rookery.domains.schedules.ask_card import short_lines
from rookery.domains.schedules.cron import MINUTE_MS, zone_of
from rookery.domains.schedules.tables import MICROS

SHORT_ID = 8
SHORT_RESULT = 100
SHORT_ASKED = 200


def moment(at_ms: int | None, zone: str = "UTC") -> str | None:
    """A time as ISO 8601 with the offset of the zone."""
    if at_ms is None:
        return None
    try:
        known = zone_of(zone)
    except ValidationFailed:
        known = ZoneInfo("UTC")
    return datetime.fromtimestamp(at_ms // 1000, known).isoformat()


def short_schedule(row: sa.Row[Any]) -> dict[str, Any]:
    """For lists."""
    return {
        "id": row.id,
        "name": row.name,
        "status": row.status,
        "agent_id": row.agent_id,
        "due": row.cron or f"every {row.interval_ms // MINUTE_MS} min",
        "next_due": moment(row.next_due_ms, row.timezone),
        "actions": [action["type"] for action in row.actions],
    }


def whole_schedule(row: sa.Row[Any]) -> dict[str, Any]:
    """Everything but what only the machine needs."""
    return {
        "id": row.id,
        "name": row.name,
        "description": row.description,
        "status": row.status,
        "reason": row.reason,
        "agent_id": row.agent_id,
        "cron_expression": row.cron,
        "interval_minutes": None if row.interval_ms is None else row.interval_ms // MINUTE_MS,
        "timezone": row.timezone,
        "next_due": moment(row.next_due_ms, row.timezone),
        "last_due": moment(row.last_due_ms, row.timezone),
        "schedule_actions": row.actions,
        "approval_policy": row.approval_policy,
        "missed": row.missed,
        "execution_count": row.execution_count,
        "max_executions": row.max_executions,
        "max_budget_per_run": None if row.max_budget_micros is None else row.max_budget_micros / MICROS,
        "notify_address": row.notify_address,
        "failures_in_a_row": row.failures,
    }


def short_execution(row: sa.Row[Any]) -> dict[str, Any]:
    """For lists: the id and the result are cut."""
    return {
        "id": row.id[:SHORT_ID],
        "schedule_id": row.schedule_id,
        "name": row.config_snapshot["name"],
        "status": row.status,
        "due": moment(row.due_ms),
        "actions": [step["type"] for step in row.steps],
        "result": None if row.result is None else row.result[:SHORT_RESULT],
    }


def awaiting_execution(row: sa.Row[Any]) -> dict[str, Any]:
    """For who has to agree: also for whom, and to what."""
    asks = "; ".join(short_lines(row.config_snapshot["actions"], SHORT_ASKED))
    return {**short_execution(row), "agent_id": row.agent_id, "asks": asks}


def whole_execution(row: sa.Row[Any]) -> dict[str, Any]:
    """Everything that is known of it, step by step."""
    return {
        **short_execution(row),
        "id": row.id,
        "agent_id": row.agent_id,
        "result": row.result,
        "steps": row.steps,
        "config_snapshot": row.config_snapshot,
        "cost_usd": row.cost_micros / MICROS,
        "decided_by": row.decided_by,
        "started": moment(row.started_ms),
        "completed": moment(row.completed_ms),
    }
