"""The test runs of a project as people see them drawn. In no list of tools: see domains/runs/person_runs.py."""

from dataclasses import asdict
from typing import Any

import sqlalchemy as sa
from pydantic import Field

from rookery.core.context import Context
from rookery.core.tool import ToolInput, ToolOutput, tool
from rookery.domains.tracker.store import now_ms
from rookery.domains.tracker.test_health_tools import project_health
from rookery.lifecycle.issue_tables import issues
from rookery.lifecycle.suite_tables import test_health

DAY_MS = 86_400_000
MOST = 500
_t = test_health.c
_SHOWN = ("test_count", "tests_added", "tests_removed", "test_files_changed", "execution_time_ms", "source_lines")


class ReadSuiteHistory(ToolInput):
    days: int | None = Field(None, ge=1, le=3650, description="Max age.")


class SuiteHistory(ToolOutput):
    """The runs of the whole suite, oldest first, and whether tests outgrow the code."""

    runs: list[dict[str, Any]]
    trend: dict[str, Any] | None
    reasons: list[str]


@tool(
    title="Read suite history", effect="read", action="tracker:read", tier="observe", group="Read", profiles="",
    default=False, principals="people", binds="project",
)  # fmt: skip
def read_suite_history(ctx: Context, args: ReadSuiteHistory) -> SuiteHistory:
    """The test runs that workers reported in the bound project, at most the last 500."""
    since = 0 if args.days is None else now_ms() - args.days * DAY_MS
    mine = (_t.tenant == ctx.actor.tenant, _t.project_id == ctx.actor.project, _t.at_ms >= since)
    named = sa.and_(issues.c.tenant == _t.tenant, issues.c.id == _t.issue_id)
    found = sa.select(test_health, issues.c.identifier).outerjoin(issues, named).where(*mine)
    rows = ctx.tx.all(found.order_by(_t.seq.desc()).limit(MOST))[::-1]
    trend = project_health(ctx.tx, ctx.actor.project or "")
    return SuiteHistory(
        runs=[_shown(row) for row in rows],
        trend=None if trend is None else asdict(trend),
        reasons=[] if trend is None else list(trend.reasons),
    )


def _shown(row: sa.Row[Any]) -> dict[str, Any]:
    counts = {name: getattr(row, name) for name in _SHOWN}
    return {**counts, "at_ms": row.at_ms, "run_id": row.run_id, "issue": row.identifier, "author": row.author}
