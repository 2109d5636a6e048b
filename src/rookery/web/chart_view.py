"""A chart as charts.js draws it, with the same figures as a table for whoever does not see it. Pure."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from rookery.web.showing import NOTHING, harmless, money, number, span

Unit = Literal["count", "usd", "ms", "percent"]
Kind = Literal["line", "bars"]
Points = Sequence[tuple[int, float]]
"""Milliseconds since 1970 and a value each, oldest first."""
_SHOWN: Mapping[Unit, Callable[[float | None], str]] = {
    "count": number,
    "usd": money,
    "ms": span,
    "percent": lambda value: NOTHING if value is None else f"{number(value)} %",
}
LONGEST_NAME = 60
MOST_ROWS = 200


def chart(
    label: str,
    series: Mapping[str, Points],
    *,
    unit: Unit = "count",
    kind: Kind = "line",
    threshold: float | None = None,
) -> dict[str, Any]:
    """What the macro `chart` of charts.html takes. `label` says in words what is drawn; `threshold` is a line across.

    The table has the newest figures first, at most 200 of them.
    """
    named = {harmless(name, LONGEST_NAME): points for name, points in series.items()}
    spec: dict[str, Any] = {
        "series": [{"name": name, "points": [list(point) for point in points]} for name, points in named.items()],
        "unit": unit,
        "kind": kind,
    }
    if threshold is not None:
        spec["threshold"] = threshold
    return {"label": label, "spec": spec, "columns": list(named), "rows": _rows(list(named.values()), _SHOWN[unit])}


def _rows(series: Sequence[Points], shown: Callable[[float | None], str]) -> list[dict[str, Any]]:
    by_time = [dict(points) for points in series]
    times = sorted({at for points in by_time for at in points}, reverse=True)[:MOST_ROWS]
    return [{"at_ms": at, "figures": [shown(points.get(at)) for points in by_time]} for at in times]
