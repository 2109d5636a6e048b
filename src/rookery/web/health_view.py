"""What the page on health shows of the figures that tools give: charts, words for trends, and warnings. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

from rookery.web.chart_view import chart
from rookery.web.showing import NOTHING
from rookery.web.waterfall import precise

Json = Mapping[str, Any]
LABELS: Mapping[str, str] = {
    "tsc_errors": "Type errors",
    "test_failures": "Failing tests",
    "todos": "TODO notes",
    "fixmes": "FIXME notes",
    "hacks": "HACK notes",
    "large_files": "Large files",
    "outdated_deps": "Outdated dependencies",
}
TRENDS: Mapping[str | None, tuple[str, str]] = {
    "falling": ("improving", "good"),
    "steady": ("stable", ""),
    "rising": ("getting worse", "bad"),
    None: ("no trend yet", ""),
}
"""For each direction of a count of which less is better, its word and the tone of its badge."""
HEAT = ((0.0, "clear"), (0.1, "some"), (0.34, "many"), (1.01, "most"))


def metric_cards(metrics: Sequence[Json]) -> list[dict[str, Any]]:
    """A card for each count that somebody has counted, with its chart."""
    return [_card(each) for each in metrics if each["points"]]


def not_counted(metrics: Sequence[Json]) -> list[dict[str, str]]:
    """The counts of which there are none, and why."""
    return [
        {"label": LABELS[each["name"]], "why": _last_line(each["missing"])} for each in metrics if not each["points"]
    ]


def warnings(metrics: Sequence[Json], reasons: Sequence[str]) -> list[str]:
    """What has to be looked at: counts that rise, and tests that outgrow the code."""
    rising = [
        f"{LABELS[each['name']]} went from {each['points'][0][1]:,} to {each['latest']:,}"
        for each in metrics
        if each["direction"] == "rising"
    ]
    return [*rising, *(f"{reason[:1].upper()}{reason[1:]}" for reason in reasons)]


def suite_charts(runs: Sequence[Json]) -> list[dict[str, Any]]:
    """How many tests there are and how long they take, over time."""
    counts = [(run["at_ms"], run["test_count"]) for run in runs]
    times = [(run["at_ms"], run["execution_time_ms"]) for run in runs if run["execution_time_ms"] is not None]
    charts = [chart("Number of tests over time", {"Tests": counts})] if counts else []
    return [*charts, chart("Time of the whole suite", {"All tests": times}, unit="ms")] if times else charts


def suite_summary(runs: Sequence[Json]) -> dict[str, Any]:
    """The figures above the charts: how many now, what came and went, and the slowest run."""
    timed = [run for run in runs if run["execution_time_ms"] is not None]
    return {
        "tests": runs[-1]["test_count"] if runs else None,
        "added": sum(run["tests_added"] or 0 for run in runs),
        "removed": sum(run["tests_removed"] or 0 for run in runs),
        "slowest": max(timed, key=lambda run: run["execution_time_ms"], default=None),
    }


def took(run: Json) -> str:
    """How long the suite took, to be compared with others in a table."""
    return NOTHING if run["execution_time_ms"] is None else precise(run["execution_time_ms"])


def heat(cell: Json | None) -> str:
    """The class of a cell of the map: how large a part of what was examined has issues."""
    if cell is None or not cell["examined"]:
        return "none"
    share = cell["with_issues"] / cell["examined"]
    return next(name for limit, name in HEAT if share <= limit)


def crumbs(folder: str) -> list[tuple[str, str]]:
    """The folders above this one and itself, each with its path."""
    parts = [part for part in folder.split("/") if part]
    return [(part, "/".join(parts[: at + 1])) for at, part in enumerate(parts)]


def _card(metric: Json) -> dict[str, Any]:
    label = LABELS[metric["name"]]
    word, tone = TRENDS[metric["direction"]]
    points = [(at, value) for at, value in metric["points"]]
    return {
        "label": label,
        "latest": metric["latest"],
        "word": word,
        "tone": tone,
        "chart": chart(f"{label} over time", {label: points}),
    }


def _last_line(text: str | None) -> str:
    lines = (text or "").strip().splitlines()
    return lines[-1] if lines else "nobody has counted them yet"
