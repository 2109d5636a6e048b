"""One look of the orchestrator: what it does of itself, in which order, and that nothing broken holds up the rest."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from rookery.around.audit import audit_log
from rookery.engine.dispatches import Dispatches, NewDispatch
from rookery.engine.leading import Deposed, Leadership
from rookery.engine.project_settings import OrchestratorProjects
from rookery.engine.tables import dispatches, orchestrator_leaders
from rookery.engine.tick import Report, Tick
from rookery.identity.store import IdentityStore
from rookery.lifecycle.issue_tables import issues
from tests.domains.tracker.claimant import claimant
from tests.domains.tracker.desk import Desk, git
from tests.platform_fixtures import Fleet


class Watch:
    """A desk whose leader ticks when it is told to. No worker runs, so what is dispatched stays queued."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self.lead = Leadership()
        self._database = desk.fleet.platform.database
        self.lead.term = self._database.direct(self.lead.claim, write=True)

    async def tick(self) -> Report:
        return await Tick(self.desk.fleet.platform, self.lead).run()

    def enable(self, slug: str = "repo", **settings: Any) -> None:
        def work(tx: Any) -> None:
            project = IdentityStore(tx, "default").project(slug)
            OrchestratorProjects(tx, "default").update(project.id, enabled=True, **settings)

        self._database.direct(work, write=True)

    def dispatched(self) -> list[Any]:
        return list(self.desk.rows(sa.select(dispatches).order_by(dispatches.c.created_ms, dispatches.c.id)))

    async def comments(self, issue: Any) -> list[str]:
        told = await self.desk.call(self.desk.owner, "get_issue", issue_id=issue.id)
        return [each["content"] for each in told.comments]


@pytest.fixture
def watch(database_url: str, make_fleet: Callable[..., Fleet], tmp_path: Path) -> Watch:
    return Watch(Desk(make_fleet(database_url, extra={}, runtime="scripted"), tmp_path))


async def test_a_leader_that_was_deposed_starts_nothing(watch: Watch) -> None:
    await watch.desk.git_project()
    watch.enable()
    await watch.desk.issue(project="repo", status="todo")
    watch.desk.change(sa.update(orchestrator_leaders).values(holder="another"))
    with pytest.raises(Deposed):
        await watch.tick()
    assert watch.dispatched() == []


async def test_nothing_is_started_in_a_project_that_nobody_switched_on(watch: Watch) -> None:
    await watch.desk.git_project()
    await watch.desk.issue(project="repo", status="todo")
    assert (await watch.tick()).started == 0
    assert watch.dispatched() == []


async def test_a_ready_issue_is_dispatched_once_and_recorded(watch: Watch) -> None:
    await watch.desk.git_project()
    watch.enable()
    issue = await watch.desk.issue(project="repo", status="todo")
    assert (await watch.tick()).started == 1
    assert (await watch.tick()).started == 0
    [row] = watch.dispatched()
    assert (row.issue_id, row.work, row.role, row.phase, row.state) == (issue.id, "phase", "worker", "ready", "queued")
    tools = watch.desk.rows(sa.select(audit_log.c.tool, audit_log.c.subject).where(audit_log.c.issue == issue.id))
    assert ("orchestrator_dispatch", "orchestrator") in [tuple(each) for each in tools]


async def test_who_waits_for_what_was_cancelled_is_told_and_goes_on_once_it_depends_on_nothing(watch: Watch) -> None:
    await watch.desk.git_project()
    watch.enable()
    first = await watch.desk.issue("first", project="repo", status="todo")
    second = await watch.desk.issue("second", project="repo", status="todo", depends_on=[first.identifier])
    person = watch.desk.person("repo")
    await watch.desk.call(person, "set_issue_status", issue_id=first.id, status="cancelled")
    assert (await watch.tick()).started == 0
    assert (watch.desk.reload(second).status, watch.desk.reload(second).blocked_on) == ("blocked", "person")
    assert f"depends on {first.identifier}, which was cancelled" in (await watch.comments(second))[-1]
    told = await watch.comments(second)
    await watch.tick()
    assert await watch.comments(second) == told
    await watch.desk.call(person, "edit_issue", issue_id=second.id, depends_on=[])
    await watch.desk.call(person, "set_issue_status", issue_id=second.id, status="todo")
    assert (await watch.tick()).started == 1


async def test_claims_are_acted_on_also_where_nobody_is_dispatched(watch: Watch) -> None:
    at = await claimant(watch.desk)
    await at.claim()
    assert (await watch.tick()).advanced == 1
    assert watch.desk.reload(at.issue).status == "review"


