"""Health: trends, coverage and tests."""

import time
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from playwright.sync_api import Page, expect

from rookery.db.database import Database
from rookery.domains.health.tables import health_snapshots
from rookery.domains.tracker.tables import coverage
from rookery.identity.people import People
from rookery.lifecycle.suite_tables import test_health as suite_runs
from tests.platform_fixtures import Fleet
from tests.web.guest import Guest, words_of
from tests.web.site import Site, Viewer

DAY_MS = 86_400_000
VIEWS = ("/health", "/health?tab=coverage", "/health?tab=tests")


def fill(fleet: Fleet, days: int = 12) -> None:
    """A project that was looked at every day, with tests and with files that were examined."""
    actor, now = fleet.owner, time.time_ns() // 1_000_000

    common = {"tenant": "default", "project_id": actor.project}

    def work(tx: Any) -> None:
        for day in range(days):
            at = now - (days - day) * DAY_MS
            counts = {"todo_count": 10 + 2 * day, "tsc_error_count": 30 - 2 * day}
            details = {"missing": {"outdated": "no command is set"}, "samples": ["a.py:1 TODO <b>later</b>"]}
            made = {"id": f"hsn-{day}", "source": "collected", "details": details, "collected_ms": at}
            tx.run(sa.insert(health_snapshots).values(**common, **counts, **made))
            suite = {"issue_id": "iss-0", "test_count": 100 + day, "tests_removed": 1, "execution_time_ms": 900 * day}
            tx.run(sa.insert(suite_runs).values(**common, **suite, author="ada", at_ms=at))
        for name in ("src/<b>web</b>/a.py", "src/b.py", "docs/c.md"):
            row = {"file_path": name, "concept": "error_handling", "author": "scanner", "updated_ms": now}
            tx.run(
                sa.insert(coverage).values(**common, **row, status="has_issues" if name == "src/b.py" else "covered")
            )

    database: Database = fleet.platform.database
    database.direct(work, write=True)


@pytest.mark.parametrize("page", VIEWS)
async def test_whoever_is_not_signed_in_sees_nothing(guest: Guest, page: str) -> None:
    assert (await guest.get(page)).status_code == 303


async def test_a_viewer_looks_and_changes_nothing(owner: Guest) -> None:
    fill(owner.fleet)
    owner.fleet.platform.database.direct(lambda tx: People(tx, "default").add("Vera", "viewer", None), write=True)
    viewer = owner.signed_in("Vera")
    page = (await viewer.get("/health")).text
    assert "TODO notes" in words_of(page)
    assert "/health/record" not in page
    assert "/health/collect" not in page
    for address in ("/health/record", "/health/collect"):
        assert (await viewer.post(address, {"todos": "1"})).status_code == 403


async def test_a_form_without_its_token_changes_nothing(owner: Guest) -> None:
    assert (await owner.client.post("/health/record", data={"todos": "3"})).status_code == 403
    assert "Nothing has been counted yet" in await owner.words("/health")


async def test_another_project_has_its_own_figures(owner: Guest) -> None:
    fill(owner.fleet)
    await owner.fleet.call(owner.fleet.owner, "create_project", slug="shop")
    assert "Nothing has been counted yet" in await owner.words("/health?project=shop")
    assert "No file was examined yet" in await owner.words("/health?tab=coverage&project=shop")
    assert (await owner.get("/health?project=nowhere")).status_code == 404


@pytest.mark.parametrize(
    ("page", "words"),
    [
        ("/health", ("Nothing has been counted yet", "rookery projects create")),
        ("/health?tab=coverage", ("No file was examined yet", "rookery orchestrator configure")),
        ("/health?tab=tests", ("No run of the tests was recorded", "record_test_health")),
    ],
)
async def test_empty_pages_say_who_fills_them(owner: Guest, page: str, words: tuple[str, ...]) -> None:
    shown = await owner.words(page)
    assert all(each in shown for each in words)


