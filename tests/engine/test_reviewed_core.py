"""What must not go wrong while nobody looks: loops, one fault that stops all, clocks that differ, who may see what."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from rookery.domains.tracker import store
from rookery.engine import leading
from rookery.engine.dispatches import Dispatches
from rookery.engine.leading import Deposed, Leadership
from rookery.engine.tables import orchestrator_leaders, orchestrator_projects
from rookery.engine.tick import Report, Tick
from rookery.lifecycle.pauses import Pauses
from tests.domains.tracker.desk import Desk
from tests.engine.test_approvals import approved, main
from tests.engine.test_tick import Watch
from tests.engine.worlds import a_project, a_world, an_issue, started, the_wait
from tests.platform_fixtures import Fleet


@pytest.fixture
def watch(database_url: str, make_fleet: Callable[..., Fleet], tmp_path: Path) -> Watch:
    return Watch(Desk(make_fleet(database_url, extra={}, runtime="scripted"), tmp_path))


def end_last(watch: Watch, outcome: Any, why: str = "it was refused") -> None:
    row = watch.dispatched()[-1]
    database = watch.desk.fleet.platform.database
    database.direct(lambda tx: Dispatches(tx, "default").end(row.id, outcome, why), write=True)


async def test_what_is_refused_each_time_is_not_dispatched_at_every_tick(watch: Watch) -> None:
    await watch.desk.git_project()
    watch.enable()
    issue = await watch.desk.issue(project="repo", status="todo")
    times, report = 0, Report()
    for _ in range(8):
        report = await watch.tick()
        if report.started == 0:
            break
        times += 1
        end_last(watch, "cancelled")
    assert times == 4
    assert report.waits == {"retry": 1}
    told = await watch.desk.call(watch.desk.person("repo"), "why_waiting", issue_id=issue.id)
    assert told.code == "retry"
    assert "it was cancelled 4 times" in told.reason


async def test_a_project_whose_settings_cannot_be_read_holds_up_no_other(watch: Watch) -> None:
    await watch.desk.git_project("broken")
    await watch.desk.git_project()
    for slug in ("broken", "repo"):
        watch.enable(slug)
    hurt = await watch.desk.issue("hurt", project="broken", status="todo")
    issue = await watch.desk.issue(project="repo", status="todo")
    bad = sa.update(orchestrator_projects).where(orchestrator_projects.c.project_id == hurt.project_id)
    watch.desk.change(bad.values(settings={"max_agents": "many"}))
    report = await watch.tick()
    assert [each.issue_id for each in watch.dispatched()] == [issue.id]
    assert [(each.tenant, "project broken" in each.text) for each in report.failures] == [("default", True)]
    told = await watch.desk.call(watch.desk.person("broken"), "why_waiting", issue_id=hurt.id)
    assert "cannot be read" in told.reason


async def test_an_unblocked_issue_begins_anew_though_the_clocks_of_server_and_database_differ(
    watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    await watch.desk.git_project()
    watch.enable(max_retries=0)
    issue = await watch.desk.issue(project="repo", status="todo")
    await watch.tick()
    end_last(watch, "failed")
    assert (await watch.tick()).blocked == 1
    monkeypatch.setattr(store, "now_ms", lambda: time.time_ns() // 1_000_000 - 3_600_000)
    await watch.desk.call(watch.desk.person("repo"), "set_issue_status", issue_id=issue.id, status="todo")
    report = await watch.tick()
    assert (report.blocked, report.started) == (0, 1)


async def test_what_was_decided_in_one_term_is_not_carried_out_in_a_later_one(watch: Watch) -> None:
    await watch.desk.git_project()
    watch.enable()
    await watch.desk.issue(project="repo", status="todo")
    asleep = Tick(watch.desk.fleet.platform, watch.lead)
    database = watch.desk.fleet.platform.database
    for each in (Leadership(), watch.lead):
        watch.desk.change(sa.update(orchestrator_leaders).values(until_ms=0))
        each.term = database.direct(each.claim, write=True)
    assert watch.lead.term == 3
    with pytest.raises(Deposed):
        await asleep.run()
    assert watch.dispatched() == []
    assert (await watch.tick()).started == 1


async def test_nothing_is_merged_without_a_person_while_everything_is_paused(watch: Watch) -> None:
    at = await approved(watch.desk, auto=True)
    watch.enable()
    before = main(at)
    database = watch.desk.fleet.platform.database
    database.direct(lambda tx: Pauses(tx, "default").pause("all", by="someone"), write=True)
    await watch.tick()
    assert (at.prs()[0].status, main(at)) == ("approved", before)
    database.direct(lambda tx: Pauses(tx, "default").resume("all"), write=True)
    await watch.tick()
    assert at.prs()[0].status == "merged"


@pytest.mark.parametrize("budget", [4.03, 8.05, 0.29, 1.001])
def test_a_budget_that_is_spent_to_the_last_cent_is_used_up(budget: float) -> None:
    project = a_project(issue_budget_usd=budget)
    spent = round(budget * 1_000_000)
    assert the_wait(a_world(an_issue(spent_micros=spent), project=project)).code == "budget_issue"
    assert started(a_world(an_issue(spent_micros=spent - 1), project=project)) == ["P-001"]


def test_a_process_that_the_machine_hides_is_not_taken_for_dead(monkeypatch: pytest.MonkeyPatch) -> None:
    alive = Leadership().me
    monkeypatch.setattr(leading, "_began", lambda pid: "")
    assert not leading._has_ended(alive)  # pyright: ignore[reportPrivateUsage]