async def test_a_contract_with_bad_yaml_ends_at_a_person_and_the_other_issues_go_on(watch: Watch) -> None:
    at = await claimant(watch.desk)
    await at.claim()
    repository = watch.desk.folder / "repo"
    folder = repository / "prompts" / "phases"
    folder.mkdir(parents=True)
    (folder / "research.md").write_text("---\nphase: [research\n---\nbody\n", encoding="utf-8")
    git(repository, "add", "-A")
    git(repository, "commit", "-q", "-m", "a broken contract")
    watch.enable()
    other = await watch.desk.issue("another", project="repo", status="todo")

    report = await watch.tick()
    assert report.failures != []
    assert report.started == 1
    row = watch.desk.reload(at.issue)
    assert (row.status, row.blocked_on) == ("blocked", "person")
    assert "contract" in (await watch.comments(at.issue))[-1]
    assert [each.issue_id for each in watch.dispatched()] == [other.id]
    told = await watch.comments(at.issue)
    await watch.tick()
    assert await watch.comments(at.issue) == told


async def test_a_claim_goes_on_when_the_contract_is_mended_and_a_person_has_unblocked_it(watch: Watch) -> None:
    at = await claimant(watch.desk)
    await at.claim()
    repository = watch.desk.folder / "repo"
    folder = repository / "prompts" / "phases"
    folder.mkdir(parents=True)
    (folder / "research.md").write_text("---\nphase: [research\n---\nbody\n", encoding="utf-8")
    git(repository, "add", "-A")
    git(repository, "commit", "-q", "-m", "a broken contract")
    await watch.tick()
    git(repository, "rm", "-q", "prompts/phases/research.md")
    git(repository, "commit", "-q", "-m", "mended")
    await watch.desk.call(watch.desk.person("repo"), "set_issue_status", issue_id=at.issue.id, status="todo")
    assert (await watch.tick()).advanced == 1
    assert watch.desk.reload(at.issue).status == "review"


async def test_a_phase_is_left_only_by_the_label_that_skips_it(watch: Watch) -> None:
    await watch.desk.git_project()
    watch.enable()
    skipped = await watch.desk.issue("a", phase="research", project="repo", status="todo", labels=["skip:research"])
    kept = await watch.desk.issue("b", phase="research", project="repo", status="todo", labels=["skip:architecture"])
    assert (await watch.tick()).skipped == 1
    assert watch.desk.reload(skipped).phase == "architecture"
    assert watch.desk.reload(kept).phase == "research"


async def test_after_its_retries_an_issue_is_blocked_with_what_went_wrong(watch: Watch) -> None:
    await watch.desk.git_project()
    watch.enable(max_retries=0)
    issue = await watch.desk.issue(project="repo", status="todo")
    await watch.tick()
    [row] = watch.dispatched()
    database = watch.desk.fleet.platform.database
    database.direct(lambda tx: Dispatches(tx, "default").end(row.id, "failed", "the agent fell asleep"), write=True)
    assert (await watch.tick()).blocked == 1
    assert watch.desk.reload(issue).status == "blocked"
    assert "the agent fell asleep" in (await watch.comments(issue))[-1]
    assert (await watch.tick()).blocked == 0


async def test_what_waits_is_counted_by_its_reason(watch: Watch) -> None:
    await watch.desk.git_project()
    watch.enable(max_agents=1)
    for number in range(3):
        await watch.desk.issue(f"the {number}th", project="repo", status="todo")
    report = await watch.tick()
    assert report.started == 1
    assert report.waits == {"cap_project": 2}


async def test_an_issue_that_is_cancelled_takes_its_dispatch_along(watch: Watch) -> None:
    await watch.desk.git_project()
    watch.enable()
    issue = await watch.desk.issue(project="repo", status="todo")
    await watch.tick()
    await watch.desk.call(watch.desk.person("repo"), "set_issue_status", issue_id=issue.id, status="cancelled")
    assert (await watch.tick()).corrected == 1
    [row] = watch.dispatched()
    assert (row.state, row.outcome, row.error) == ("ended", "cancelled", "the issue is cancelled")


async def test_a_project_whose_folder_is_gone_holds_up_no_other(watch: Watch) -> None:
    gone = await watch.desk.git_project("gone")
    await watch.desk.git_project()
    for slug in ("gone", "repo"):
        watch.enable(slug, scan_concepts=["error_handling"])
    gone.rename(gone.with_name("elsewhere"))
    issue = await watch.desk.issue(project="repo", status="todo")
    await watch.tick()
    assert issue.id in [each.issue_id for each in watch.dispatched()]


async def test_two_who_dispatch_the_same_issue_at_once_make_one_dispatch(watch: Watch) -> None:
    await watch.desk.git_project()
    issue = await watch.desk.issue(project="repo", status="todo")
    new = NewDispatch(
        project_id=issue.project_id, issue_id=issue.id, work="phase", role="worker", agent="agt", phase="ready"
    )
    database = watch.desk.fleet.platform.database
    made = [database.direct(lambda tx: Dispatches(tx, "default").queue(new), write=True) for _ in range(2)]
    assert made[0] is not None
    assert made[1] is None
    assert watch.desk.rows(sa.select(issues.c.status).where(issues.c.id == issue.id))[0].status == "todo"
