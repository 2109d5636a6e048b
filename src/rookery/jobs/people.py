"""With what people look at deferred work, give it up and let it be tried again.

Not in a module where tools are looked for: nobody but people has them, and no session pays for their listing. They are
called, decided and recorded like any other.
"""

from typing import Any, Literal

import sqlalchemy as sa
from pydantic import Field

from rookery.core.context import Context
from rookery.core.tool import ToolInput, ToolOutput, tool
from rookery.jobs import by_hand
from rookery.jobs.store import Jobs, Row
from rookery.jobs.tables import STATES, jobs
from rookery.settings import Settings

State = Literal["waiting", "running", "done", "failed", "cancelled"]
RECENT = 2_000
"""Workers are told by so many of the newest jobs."""
TIMES = ("due_ms", "created_ms", "started_ms", "ended_ms", "lease_ms")
PLAIN = ("id", "kind", "queue", "state", "attempt", "attempts", "failures", "losses", "worker", "cancel", "error")
_RECENT = sa.select(jobs).where(jobs.c.tenant == sa.bindparam("of_tenant")).order_by(jobs.c.id.desc()).limit(RECENT)
_newest = _RECENT.subquery()
_WORKERS = (
    sa.select(
        _newest.c.worker,
        sa.func.max(sa.func.coalesce(_newest.c.ended_ms, _newest.c.started_ms)).label("did_ms"),
        sa.func.max(sa.case((_newest.c.state == "running", _newest.c.lease_ms))).label("lease_ms"),
        sa.func.sum(sa.case((_newest.c.state == "running", 1), else_=0)).label("running"),
        sa.func.count().label("jobs"),
    )
    .where(_newest.c.worker.is_not(None))
    .group_by(_newest.c.worker)
    .limit(100)
)


class ListJobs(ToolInput):
    states: list[State] = Field([], max_length=5, description="Only these.")
    kind: str | None = Field(None, max_length=100, description="Only of this kind.")
    limit: int = Field(50, ge=1, le=500, description="At most.")


class JobId(ToolInput):
    job_id: int = Field(ge=1, description="Its number.")


class ListedJobs(ToolOutput):
    jobs: list[dict[str, Any]]
    counts: dict[str, int]
    kinds: list[str]
    workers: list[dict[str, Any]]


class OneJob(ToolOutput):
    job: dict[str, Any]


@tool(
    title="List jobs", effect="read", action="jobs:read", tier="observe", group="System", profiles="", default=False,
    principals="people",
)  # fmt: skip
def list_jobs(ctx: Context, args: ListJobs) -> ListedJobs:
    """List deferred work, newest first, with how many there are of each state and which workers were seen last."""
    store = Jobs(ctx.tx, ctx.actor.tenant)
    rows = store.page(states=args.states, kind=args.kind, limit=args.limit)
    counted = store.counts()
    return ListedJobs(
        jobs=[_shown(ctx, row) for row in rows],
        counts={state: counted.get(state, 0) for state in STATES},
        kinds=sorted(ctx.platform.facts["kinds"]),
        workers=_workers(ctx),
    )


@tool(
    title="Cancel job", effect="write", action="jobs:write", tier="act", group="System", profiles="", default=False,
    principals="operators",
)  # fmt: skip
def cancel_job(ctx: Context, args: JobId) -> OneJob:
    """Give up a job that waits, or tell one that runs to stop."""
    row = by_hand.cancel(ctx.tx, ctx.actor.tenant, ctx.platform.facts["kinds"], args.job_id)
    return OneJob(job=_shown(ctx, row))


@tool(
    title="Retry job", effect="write", action="jobs:write", tier="act", group="System", profiles="", default=False,
    principals="operators",
)  # fmt: skip
def retry_job(ctx: Context, args: JobId) -> OneJob:
    """Let a job that failed be tried again. Refused where its failure has had consequences."""
    row = by_hand.retry(ctx.tx, ctx.actor.tenant, ctx.platform.facts["kinds"], args.job_id)
    return OneJob(job=_shown(ctx, row))


def _shown(ctx: Context, row: Row) -> dict[str, Any]:
    kind = ctx.platform.facts["kinds"].get(row.kind)
    return {
        **{name: getattr(row, name) for name in (*PLAIN, *TIMES)},
        "args": row.args,
        "progress": row.progress,
        "waits_for": row.waits_for,
        "can_cancel": kind is not None and row.state in ("waiting", "running") and not row.cancel,
        "can_retry": kind is not None and row.state == "failed" and kind.on_ended is None,
    }


def _workers(ctx: Context) -> list[dict[str, Any]]:
    """Who took jobs lately. A lease is renewed while its job runs, so its end tells when that was done last."""
    settings: Settings = ctx.platform.facts["settings"]
    lease_ms = round(settings.job_lease_s * 1000)
    found = [
        {
            "name": row.worker,
            "running": row.running,
            "jobs": row.jobs,
            "seen_ms": max(row.did_ms or 0, (row.lease_ms or 0) - lease_ms),
        }
        for row in ctx.tx.all(_WORKERS, {"of_tenant": ctx.actor.tenant})
    ]
    return sorted(found, key=lambda worker: -worker["seen_ms"])
