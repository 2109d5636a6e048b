"""What runs are called: by what they are about, in lists, on their pages and in the title of the window."""

import re

import pytest
import sqlalchemy as sa

from rookery.db.tx import Tx
from rookery.domains.schedules.tables import executions
from rookery.identity.store import IdentityStore
from rookery.lifecycle.run_tables import agent_runs
from rookery.sessions.tables import agent_sessions
from rookery.web.run_names import Origin, run_name
from tests.web.guest import Guest, words_of
from tests.web.running import Runners, usual_events
from tests.web.test_workflow_pages import make
from tests.web.test_workflow_pages import run as run_workflow
from tests.web.watching import watched

EVIL = "<script>alert(1)</script>\u202e"
RUN = {
    "issue": None, "issue_title": None, "session_title": None, "kind": None, "profile": None, "phase": None,
    "attempt": 1, "project": "shop", "agent_name": None,
}  # fmt: skip


@pytest.fixture
def runners(guest: Guest) -> Runners:
    return Runners(guest.fleet)


def heading(page: str) -> str:
    found = re.search(r"<h1>(.*?)</h1>", page, re.S)
    assert found
    return words_of(found[1])


def window_title(page: str) -> str:
    return words_of(page.split("<title>")[1].split("</title>")[0])


async def a_schedule(owner: Guest, name: str = "Nightly review") -> str:
    """The id of an execution of a schedule of that name."""
    made = {"name": name, "cron_expression": "0 9 * * *", "schedule_actions": [{"type": "custom", "prompt": "look"}]}
    schedule = (await owner.fleet.call(owner.fleet.owner, "manage_schedule", action="create", **made)).schedules[0]
    assert (await owner.post(f"/automation/schedules/{schedule['id']}/run")).status_code == 303
    of_it = executions.c.schedule_id == schedule["id"]
    return owner.fleet.platform.database.direct(lambda tx: tx.scalar(sa.select(executions.c.id).where(of_it)))


@pytest.mark.parametrize(
    ("known", "title", "about"),
    [
        (
            {"issue": "SYM-1", "issue_title": "login fails", "kind": "work", "profile": "worker", "phase": "build"},
            "SYM-1 login fails · worker · build",
            "work · shop",
        ),
        ({"issue": "SYM-1", "kind": "work", "attempt": 3}, "SYM-1", "work · attempt 3 · shop"),
        ({"issue": "SYM-1", "kind": "session", "session_title": "Mend it"}, "Mend it", "session · shop"),
        ({"issue": "SYM-1", "kind": "session", "session_title": ""}, "SYM-1", "session · shop"),
        ({"kind": "message", "profile": "judge", "session_title": "Why?"}, "Why?", "message · judge · shop"),
        ({"kind": "a2a", "agent_name": "heron"}, "A2a of heron", "a2a · shop"),
        ({}, "Run", "run · shop"),
    ],
)  # fmt: skip
def test_a_run_is_called_by_what_it_is_about(known: dict[str, object], title: str, about: str) -> None:
    name = run_name({**RUN, **known}, None)
    assert (name.title, name.about) == (title, about)


def test_what_had_the_run_names_it_before_anything_else() -> None:
    known = {**RUN, "kind": "schedule", "issue": "SYM-1", "session_title": "# Review"}
    assert run_name(known, Origin("Schedule", "Nightly", "/automation")).title == "Nightly"


async def test_a_run_of_an_issue_is_headed_by_it(owner: Guest, runners: Runners) -> None:
    issue = await owner.fleet.issue("login fails")
    run = runners.done(*usual_events(), issue_id=issue, profile="worker", phase="build", kind="orchestrator")
    name = "DEF-001 login fails · worker · build"
    page = (await owner.get(f"/runs/{run}")).text
    assert heading(page) == f"{name} {run}"
    assert window_title(page) == f"{name} · Rookery"
    assert window_title((await owner.get(f"/runs/{run}/steps/1")).text) == f"Step 1 of {name} · Rookery"
    for listed in (f"/runs/compare?a={run}&b={run}", "/runs"):
        assert f"{name} {run}" in await owner.words(listed)


async def test_a_run_of_a_session_is_headed_by_its_title(owner: Guest) -> None:
    session = await watched(owner.fleet)

    def name(tx: Tx) -> None:
        tx.run(sa.update(agent_runs).where(agent_runs.c.id == session.run).values(session=session.id))
        tx.run(sa.update(agent_sessions).where(agent_sessions.c.id == session.id).values(title="Mend the login"))

    owner.fleet.platform.database.direct(name, write=True)
    assert heading((await owner.get(f"/runs/{session.run}")).text) == f"Mend the login {session.run}"
    assert f"Mend the login {session.run}" in await owner.words("/runs")


