"""The snapshots of a project as people see them drawn. In no list of tools: see domains/runs/person_runs.py."""

from typing import Any

from pydantic import Field

from rookery.core.context import Context
from rookery.core.tool import ToolInput, ToolOutput, tool
from rookery.domains.health.inputs import MAX_DAYS
from rookery.domains.health.metrics import METRICS
from rookery.domains.health.project_settings import ProjectHealth
from rookery.domains.health.store import Row, Snapshots
from rookery.domains.health.trends import Direction, direction
from rookery.identity.store import IdentityStore

MOST = 500


class ReadHealthHistory(ToolInput):
    days: int | None = Field(None, ge=1, le=MAX_DAYS, description="Max age.")


class Metric(ToolOutput):
    """One count over time: pairs of a time in milliseconds and a value, oldest first. Of each less is better."""

    name: str
    points: list[tuple[int, int]]
    latest: int | None
    direction: Direction | None
    missing: str | None
    """Why the newest look has no such count, if it has none."""


class HealthHistory(ToolOutput):
    project: str
    metrics: list[Metric]
    snapshots: list[dict[str, Any]]
    """The newest first."""
    samples: list[str]
    commands: dict[str, str]
    has_folder: bool
    large_lines: int


@tool(
    title="Read health history", effect="read", action="reputation:read", tier="observe", group="Read", profiles="",
    default=False, principals="people", binds="project",
)  # fmt: skip
def read_health_history(ctx: Context, args: ReadHealthHistory) -> HealthHistory:
    """The snapshots of the bound project as series of numbers, with the notes of the newest look."""
    tx, tenant = ctx.tx, ctx.actor.tenant
    identities = IdentityStore(tx, tenant)
    project = identities.project(ctx.actor.project or "", ctx.actor.closed)
    rows = Snapshots(tx, tenant, project.id).newest(MOST, args.days)
    settings = ProjectHealth(tx, tenant).of(project.id)
    collected = next((row for row in reversed(rows) if row.source == "collected"), None)
    names = {agent.id: agent.name for agent in identities.agents()}
    return HealthHistory(
        project=project.slug,
        metrics=[_metric(name, column, rows, collected) for name, column in METRICS.items()],
        snapshots=[_snapshot(row, names) for row in reversed(rows)],
        samples=[] if collected is None else list(collected.details.get("samples", ())),
        commands={name: getattr(settings, name) for name in ("types", "tests", "outdated")},
        has_folder=project.path is not None,
        large_lines=settings.large_lines,
    )


_PROBE = {"tsc_errors": "types", "test_failures": "tests", "outdated_deps": "outdated"}


def _metric(name: str, column: str, rows: Any, collected: Row | None) -> Metric:
    points = [(row.collected_ms, getattr(row, column)) for row in rows if getattr(row, column) is not None]
    missing = None if collected is None else collected.details.get("missing", {}).get(_PROBE.get(name, "source"))
    return Metric(
        name=name,
        points=points,
        latest=points[-1][1] if points else None,
        direction=direction([value for _, value in points]),
        missing=missing,
    )


def _snapshot(row: Row, names: dict[str, str]) -> dict[str, Any]:
    counts = {name: getattr(row, column) for name, column in METRICS.items()}
    by = names.get(row.agent_id, row.agent_id)
    return {"id": row.id, "at_ms": row.collected_ms, "source": row.source, "by": by, "counts": counts}
