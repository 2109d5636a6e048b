"""What the orchestrator does with pull requests in review: void, merge, record, tell; and what it leaves to people."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import sqlalchemy as sa

from rookery.core.errors import RookeryError, ServiceUnavailable
from rookery.domains.owner.notify_tables import owner_notifications as notifications
from rookery.domains.tracker import branch_merge
from rookery.domains.tracker.branch_sight import Sight
from rookery.domains.tracker.project_store import Gate, Projects, ProjectSettings
from rookery.domains.tracker.risk import GateResult
from rookery.domains.tracker.tables import pr_gates, prs
from rookery.engine.approvals import deed_for, look_at_approvals, merged_alone
from rookery.engine.project_settings import OrchestratorProjects, OrchestratorSettings
from rookery.engine.workspaces import changed_outside, marks_outside, site_of
from tests.domains.tracker.desk import Desk, git
from tests.domains.tracker.reviewing import PASSED, Author, author
from tests.platform_fixtures import Fleet


@pytest.fixture
def desk(database_url: str, make_fleet: Callable[..., Fleet], tmp_path: Path) -> Desk:
    return Desk(make_fleet(database_url, extra={}), tmp_path)


async def approved(desk: Desk, *, auto: bool = False, **values: Any) -> Author:
    at = await author(desk)
    await at.open()
    await desk.call(at.bound("judge"), "approve_pr", revision=1)
    set_up(desk, at, auto_merge=auto)
    if values:
        desk.change(sa.update(prs).values(**values))
    return at


def set_up(desk: Desk, at: Author, **settings: Any) -> None:
    desk.fleet.platform.database.direct(
        lambda tx: OrchestratorProjects(tx, "default").update(at.issue.project_id, **settings), write=True
    )


async def look(desk: Desk, at: Author) -> list[str]:
    return await look_at_approvals(desk.fleet.platform, "default", at.issue.project_id)


def main(at: Author) -> str:
    return git(at.repository, "rev-parse", "main").strip()


def told(desk: Desk) -> list[str]:
    return [row.message for row in desk.rows(sa.select(notifications))]


READ: Any = {"changed_files": 1, "files": [{"path": "a.py"}]}
LOW: Any = SimpleNamespace(risk_level="low", stats=READ)
PROJECT = ProjectSettings(
    project_id="p", slug="p", path=None, prefix=None, gates=(Gate(command="make test", label="Tests", required=True),)
)
GOOD = GateResult("make test", "Tests", 0, "", True)


def test_only_what_is_of_low_risk_and_passed_everything_is_merged_without_a_person() -> None:
    on, off = OrchestratorSettings(auto_merge=True), OrchestratorSettings()
    assert merged_alone(on, PROJECT, LOW, [GOOD])
    assert not merged_alone(off, PROJECT, LOW, [GOOD])
    for risk in ("medium", "high"):
        assert not merged_alone(on, PROJECT, SimpleNamespace(risk_level=risk, stats=READ), [GOOD])  # type: ignore[arg-type]
    assert not merged_alone(on, PROJECT, LOW, [])
    assert not merged_alone(on, PROJECT, LOW, [GOOD._replace(exit_code=1)])
    assert not merged_alone(on, PROJECT, LOW, [GOOD, GateResult("lint", "Lint", 1, "", True)])
    assert merged_alone(on, PROJECT, LOW, [GOOD, GateResult("lint", "Lint", 1, "", False)])


def test_what_follows_from_where_a_branch_stands() -> None:
    def of(status: str, *, tip: str | None = "a", merged: bool = False, told_ms: int | None = None) -> list[Any]:
        pr: Any = SimpleNamespace(status=status, head="a", branch="work", told_ms=told_ms)
        sight = Sight("b", {} if tip is None else {"work": tip}, frozenset({"a"} if merged else ()))
        return [deed_for(pr, sight, alone=alone) for alone in (True, False)]

    assert of("open") == [None, None]
    assert of("approved") == ["merge", "tell"]
    assert of("approved", told_ms=1) == [None, None]
    for moved in ("c", None):
        assert of("open", tip=moved) == of("approved", tip=moved) == ["void", "void"]
        assert of("approved", tip=moved, merged=True) == ["found", "found"]
    assert of("approved", merged=True) == ["found", "found"]
    assert of("open", merged=True) == [None, None]


async def test_a_project_without_pull_requests_or_without_a_folder_needs_no_git(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(desk.folder))
    platform = desk.fleet.platform
    (project,) = (await desk.call(desk.owner, "list_projects")).projects
    assert await look_at_approvals(platform, "default", project.id) == []


async def test_nothing_is_merged_unless_the_project_says_so(desk: Desk) -> None:
    at = await approved(desk)
    before = main(at)
    assert await look(desk, at) == [f"{at.issue.identifier}: waits for a person"]
    assert (at.prs()[0].status, at.status(), main(at)) == ("approved", "review", before)


@pytest.mark.parametrize("risk", ["medium", "high"])
async def test_more_than_low_risk_waits_for_a_person_whatever_the_project_says(desk: Desk, risk: str) -> None:
    at = await approved(desk, auto=True, risk_level=risk)
    before = main(at)
    await look(desk, at)
    assert (at.prs()[0].status, at.status(), main(at)) == ("approved", "review", before)
    assert [f"{risk} risk" in message for message in told(desk)] == [True]


async def test_a_gate_that_the_project_requires_and_that_did_not_pass_keeps_it_from_being_merged(desk: Desk) -> None:
    at = await author(desk)
    gates = [{"command": PASSED["command"], "label": PASSED["label"], "required": True}]
    await desk.call(at.person, "configure_project", gates=gates)
    await at.open(gate_results=[PASSED])
    await desk.call(at.bound("judge"), "approve_pr")
    set_up(desk, at, auto_merge=True)
    desk.change(sa.update(pr_gates).values(exit_code=1))
    before = main(at)
    await look(desk, at)
    assert (at.prs()[0].status, main(at)) == ("approved", before)


async def test_low_risk_is_merged_if_the_project_says_so_and_nobody_is_told(desk: Desk) -> None:
    at = await approved(desk, auto=True)
    assert await look(desk, at) == [f"{at.issue.identifier}: merged into main"]
    (row,) = at.prs()
    assert (row.status, row.merged_in, at.status()) == ("merged", main(at), "done")
    assert (
        git(at.repository, "log", "-1", "--format=%cn <%ce>").strip() == "orchestrator <orchestrator@rookery.invalid>"
    )
    assert (at.repository / "src/login.py").exists()
    assert (await look(desk, at), told(desk)) == ([], [])
    assert desk.rows(sa.text("SELECT count(*) FROM audit_log WHERE tool = 'orchestrator_merge_pr'"))[0][0] == 1


@pytest.mark.parametrize("method", ["ff", "merge"])
async def test_an_agent_that_works_meanwhile_is_not_blamed_for_a_merge(desk: Desk, method: str) -> None:
    at = await approved(desk, auto=True)
    set_up(desk, at, merge=method)
    platform = desk.fleet.platform
    project = platform.database.direct(lambda tx: Projects(tx, at.person).settings())
    site = site_of(project, OrchestratorSettings(), platform.settings)
    before = marks_outside(site)
    await look(desk, at)
    assert at.status() == "done"
    assert changed_outside(site, before) == []


async def test_it_is_merged_as_the_project_is_set_up(desk: Desk) -> None:
    at = await approved(desk, auto=True)
    set_up(desk, at, merge="ff")
    await look(desk, at)
    assert main(at) == at.prs()[0].head


async def test_many_who_look_at_once_merge_once(desk: Desk) -> None:
    at = await approved(desk, auto=True)
    ends = await asyncio.gather(*(look(desk, at) for _ in range(4)), return_exceptions=True)
    assert sum(end == [f"{at.issue.identifier}: merged into main"] for end in ends) == 1
    assert git(at.repository, "rev-list", "--merges", "--count", "main").strip() == "1"
    assert at.status() == "done"


async def test_what_cannot_be_merged_without_a_person_is_told_once_and_left_to_them(desk: Desk) -> None:
    at = await approved(desk, auto=True)
    (at.repository / "src").mkdir()
    (at.repository / "src/login.py").write_text("other\n", encoding="utf-8")
    git(at.repository, "add", "-A")
    git(at.repository, "commit", "-q", "-m", "another")
    assert await look(desk, at) == [f"{at.issue.identifier}: waits for a person"]
    assert (await look(desk, at), await look(desk, at)) == ([], [])
    (comment,) = at.comments()
    assert "the same lines of src/login.py" in comment
    assert [comment in message for message in told(desk)] == [True]
    assert at.prs()[0].status == "approved"


async def test_a_busy_repository_is_tried_again(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(branch_merge, "BUSY_S", 0.0)
    at = await approved(desk, auto=True)
    lock = at.repository / ".git" / "index.lock"
    lock.touch()
    with pytest.raises(ServiceUnavailable):
        await look(desk, at)
    lock.unlink()
    assert (at.prs()[0].told_ms, at.comments()) == (None, [])
    assert await look(desk, at) == [f"{at.issue.identifier}: merged into main"]


@pytest.mark.parametrize("auto", [True, False])
@pytest.mark.parametrize("status", ["open", "approved"])
async def test_a_branch_that_moved_voids_the_review(desk: Desk, status: str, auto: bool) -> None:
    at = await author(desk)
    await at.open()
    if status == "approved":
        await desk.call(at.bound("judge"), "approve_pr")
    set_up(desk, at, auto_merge=auto)
    at.tree.commit("more.py", "x = 1\n")
    before = main(at)
    (done,) = await look(desk, at)
    assert done.startswith(f"{at.issue.identifier}: void, ")
    assert (at.prs()[0].status, at.status(), main(at)) == ("closed", "todo", before)
    (comment,) = at.comments()
    assert f"The {'approval' if status == 'approved' else 'review'} of revision 1 is void" in comment
    assert (await look(desk, at), told(desk)) == ([], [])


async def test_what_somebody_merged_by_hand_is_recorded_though_the_branch_is_gone(desk: Desk) -> None:
    at = await approved(desk)
    git(at.repository, "merge", "-q", "--ff-only", at.tree.branch)
    git(at.repository, "worktree", "remove", "--force", str(at.tree.path))
    git(at.repository, "branch", "-q", "-d", at.tree.branch)
    assert await look(desk, at) == [f"{at.issue.identifier}: merged into main"]
    assert (at.prs()[0].status, at.prs()[0].merged_in, at.status()) == ("merged", main(at), "done")


async def test_the_owner_is_told_once_that_a_pull_request_waits(desk: Desk) -> None:
    at = await approved(desk)
    await asyncio.gather(*(look(desk, at) for _ in range(3)))
    assert await look(desk, at) == []
    (message,) = told(desk)
    assert f"rookery merge {at.issue.identifier}" in message
    assert at.comments() == []


async def test_one_that_is_void_does_not_keep_another_from_being_merged(desk: Desk) -> None:
    first = await approved(desk, auto=True)
    second = await author(desk)
    await second.open()
    await desk.call(second.bound("judge"), "approve_pr")
    second.tree.commit("more.py", "x = 1\n")
    third = await author(desk)
    done = await look(desk, first)
    assert [said.partition(":")[0] for said in done] == [first.issue.identifier, second.issue.identifier]
    assert (first.status(), second.status(), third.status()) == ("done", "todo", "in_progress")


async def test_a_base_branch_that_is_gone_does_not_keep_those_of_another_waiting(desk: Desk) -> None:
    first = await approved(desk, auto=True)
    desk.change(sa.update(prs).values(base="gone"))
    second = await author(desk)
    await second.open()
    await desk.call(second.bound("judge"), "approve_pr")
    with pytest.raises(RookeryError, match="there is no branch gone"):
        await look(desk, first)
    assert (first.status(), second.status()) == ("review", "done")
