"""The events of a run, to be read by address."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from pydantic import Field

from rookery.core.context import Context
from rookery.core.resource import Entry, resource
from rookery.core.tool import ToolInput
from rookery.domains.runs.shown import event, fitting, visible_runs
from rookery.domains.runs.tools import Reference

MIME_TYPE = "application/x-ndjson"
LAST = 500
LISTED = 50


class RunAddress(ToolInput):
    id: Reference = Field(description="Id of the run.")


def _recent(ctx: Context) -> Sequence[sa.Row[Any]]:
    """The newest runs of the bound issue, or else of the bound project."""
    actor = ctx.actor
    if actor.issue is None and actor.project is None:
        return ()
    runs = visible_runs(ctx)
    return runs.recent(actor.issue, LISTED) if actor.issue else runs.page(LISTED, project_id=actor.project)


def _entries(ctx: Context) -> list[Entry]:
    return [
        Entry(
            f"run://{run.id}/events",
            name=run.id,
            title=", ".join(part for part in (run.profile, run.phase, run.status) if part),
            mime_type=MIME_TYPE,
        )
        for run in _recent(ctx)
    ]


def _ids(ctx: Context, typed: str, others: Mapping[str, str]) -> list[str]:
    return [run.id for run in _recent(ctx) if run.id.startswith(typed)]


@resource(
    "run://{id}/events", title="Events of a run", right="query_run_events", mime_type=MIME_TYPE,
    entries=_entries, complete={"id": _ids},
)  # fmt: skip
def run_events(ctx: Context, args: RunAddress) -> str:
    """The last 500 events of a run, or as many as fit into 1 MB, oldest first: one JSON object a line."""
    runs = visible_runs(ctx)
    newest_first = runs.last_events(runs.of(args.id), LAST)[::-1]
    return "".join(f"{json.dumps(event(row), ensure_ascii=False)}\n" for row in fitting(newest_first)[::-1])
