"""The list of runs, the page of one, and its steps, without a browser."""

import pytest
import sqlalchemy as sa

from rookery.db.tx import Tx
from rookery.identity.people import People
from rookery.identity.store import IdentityStore
from rookery.lifecycle.run_store import NewRun, Runs
from rookery.lifecycle.run_tables import agent_runs
from rookery.sessions.store import SessionRows
from tests.domains.runs.told import called, told
from tests.web.asking import looking_on
from tests.web.guest import Guest, words_of
from tests.web.running import Runners, usual_events
from tests.web.watching import watched

PAGES = ("/runs", "/runs/run-1", "/runs/compare", "/runs/run-1/steps/1", "/runs/run-1/events/1")


@pytest.fixture
def runners(guest: Guest) -> Runners:
    return Runners(guest.fleet)


@pytest.mark.parametrize("page", PAGES)
async def test_whoever_is_not_signed_in_sees_no_run(guest: Guest, page: str) -> None:
    answer = await guest.get(page)
    assert answer.status_code == 303
    assert answer.headers["location"].startswith("/sign-in")


@pytest.mark.parametrize("page", PAGES[1:2] + PAGES[3:])
async def test_a_run_that_is_not_there_is_not_found(owner: Guest, page: str) -> None:
    assert (await owner.get(page)).status_code == 404


async def test_a_run_of_another_tenant_is_not_there(owner: Guest) -> None:
    def theirs(tx: object) -> str:
        IdentityStore(tx, "other").set_up()  # pyright: ignore[reportArgumentType]
        return Runs(tx, "other").start(NewRun(project_id="prj-9")).id  # pyright: ignore[reportArgumentType]

    run = owner.fleet.platform.database.direct(theirs, write=True)
    for page in (f"/runs/{run}", f"/runs/{run}/steps/1", f"/runs/{run}/events/1", f"/runs/compare?a={run}&b={run}"):
        assert (await owner.get(page)).status_code == 404, page
    assert run not in await owner.words("/runs")


async def test_a_viewer_sees_runs(owner: Guest, runners: Runners) -> None:
    run = runners.done(*usual_events())
    owner.fleet.platform.database.direct(lambda tx: People(tx, "default").add("Vera", "viewer", None), write=True)
    viewer = owner.signed_in("Vera")
    assert run in await viewer.words("/runs")
    assert "Run the tests" in await viewer.words(f"/runs/{run}")


async def test_only_the_turn_that_its_session_is_at_can_be_stopped(owner: Guest) -> None:
    session = await watched(owner.fleet)
    rows, database = SessionRows, owner.fleet.platform.database
    page = f"/runs/{session.run}"

    def of_session(tx: Tx) -> None:
        tx.run(sa.update(agent_runs).where(agent_runs.c.id == session.run).values(session=session.id))

    def begin(tx: Tx) -> None:
        rows(tx, "default").began(rows(tx, "default").of(session.id), session.run)

    def interrupts() -> int:
        return database.direct(lambda tx: rows(tx, "default").of(session.id)).interrupts

    database.direct(of_session, write=True)
    assert "Stop it" not in await owner.words(page)
    assert (await owner.post(f"{page}/stop")).status_code == 409
    database.direct(begin, write=True)
    viewer = looking_on(owner)
    assert "Stop it" not in await viewer.words(page)
    assert (await viewer.post(f"{page}/stop")).status_code == 403
    assert (await owner.client.post(f"{page}/stop")).status_code == 403
    assert interrupts() == 0
    assert "Stop it" in await owner.words(page)
    assert (await owner.post(f"{page}/stop")).headers["location"].startswith(page)
    assert interrupts() == 1


async def test_without_runs_the_page_says_how_one_begins(owner: Guest) -> None:
    words = await owner.words("/runs")
    assert "No agent has run yet" in words
    assert "rookery sessions start" in words


async def test_the_list_is_filtered_by_its_address(owner: Guest, runners: Runners) -> None:
    issue = await owner.fleet.issue()
    good = runners.done(*usual_events(), issue_id=issue)
    bad = runners.done(status="failed", error="the disk is full", kind="session")
    for address, there, gone in (
        ("?status=failed", bad, good),
        ("?kind=work", good, bad),
        ("?issue=DEF-1", good, bad),
        ("?q=look+at+the+LOGIN", good, bad),
        ("?q=disk+is", bad, good),
    ):
        words = await owner.words(f"/runs{address}")
        assert there in words, address
        assert gone not in words, address
    both = await owner.words("/runs?agent=default&project=default")
    assert good in both
    assert bad in both
    assert "event 2 : I will look at the login first." in await owner.words("/runs?q=look+at")


