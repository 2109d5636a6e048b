"""What Home shows, in words and in figures for a drawing. Pure."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

Url = Callable[..., str]
WIDTH, HEIGHT, GAP = 280, 72, 4
STUCK: dict[str, tuple[str, str, str]] = {
    "blocked": ("blocked", "It waits for a person: read why, then move it on or cancel it.", "Open the issue"),
    "late_run": ("past its deadline", "It should have ended: see what it does, then stop it.", "Open the run"),
    "silent_run": ("not heard of", "Nothing was heard of it for an hour: see how far it came.", "Open the run"),
    "stopped_schedule": ("stopped", "It failed too often: mend what it does, then resume it.", "Open the schedule"),
}
"""For each kind of what is stuck: its badge, what can be done, and the name of the button."""


@dataclass(frozen=True, slots=True)
class Bar:
    """One day of the chart, in the units of the drawing."""

    x: float
    y: float
    width: float
    height: float
    today: bool
    title: str


@dataclass(frozen=True, slots=True)
class Spend:
    """What today has cost, against its budget if there is one, and the days before."""

    today_usd: float
    today_runs: int
    budget_usd: float | None
    share: int | None
    total_usd: float
    bars: Sequence[Bar]


def spend(days: Sequence[Mapping[str, Any]], budget_usd: float | None) -> Spend:
    """The last of the days is today."""
    today = days[-1]
    budget = budget_usd or None
    share = None if budget is None else min(100, round(100 * today["cost_usd"] / budget))
    return Spend(
        today_usd=today["cost_usd"],
        today_runs=today["runs"],
        budget_usd=budget,
        share=share,
        total_usd=sum(day["cost_usd"] for day in days),
        bars=_bars(days),
    )


def _bars(days: Sequence[Mapping[str, Any]]) -> list[Bar]:
    """Nothing if nothing was spent: a chart of noughts says nothing."""
    most = max(day["cost_usd"] for day in days)
    if most <= 0:
        return []
    step = WIDTH / len(days)
    bars: list[Bar] = []
    for at, day in enumerate(days):
        height = max(1.5, HEIGHT * day["cost_usd"] / most)
        date = datetime.fromtimestamp(day["day_ms"] / 1000, UTC).strftime("%d %b")
        title = f"{date}: ${day['cost_usd']:,.2f}, {day['runs']} run{'' if day['runs'] == 1 else 's'}"
        shape = (round(at * step, 1), round(HEIGHT - height, 1), round(step - GAP, 1), round(height, 1))
        bars.append(Bar(*shape, today=at == len(days) - 1, title=title))
    return bars


def stuck_thing(item: Mapping[str, Any], url: Url) -> dict[str, Any]:
    """Something that has come to a stop, with what can be done about it and where."""
    badge, remedy, button = STUCK[item["kind"]]
    return {**item, "badge": badge, "remedy": remedy, "button": button, "to": _place(item, url)}


def _place(item: Mapping[str, Any], url: Url) -> str:
    if item["kind"] == "blocked":
        return url(f"/issues/{item['issue']}", project=item["project"])
    if item["kind"] == "stopped_schedule":
        return url(f"/automation/schedules/{item['id']}")
    return url(f"/runs/{item['id']}")
