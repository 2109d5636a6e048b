"""Health: how the counts of a project move, what was examined in it, and how its tests grow."""

from typing import Any

from starlette.responses import Response

from rookery.core.errors import ValidationFailed
from rookery.domains.health.history import read_health_history
from rookery.domains.tracker.coverage_map import read_coverage_map
from rookery.domains.tracker.suite_history import read_suite_history
from rookery.web.health_view import (
    LABELS,
    crumbs,
    heat,
    metric_cards,
    not_counted,
    suite_charts,
    suite_summary,
    took,
    warnings,
)
from rookery.web.routing import Nav, action, page
from rookery.web.visit import Visit

DAYS = (7, 30, 90, 365)
TABS = ("trends", "coverage", "tests")
PAGE = 100
SHOWN_RUNS = 100


@page("/health", nav=Nav("Health", "Project", 90, "health"))
async def health(visit: Visit) -> Response:
    """One of three views on the project: trends, coverage or tests."""
    tab = visit.query.get("tab", "")
    if tab == "coverage":
        return await _coverage(visit)
    days = _number(visit.query.get("days", "")) or None
    within: dict[str, Any] = {} if days is None else {"days": min(days, 3650)}
    suite = await visit.call(read_suite_history, within)
    if tab == "tests":
        runs = suite["runs"]
        return await visit.render(
            "health_tests.html", tab=tab, tabs=TABS, days=days, choices=DAYS, suite=suite, summary=suite_summary(runs),
            charts=suite_charts(runs), newest=runs[::-1][:SHOWN_RUNS], took=took,
        )  # fmt: skip
    history = await visit.call(read_health_history, within)
    return await visit.render(
        "health.html", tab="trends", tabs=TABS, days=days, choices=DAYS, history=history, labels=LABELS,
        cards=metric_cards(history["metrics"]), uncounted=not_counted(history["metrics"]),
        warnings=warnings(history["metrics"], suite["reasons"]),
        may_collect=await visit.may("collect_health"), may_record=await visit.may("record_health_snapshot"),
    )  # fmt: skip


async def _coverage(visit: Visit) -> Response:
    folder, offset = visit.query.get("folder", "")[:1000], _number(visit.query.get("offset", ""))
    found = await visit.call(read_coverage_map, {"folder": folder, "offset": offset, "limit": PAGE})
    return await visit.render(
        "health_coverage.html", tab="coverage", tabs=TABS, found=found, crumbs=crumbs(found["folder"]), heat=heat,
        offset=offset, page_size=PAGE,
    )  # fmt: skip


@action("/health/collect")
async def collect(visit: Visit) -> Response:
    """Look at the project now: its commands run, and what they count is kept."""
    found = await visit.call("collect_health")
    counted = sum(value is not None for name, value in found["snapshot"].items() if name.endswith("_count"))
    words = f"Collected {counted} counts." if counted else "Nothing could be counted."
    return await visit.done(words, to=visit.url("/health"), refresh="health")


@action("/health/record")
async def record(visit: Visit) -> Response:
    """Keep counts that somebody made elsewhere; an empty field was not counted."""
    given = {name: visit.word(name) for name in LABELS}
    wrong = [LABELS[name] for name, text in given.items() if text and not _is_count(text)]
    if wrong:
        raise ValidationFailed(f"{', '.join(wrong)}: a whole number is needed", hint="leave out what was not counted")
    counts = {name: int(text) for name, text in given.items() if text}
    if not counts:
        raise ValidationFailed("there is no count", hint="fill in at least one")
    await visit.call("record_health_snapshot", {"counts": counts})
    return await visit.done("Recorded.", to=visit.url("/health"), refresh="health")


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 10


def _number(text: str) -> int:
    return int(text) if _is_count(text) else 0
