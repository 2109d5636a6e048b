"""What waits for a person: counted on every page, listed on Home, and kept current on pages that are open."""

from pathlib import Path

import pytest
import sqlalchemy as sa
from playwright.sync_api import TimeoutError as NotShown
from playwright.sync_api import expect

from rookery.asks.store import Asks, NewAsk
from rookery.core.errors import PermissionDenied, ServiceUnavailable
from rookery.db.tx import Tx
from rookery.domains.schedules.tables import schedules
from rookery.engine.owner_commands import configure_orchestrator
from rookery.engine.waiting import GRACE_MS, SILENT_MS, figures
from rookery.engine.waiting_items import what_waits
from rookery.identity.store import now_ms
from rookery.lifecycle.run_store import NewRun, Runs
from rookery.lifecycle.run_tables import agent_runs
from tests.domains.tracker.claimant import claimant
from tests.domains.tracker.desk import Desk
from tests.domains.tracker.reviewing import author
from tests.platform_fixtures import Fleet
from tests.web.asking import question
from tests.web.guest import Guest
from tests.web.site import LIMIT_MS, Viewer


@pytest.fixture
def desk(fleet: Fleet, tmp_path: Path) -> Desk:
    return Desk(fleet, tmp_path)


def counted(fleet: Fleet, tenant: str = "default") -> dict[str, int]:
    return {name: many for name, many in fleet.platform.database.direct(lambda tx: figures(tx, tenant)).items() if many}


async def listed(fleet: Fleet) -> dict[str, list[dict[str, object]]]:
    return (await fleet.platform.calls.run(fleet.owner, what_waits, {})).structured


def ask(tx: Tx, question: str = "Which colour?", session: str | None = None) -> str:
    agent = tx.scalar(sa.text("SELECT id FROM agents WHERE tenant = 'default'"))
    new = NewAsk(kind="question", agent_id=agent, question=question, key=question, batch_key=question, session=session)
    return Asks(tx, "default").open(new)[0].id


async def test_no_agent_learns_what_waits_for_people(fleet: Fleet) -> None:
    with pytest.raises(PermissionDenied):
        await fleet.platform.calls.run(fleet.actor(agent="default"), what_waits, {})


async def test_nobody_sees_what_waits_without_having_signed_in(guest: Guest) -> None:
    assert (await guest.get("/waiting?part=figures")).status_code == 303


async def test_nothing_waits_at_first_and_nothing_of_another_tenant_ever(fleet: Fleet, desk: Desk) -> None:
    await desk.issue(status="blocked")
    assert counted(fleet) == {"blocked": 1}
    assert desk.stranger.tenant == "other"
    assert counted(fleet, "other") == {}


async def test_questions_and_approvals_are_counted_apart(fleet: Fleet) -> None:
    fleet.platform.database.direct(ask, write=True)
    assert counted(fleet) == {"questions": 1}


async def test_an_open_pull_request_waits_for_a_person_unless_a_judge_would_come(fleet: Fleet, desk: Desk) -> None:
    at = await author(desk)
    await at.open()
    assert counted(fleet) == {"reviews": 1}
    found = (await listed(fleet))["reviews"]
    assert [(each["kind"], each["issue"], each["risk"]) for each in found] == [("review", at.issue.identifier, "low")]
    await fleet.platform.calls.run(desk.person("repo"), configure_orchestrator, {"enabled": True})
    assert counted(fleet) == {}


async def test_what_is_approved_waits_to_be_merged_whoever_judges(fleet: Fleet, desk: Desk) -> None:
    at = await author(desk)
    await at.open()
    await fleet.platform.calls.run(desk.person("repo"), configure_orchestrator, {"enabled": True})
    await desk.call(at.person, "approve_pr", reason="good")
    assert counted(fleet) == {"merges": 1}
    assert [each["kind"] for each in (await listed(fleet))["reviews"]] == ["merge"]


async def test_a_phase_that_is_claimed_waits_for_a_verdict_until_there_is_one(fleet: Fleet, desk: Desk) -> None:
    at = await claimant(desk)
    claim = await at.claim()
    assert counted(fleet) == {"reviews": 1}
    assert [each["kind"] for each in (await listed(fleet))["reviews"]] == ["phase_review"]
    verdict = {"phase": "research", "artifact_hash": at.arguments()["artifact_hash"], "reason": "good"}
    await desk.call(at.bound("judge", session="another"), "approve_phase", **verdict)
    assert counted(fleet) == {}, claim


