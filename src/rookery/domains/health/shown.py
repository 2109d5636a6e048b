"""Snapshots and trends as callers see them."""

from collections.abc import Sequence
from typing import Any

from rookery.core.moments import iso
from rookery.domains.health.metrics import COLUMNS, METRICS
from rookery.domains.health.store import Row
from rookery.domains.health.trends import NO_TREND, shown

RECORDED = "recorded"
STARS = "* was recorded by somebody, not collected"


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
    """How each metric moved, over the snapshots that have it. Empty: there are fewer than two snapshots.

    If snapshots of both sources are compared, what was recorded has a star: anybody who may record can say anything.
    """
    if len(rows) < 2:
        return {}
    stars = mixed(rows)
    moved: dict[str, str] = {}
    for metric, column in METRICS.items():
        having = [row for row in rows if getattr(row, column) is not None]
        starred = [stars and row.source == RECORDED for row in having]
        moved[metric] = shown([getattr(row, column) for row in having], starred=starred)
    return moved


def mixed(rows: Sequence[Row]) -> bool:
    """Whether some of the snapshots were collected and others recorded."""
    return len({row.source for row in rows}) > 1


def suite(runs: Sequence[Row]) -> dict[str, str]:
    """How the test suite moved, as workers reported it. Empty: fewer than two runs."""
    if len(runs) < 2:
        return {}
    times = [run.execution_time_ms for run in runs if run.execution_time_ms is not None]
    return {
        "test_count": shown([run.test_count for run in runs], defect=False),
        "execution_time_ms": shown(times),
    }


def told(
    project: str, latest: dict[str, Any] | None, moved: dict[str, str], tested: dict[str, str], message: str | None
) -> str:
    """The same as text: the latest snapshot, then a line for each trend, and what `message` has to say."""
    lines = [] if latest is None else [_latest(project, latest)]
    if latest is not None:
        lines += [f"Trends: {NO_TREND}"] if not moved else ["Trends:", *_each(moved)]
    lines += [] if message is None else [message]
    if tested:
        lines += ["Test suite:", *_each(tested)]
    return "\n".join(lines)


def message_on(whose: str, rows: Sequence[Row], older: Sequence[Row], days: int | None) -> str | None:
    """What has to be said besides: what the stars mean, or why there is nothing and what there was before."""
    if rows:
        return STARS if mixed(rows) else None
    if older:
        return f"No health snapshots of {whose} within days={days}. The newest is of {iso(older[-1].collected_ms)}."
    return (
        f"No health snapshots of {whose}. Run an improvement cycle first: collect_health, "
        "or an improvement_loop of manage_schedule."
    )


def _latest(project: str, latest: dict[str, Any]) -> str:
    counts = [f"{metric} {_or_unknown(latest[column])}" for metric, column in METRICS.items()]
    return f"Health of {project}, {latest['source']} at {latest['collected_at']}: {', '.join(counts)}"


def _each(moved: dict[str, str]) -> list[str]:
    return [f"  {name}: {text}" for name, text in moved.items()]


def _or_unknown(count: int | None) -> str:
    return "not counted" if count is None else str(count)


def _passed(count: int | None) -> bool | None:
    return None if count is None else count == 0
