"""Snapshots and trends as callers see them."""

from collections.abc import Sequence
from typing import Any

from rookery.core.moments import iso
from rookery.domains.health.metrics import COLUMNS, METRICS
from rookery.domains.health.store import Row
from rookery.domains.health.trends import NO_TREND, shown


def snapshot(row: Row) -> dict[str, Any]:
    """One snapshot; what was not counted is None."""
    counts: dict[str, int | None] = {column: getattr(row, column) for column in COLUMNS}
    return {
        "id": row.id,
        **counts,
        "tsc_passed": _passed(row.tsc_error_count),
        "tests_passed": _passed(row.test_failure_count),
        "source": row.source,
        "agent_id": row.agent_id,
        "collected_at": iso(row.collected_ms),
    }


def trends(rows: Sequence[Row]) -> dict[str, str]:
    """How each metric moved, over the snapshots that have it. Empty: there are fewer than two snapshots."""
    if len(rows) < 2:
        return {}
    counted = {
        metric: [getattr(row, column) for row in rows if getattr(row, column) is not None]
        for metric, column in METRICS.items()
    }
    return {metric: shown(values) for metric, values in counted.items()}


def suite(runs: Sequence[Row]) -> dict[str, str]:
    """How the test suite moved, as workers reported it. Empty: fewer than two runs."""
    if len(runs) < 2:
        return {}
    times = [run.execution_time_ms for run in runs if run.execution_time_ms is not None]
    return {
        "test_count": shown([run.test_count for run in runs], defect=False),
        "execution_time_ms": shown(times),
    }


def told(project: str, latest: dict[str, Any] | None, moved: dict[str, str], tested: dict[str, str]) -> str:
    """The same as text: the latest snapshot, then a line for each trend."""
    lines = [_latest(project, latest)]
    if latest is not None:
        lines += [f"Trends: {NO_TREND}"] if not moved else ["Trends:", *_each(moved)]
    if tested:
        lines += ["Test suite:", *_each(tested)]
    return "\n".join(lines)


def nothing_yet(project: str) -> str:
    """What to do where nobody has looked yet."""
    return (
        f"No health snapshots of {project}. Run an improvement cycle first: collect_health, "
        "or an improvement_loop of manage_schedule."
    )


def _latest(project: str, latest: dict[str, Any] | None) -> str:
    if latest is None:
        return nothing_yet(project)
    counts = [f"{metric} {_or_unknown(latest[column])}" for metric, column in METRICS.items()]
    return f"Health of {project} at {latest['collected_at']}: {', '.join(counts)}"


def _each(moved: dict[str, str]) -> list[str]:
    return [f"  {name}: {text}" for name, text in moved.items()]


def _or_unknown(count: int | None) -> str:
    return "not counted" if count is None else str(count)


def _passed(count: int | None) -> bool | None:
    return None if count is None else count == 0