async def test_each_count_has_a_chart_a_trend_and_a_table(owner: Guest) -> None:
    fill(owner.fleet)
    page = (await owner.get("/health")).text
    words = words_of(page)
    assert page.count("data-chart=") == 2
    assert "TODO notes went from 10 to 32" in words
    assert "getting worse" in words
    assert "improving" in words
    assert "Not counted: Failing tests" in words
    assert "<b>later</b>" not in page
    assert "Nothing was counted" not in await owner.words("/health?days=7")
    part = (await owner.part("/health?days=3", "figures")).text
    assert "<html" not in part
    assert part.count("data-chart=") == 2


async def test_counts_of_ones_own_are_recorded(owner: Guest) -> None:
    for wrong in ({}, {"todos": "many"}, {"todos": "-1"}):
        assert (await owner.post("/health/record", wrong)).status_code >= 400
    answer = await owner.post("/health/record", {"todos": "7", "hacks": ""})
    assert (answer.status_code, answer.headers["location"]) == (303, "/health")
    words = await owner.words("/health")
    assert "TODO notes no trend yet 7 now" in words
    assert "HACK notes no trend" not in words


async def test_a_project_is_looked_at_on_request(owner: Guest, tmp_path: Path) -> None:
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "a.py").write_text("# TODO: mend it\n")
    await owner.fleet.call(owner.fleet.owner, "create_project", slug="shop", path=str(folder))
    assert "Press Collect now" in await owner.words("/health?project=shop")
    answer = await owner.post("/health/collect?project=shop")
    assert (answer.status_code, answer.headers["location"]) == (303, "/health?project=shop")
    assert "TODO notes no trend yet 1 now" in await owner.words("/health?project=shop")


async def test_the_map_goes_from_folders_to_files(owner: Guest) -> None:
    fill(owner.fleet)
    words = await owner.words("/health?tab=coverage")
    assert "src/ 2 1 with issues" in words
    page = (await owner.get("/health?tab=coverage&folder=src")).text
    assert "b.py has issues" in words_of(page)
    assert "&lt;b&gt;web" in page
    assert 'class="heat-most"' in page
    assert "Nothing was examined in this folder" in await owner.words("/health?tab=coverage&folder=nowhere")


async def test_runs_of_the_tests_are_listed_with_the_slowest(owner: Guest) -> None:
    fill(owner.fleet)
    page = (await owner.get("/health?tab=tests")).text
    words = words_of(page)
    for said in ("111 tests", "12 removed", "9.9 s slowest run"):
        assert said in words, said
    assert page.count("data-chart=") == 2


def drawn(page: Page) -> list[str]:
    """The pictures of all charts on which something is painted."""
    return page.evaluate(
        """() => [...document.querySelectorAll(".chart canvas")].map((canvas) => {
          const blank = Object.assign(document.createElement("canvas"), { width: canvas.width, height: canvas.height });
          return canvas.toDataURL() === blank.toDataURL() ? "" : canvas.toDataURL();
        }).filter(Boolean)"""
    )


def test_charts_are_drawn_in_both_themes_and_follow_what_is_recorded(site: Site, viewer: Viewer) -> None:
    fill(site.fleet)
    page = viewer.open("/health")
    expect(page.locator(".chart canvas")).to_have_count(2)
    light = drawn(page)
    page.get_by_label("Switch between light and dark").click()
    dark = drawn(page)
    assert len(light) == len(dark) == 2
    assert not {*light} & {*dark}
    figures = page.get_by_text("Figures", exact=True).first
    figures.press("Enter")
    expect(page.get_by_role("region", name="Figures: Type errors over time")).to_be_visible()
    site.call("record_health_snapshot", counts={"todos": 5, "hacks": 4})
    expect(page.locator(".chart canvas")).to_have_count(3)
    assert len(drawn(page)) == 3
    viewer.check()
    page.get_by_role("link", name="Tests").click()
    expect(page.locator(".chart canvas")).to_have_count(2)
    viewer.check()
    page.get_by_role("link", name="Coverage").click()
    page.get_by_role("link", name="src/").press("Enter")
    expect(page.get_by_role("cell", name="has issues")).to_be_visible()
    viewer.check()
