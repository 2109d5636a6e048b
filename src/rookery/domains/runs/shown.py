"""What a caller gets to see of runs, and in which form."""

import json
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from rookery.core.context import Context
from rookery.core.errors import NotFound
from rookery.lifecycle.issue_ref import find_issue
from rookery.lifecycle.run_store import Runs

PAGE_BYTES = 1 << 20
"""How much the payloads of one answer may take."""

EVENT_FIELDS = ("run_id", "number", "type", "subtype", "payload", "at_ms")


def visible_runs(ctx: Context) -> Runs:
    """The runs of projects in which the caller has a role."""
    return Runs(ctx.tx, ctx.actor.tenant, closed=ctx.actor.closed)


def visible_issue(ctx: Context, text: str) -> sa.Row[Any]:
    """The issue with this id or identifier. One of a project without a role is as unknown as one that is not there."""
    issue = find_issue(ctx.tx, ctx.actor.tenant, text)
    if issue is None or issue.project_id in ctx.actor.closed:
        raise NotFound(f"there is no issue {text}", hint="list_issues shows those there are")
    return issue


def event(row: sa.Row[Any]) -> dict[str, Any]:
    return {name: getattr(row, name) for name in EVENT_FIELDS}


def fitting(rows: Sequence[sa.Row[Any]]) -> Sequence[sa.Row[Any]]:
    """As many of the first events as one answer may carry, but always one."""
    room = PAGE_BYTES
    for taken, row in enumerate(rows):
        room -= len(json.dumps(row.payload))
        if room < 0 and taken:
            return rows[:taken]
    return rows