async def test_a_blocked_issue_is_told_with_why_and_one_that_waits_for_subtasks_is_not(
    desk: Desk, fleet: Fleet
) -> None:
    issue = await desk.issue(status="in_progress")
    moved = {"issue_id": issue.id, "status": "blocked", "reason": "needs the key of the shop"}
    await desk.call(desk.owner, "set_issue_status", **moved)
    found = (await listed(fleet))["stuck"]
    assert [(each["kind"], each["issue"], each["reason"]) for each in found] == [
        ("blocked", issue.identifier, "needs the key of the shop")
    ]
    parent = await desk.issue("a parent")
    await desk.call(desk.actor("planner", parent), "create_subtask", title="a part", description="of it")
    assert desk.reload(parent).status == "blocked"
    assert counted(fleet) == {"blocked": 1}


async def test_runs_that_should_have_ended_are_stuck_but_not_while_they_wait_for_an_answer(fleet: Fleet) -> None:
    now, project = now_ms(), fleet.owner.project or ""

    def begin(tx: Tx) -> None:
        runs = Runs(tx, "default")
        late = runs.start(NewRun(project_id=project, key="late", deadline_ms=now - 2 * GRACE_MS))
        runs.start(NewRun(project_id=project, key="well", deadline_ms=now + GRACE_MS))
        silent = runs.start(NewRun(project_id=project, key="silent"))
        long_ago = sa.update(agent_runs).where(agent_runs.c.id == silent.id).values(updated_ms=now - 2 * SILENT_MS)
        tx.run(long_ago)
        assert late.id

    fleet.platform.database.direct(begin, write=True)
    assert counted(fleet) == {"late_runs": 2}
    assert {each["kind"] for each in (await listed(fleet))["stuck"]} == {"late_run", "silent_run"}
    fleet.platform.database.direct(lambda tx: ask(tx, session="late"), write=True)
    assert counted(fleet) == {"questions": 1, "late_runs": 1}


async def test_a_schedule_that_stopped_because_it_failed_is_stuck_and_one_paused_by_hand_is_not(fleet: Fleet) -> None:
    actions = [{"type": "custom", "prompt": "look"}]
    wish = {"name": "nightly", "cron_expression": "0 3 * * *", "schedule_actions": actions}
    await fleet.call(fleet.owner, "manage_schedule", action="create", agent_id="default", **wish)
    fleet.platform.database.direct(lambda tx: tx.run(sa.update(schedules).values(status="paused")), write=True)
    assert counted(fleet) == {}
    failed = sa.update(schedules).values(failures=5, reason="it failed 5 times in a row")
    fleet.platform.database.direct(lambda tx: tx.run(failed), write=True)
    assert counted(fleet) == {"stopped_schedules": 1}


async def test_a_question_about_an_issue_names_and_leads_to_it(owner: Guest, desk: Desk) -> None:
    issue = await desk.issue()
    question(owner.fleet, subject=issue.id)
    page = (await owner.get("/")).text
    assert f'href="/issues/{issue.identifier}"' in page
    assert issue.id not in page


async def test_the_figures_of_an_open_page_come_with_those_of_the_menu(owner: Guest, desk: Desk) -> None:
    await desk.issue(status="blocked")
    answer = await owner.part("/waiting", "figures")
    assert 'id="waiting"' in answer.text
    assert '<span class="count" id="count-stuck" hx-swap-oob="true">1' in answer.text
    assert '<span class="count" id="count-asks" hx-swap-oob="true" hidden>0' in answer.text
    assert "1 waiting for you" in await owner.words("/orchestrator")


async def test_a_page_is_shown_without_figures_if_they_cannot_be_had(
    owner: Guest, monkeypatch: pytest.MonkeyPatch
) -> None:
    def busy(tx: Tx, tenant: str) -> dict[str, int]:
        raise ServiceUnavailable("the database is busy", hint="try again")

    monkeypatch.setattr("rookery.web.waiting.figures", busy)
    assert "Nothing waits for you" in await owner.words("/orchestrator")


def test_a_question_appears_on_an_open_page_by_itself_and_goes_when_it_is_answered(viewer: Viewer) -> None:
    page = viewer.open("/")
    page.get_by_role("link", name="Nothing waits for you").wait_for()
    database = viewer.site.fleet.platform.database
    for more_tries in (True, True, False):
        asked = database.direct(ask, write=True)
        try:
            page.locator("#waiting .count", has_text="1").wait_for(timeout=LIMIT_MS / (3 if more_tries else 1))
            break
        except NotShown:
            # It came after the page was drawn and before its stream had begun.
            assert more_tries
            database.direct(lambda tx, asked=asked: Asks(tx, "default").withdraw(asked), write=True)
    page.locator("#waits").get_by_role("link", name="Which colour?").first.wait_for()
    expect(page.locator("#count-asks")).to_contain_text("1")
    viewer.check()
    viewer.site.call("answer_ask", ask_id=asked, answer="green")
    page.get_by_role("link", name="Nothing waits for you").wait_for()
    page.locator("#waits").get_by_text("Nothing waits for you").wait_for()
    viewer.check(axe=False)