@pytest.mark.parametrize("wrong", ["?status=odd", "?issue=NOPE-9", "?agent=nobody", "?cursor=!", "?q=" + "x" * 300])
async def test_a_filter_that_names_nothing_says_so_and_keeps_the_filters(owner: Guest, wrong: str) -> None:
    answer = await owner.get(f"/runs{wrong}")
    assert answer.status_code == 200
    assert 'role="alert"' in answer.text
    assert 'name="status"' in answer.text


async def test_older_runs_are_on_the_next_page(owner: Guest, runners: Runners) -> None:
    runs = [runners.start() for _ in range(52)]
    first = (await owner.get("/runs")).text
    older = first.split('rel="next"')[0].rsplit('href="', 1)[1].split('"')[0].replace("&amp;", "&")
    words = await owner.words(older)
    assert runs[0] in words
    assert runs[0] not in first
    assert runs[51] not in words


async def test_a_part_of_the_list_comes_by_itself(owner: Guest, runners: Runners) -> None:
    run = runners.start(*called("c1", "Bash", 0, 9)[:2], told("tool_status", 5, call_id="c1", tool="Bash", text="half"))
    part = (await owner.part("/runs", "rows")).text
    assert "<html" not in part
    assert run in part
    assert "half" in words_of(part)


async def test_the_page_of_a_run_tells_everything_about_it(owner: Guest, runners: Runners) -> None:
    issue = await owner.fleet.issue("login fails")
    run = runners.done(*usual_events(), issue_id=issue, base_ms=60_000, deadline_ms=9_999_999_999_999)
    page = (await owner.get(f"/runs/{run}")).text
    words = words_of(page)
    for told_there in (
        "$0.42",
        "12.0k",
        "900",
        "get_issue",
        "approved after 1 h",
        "login fails",
        "extended by",
        "failed",
    ):
        assert told_there in words, told_there
    assert 'href="/issues/DEF-001"' in page
    assert 'href="/agents/default"' in page
    assert "style=" not in page
    assert '<rect class="span tool failed"' in page


async def test_a_run_under_way_fetches_itself_and_an_ended_one_does_not(owner: Guest, runners: Runners) -> None:
    run = runners.start(told("text_delta", text="so"))
    page = (await owner.get(f"/runs/{run}")).text
    assert 'hx-trigger="runs from:body"' in page
    assert (await owner.part(f"/runs/{run}?seen=running-1", "trace")).status_code == 204
    runners.add(run, *called("c1", "Bash", 0, 9)[:2])
    part = await owner.part(f"/runs/{run}?seen=running-1", "trace")
    assert (part.status_code, "Tools at work" in part.text) == (200, True)
    runners.end(run)
    assert 'hx-trigger="runs' not in (await owner.get(f"/runs/{run}")).text


async def test_thousands_of_events_come_in_pages(owner: Guest, runners: Runners) -> None:
    events = [each for n in range(1000) for each in called(f"c{n}", f"tool_{n}", n * 10, n * 10 + 5)]
    run = runners.done(*events)
    first = await owner.words(f"/runs/{run}")
    assert "1 to 100 of 1,000" in first
    assert "tool_99 " in first
    assert "tool_999" in await owner.words(f"/runs/{run}?order=newest")
    assert "tool_150 " in await owner.words(f"/runs/{run}?offset=100")


async def test_a_step_has_its_input_and_result_and_is_kept_as_a_file(owner: Guest, runners: Runners) -> None:
    run = runners.done(*usual_events())
    words = await owner.words(f"/runs/{run}/steps/3?last=5")
    assert "Input" in words
    assert '"path": "src/login.py"' in words
    assert "as it is" in words
    part = await owner.part(f"/runs/{run}/steps/8?last=10", "detail")
    assert "<html" not in part.text
    assert "Failed with" in words_of(part.text)
    kept = await owner.get(f"/runs/{run}/events/4")
    assert kept.headers["content-disposition"] == f'attachment; filename="{run}-4.json"'
    assert kept.json()["payload"]["input"] == {"path": "src/login.py"}
    assert (await owner.get(f"/runs/{run}/steps/99")).status_code == 404
    assert (await owner.get(f"/runs/{run}/steps/0")).status_code == 404


async def test_what_agents_write_is_shown_harmless(owner: Guest, runners: Runners) -> None:
    evil = "<script>alert(1)</script>\u202e\x1b[31m" + "W" * 500
    result = told("tool_result", 9, call_id="c1", tool=evil, text=evil * 400, is_error=False, structured={evil: evil})
    events = [told("text_delta", text=evil), told("tool_call_start", 5, call_id="c1", tool=evil), result]
    run = runners.done(*events, status="failed", error=evil)
    for address in ("/runs", f"/runs/{run}", f"/runs/{run}/steps/2?last=3", "/runs?q=alert", f"/runs/{run}/events/3"):
        page = (await owner.get(address)).text
        assert "<script>alert" not in page or address.endswith("/events/3")
        assert "\u202e" not in page, address
        assert "\x1b" not in page, address
