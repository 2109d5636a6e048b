"""Two runs side by side."""

from collections.abc import Callable
from typing import Any

from playwright.sync_api import expect

from rookery.web.run_compare import aligned, tool_pairs
from tests.domains.runs.told import called, told
from tests.web.guest import Guest
from tests.web.running import Runners, usual_events
from tests.web.site import PHONE, Site, Viewer


def step(kind: str, tool: str = "", outcome: str = "") -> dict[str, Any]:
    return {"kind": kind, "tool": tool, "outcome": outcome, "title": tool or kind}


def test_runs_that_do_the_same_do_not_part() -> None:
    steps = [step("input"), step("tool", "Bash", "ok"), step("result")]
    assert [pair.differs for pair in aligned(steps, list(steps))] == [False] * 3


def test_the_first_difference_is_marked_and_what_follows_is_aligned_again() -> None:
    a = [step("input"), step("tool", "Read"), step("tool", "Bash")]
    b = [step("input"), step("tool", "Grep"), step("tool", "Edit"), step("tool", "Bash")]
    pairs = aligned(a, b)
    assert [(pair.a and pair.a["tool"], pair.b and pair.b["tool"]) for pair in pairs] == [
        ("", ""),
        ("Read", "Grep"),
        (None, "Edit"),
        ("Bash", "Bash"),
    ]
    assert [pair.first for pair in pairs] == [False, True, False, False]


def test_the_same_call_with_another_outcome_is_a_difference() -> None:
    (pair,) = aligned([step("tool", "Bash", "ok")], [step("tool", "Bash", "failed")])
    assert (pair.differs, pair.first) == (True, True)


def test_lines_of_status_are_no_difference() -> None:
    assert aligned([step("status"), step("text")], [step("text"), step("session")])[0].differs is False


def test_tools_are_paired_by_name() -> None:
    bash = {"tool": "Bash", "calls": 2, "failed": 0, "took_ms": 1}
    pairs = tool_pairs([bash], [{**bash, "failed": 1}, {"tool": "Read", "calls": 1, "failed": 0, "took_ms": 1}])
    assert [(pair.tool, pair.a is None, pair.differs) for pair in pairs] == [
        ("Bash", False, True),
        ("Read", True, True),
    ]


async def test_without_two_runs_the_page_says_how_to_choose(owner: Guest) -> None:
    assert "Two runs are needed" in await owner.words("/runs/compare")
    assert "Two runs are needed" in await owner.words("/runs/compare?run=run-1")


async def test_a_run_that_is_not_there_cannot_be_compared(owner: Guest) -> None:
    run = Runners(owner.fleet).done()
    assert (await owner.get(f"/runs/compare?a={run}&b=run-2")).status_code == 404


async def test_two_runs_are_shown_beside_each_other(owner: Guest) -> None:
    runners = Runners(owner.fleet)
    a = runners.done(*usual_events())
    b = runners.done(*usual_events()[:2], *called("c1", "Grep", 5000, 6000), status="failed", error="it gave up")
    words = await owner.words(f"/runs/compare?a={a}&b={b}")
    for said in ("They part at step 3", "first difference", "it gave up", "get_issue", "Grep", "$0.42"):
        assert said in words, said
    assert "Both did the same" in await owner.words(f"/runs/compare?run={a}&run={a}")


def test_the_owner_chooses_two_runs_and_sees_where_they_part(site: Site, viewer: Viewer) -> None:
    runners = Runners(site.fleet)
    runs = [
        runners.done(*usual_events()),
        runners.done(*usual_events()[:4], told("error", 9000, message="out of time")),
    ]
    page = viewer.open("/runs")
    for run in runs:
        page.get_by_label(run).check()
    page.get_by_role("button", name="Compare two chosen runs").press("Enter")
    expect(page.get_by_role("heading", name="Step by step")).to_be_visible()
    page.get_by_role("link", name="They part at step").click()
    expect(page.locator("#first-difference")).to_be_in_viewport()
    viewer.check()


def test_on_a_phone_both_runs_are_seen_without_scrolling_sideways(
    site: Site, make_viewer: Callable[..., Viewer]
) -> None:
    runners = Runners(site.fleet)
    a, b = (runners.done(*usual_events()) for _ in range(2))
    viewer = make_viewer(site, PHONE).sign_in()
    page = viewer.open(f"/runs/compare?a={a}&b={b}")
    for row in page.locator("table.compare-facts tr").all():
        box = row.locator("> *").last.bounding_box()
        assert box is not None
        assert box["x"] + box["width"] <= PHONE["width"]
    viewer.check()