async def test_a_run_of_a_schedule_is_headed_by_its_name_and_leads_there(owner: Guest, runners: Runners) -> None:
    execution = await a_schedule(owner)
    run = runners.done(kind="schedule", key=f"execution:{execution}:0")
    page = (await owner.get(f"/runs/{run}")).text
    assert heading(page) == f"Nightly review {run}"
    assert f'/executions/{execution}">Nightly review</a>' in page
    assert f"Nightly review {run}" in await owner.words("/runs")


async def test_home_calls_what_runs_now_by_what_it_is_about(owner: Guest, runners: Runners) -> None:
    session = await watched(owner.fleet)

    def name(tx: Tx) -> None:
        tx.run(sa.update(agent_runs).where(agent_runs.c.id == session.run).values(session=session.id))
        tx.run(sa.update(agent_sessions).where(agent_sessions.c.id == session.id).values(title=f"Mend it {EVIL}"))

    owner.fleet.platform.database.direct(name, write=True)
    runners.start(kind="schedule", key=f"execution:{await a_schedule(owner)}:0")
    runners.start(kind="work_task")
    runners.start(issue_id=await owner.fleet.issue("login fails"))
    page = (await owner.get("/?part=running", headers={"HX-Request": "true"})).text
    shown = words_of(page)
    for each in ("Mend it <script>alert(1)</script>", "Nightly review Follow", "Work task of default", "DEF-001 login"):
        assert each in shown
    assert "<script>alert" not in page


async def test_a_run_of_a_workflow_is_headed_by_its_name_and_leads_there(owner: Guest, runners: Runners) -> None:
    at = await run_workflow(owner, await make(owner), repo="shop")
    run = runners.done(kind="workflow", key=f"node:{at.rpartition('/')[2]}:c")
    page = (await owner.get(f"/runs/{run}")).text
    assert heading(page) == f"Review {run}"
    assert f'href="{at}">Review</a>' in page


async def test_the_run_of_a_workflow_itself_is_headed_by_the_workflow(owner: Guest) -> None:
    at = await run_workflow(owner, await make(owner), repo="shop")
    workflow, run = at.split("/runs/")
    page = (await owner.get(at)).text
    assert heading(page) == f"Review {run}"
    assert window_title(page) == "Review, a run · Rookery"
    assert re.search(rf'<a href="{at}">Review</a><br><small[^>]*>{run}</small>', (await owner.get(workflow)).text)


async def test_a_name_of_another_tenant_is_not_told(owner: Guest, runners: Runners) -> None:
    execution = await a_schedule(owner, "Theirs")
    at = await run_workflow(owner, await make(owner, name="Theirs"), repo="shop")

    def theirs(tx: Tx) -> None:
        IdentityStore(tx, "other").set_up()
        for table in ("schedule_executions", "workflow_runs"):
            tx.run(sa.text(f"UPDATE {table} SET tenant = 'other'"))

    owner.fleet.platform.database.direct(theirs, write=True)
    for kind, key in (("schedule", f"execution:{execution}:0"), ("workflow", f"node:{at.rpartition('/')[2]}:c")):
        run = runners.done(kind=kind, key=key)
        assert "Theirs" not in await owner.words(f"/runs/{run}")


async def test_a_key_that_names_nothing_leaves_the_kind_of_the_run(owner: Guest, runners: Runners) -> None:
    for kind, key in (
        ("schedule", "execution:gone:0"),
        ("workflow", "node:gone:c"),
        ("workflow", "node:"),
        ("work", ""),
    ):
        run = runners.done(kind=kind, key=key)
        assert heading((await owner.get(f"/runs/{run}")).text) == f"{kind.capitalize()} of default {run}"


async def test_names_that_others_gave_are_shown_harmless(owner: Guest, runners: Runners) -> None:
    runs = [
        runners.done(issue_id=await owner.fleet.issue(EVIL)),
        runners.done(kind="schedule", key=f"execution:{await a_schedule(owner, EVIL.strip())}:0"),
    ]
    for address in ("/runs", *(f"/runs/{run}" for run in runs), f"/runs/compare?a={runs[0]}&b={runs[1]}"):
        page = (await owner.get(address)).text
        assert "<script>alert" not in page, address
        assert "\u202e" not in page, address
