from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from rookery.core.actor import Actor
from rookery.core.errors import Conflict, InvalidParams, NotFound, PermissionDenied, RookeryError
from rookery.domains.tracker.tables import prs
from rookery.domains.tracker.test_health_tools import project_health
from rookery.domains.tracker.worktree import MARKER
from rookery.lifecycle.issue_tables import issues
from rookery.lifecycle.suite_tables import test_health
from tests.domains.tracker.desk import Desk


async def refused(desk: Desk, kind: type[RookeryError], actor: Actor, **arguments: Any) -> RookeryError:
    with pytest.raises(kind) as caught:
        await desk.call(actor, "record_test_health", **{"test_count": 100, **arguments})
    assert caught.value.hint
    assert desk.count(test_health) == 0
    return caught.value


def lines(desk: Desk) -> list[int | None]:
    return [row.source_lines for row in desk.rows(sa.select(test_health).order_by(test_health.c.seq))]


def pull_request(desk: Desk, issue: sa.Row[Any], revision: int, source_lines: int) -> None:
    row: dict[str, Any] = dict.fromkeys(("branch", "base", "diff", "risk_level", "subject"), "x")
    row |= {"stats": {}, "risk_score": 0, "risk_reasons": [], "status": "open", "created_ms": 1, "updated_ms": 1}
    row |= {"id": f"pr-{issue.id}-{revision}", "tenant": issue.tenant, "project_id": issue.project_id}
    desk.change(sa.insert(prs).values(**row, issue_id=issue.id, revision=revision, source_lines=source_lines))


async def test_only_a_worker_with_an_issue_has_it(desk: Desk) -> None:
    issue = await desk.issue()
    for profile in ("researcher", "judge", "scanner", "architect", "planner", "intake"):
        await refused(desk, PermissionDenied, desk.actor(profile, issue))
    await refused(desk, PermissionDenied, desk.actor("worker"))


async def test_numbers_out_of_bounds_are_refused(desk: Desk) -> None:
    worker = desk.actor("worker", await desk.issue())
    for name in ("test_count", "test_files_changed", "tests_added", "tests_removed", "execution_time_ms"):
        for value in (-1, 1.5, "many", 10**13):
            await refused(desk, InvalidParams, worker, **{name: value})
    await refused(desk, InvalidParams, worker, issue_id="SYM-002")


async def test_whoever_does_not_hold_the_issue_records_nothing(desk: Desk) -> None:
    issue = await desk.issue()
    held = {"lease_subject": "agt-other", "lease_session": "s1", "lease_name": "ada", "lease_until_ms": 10**14}
    desk.change(sa.update(issues).where(issues.c.id == issue.id).values(**held, fence=2))
    worker = desk.actor("worker", issue)
    assert "ada" in (await refused(desk, Conflict, worker)).message
    await refused(desk, Conflict, worker, fence=1)


async def test_a_worktree_that_is_not_the_issues_is_refused(desk: Desk, tmp_path: Path) -> None:
    repository = await desk.git_project("repo")
    issue, other = await desk.issue(project="repo"), await desk.issue(project="repo")
    theirs = desk.worktree(repository, other)
    for folder in (tmp_path / "gone", theirs.path, repository):
        await refused(desk, Conflict, desk.actor("worker", issue, worktree=str(folder)))
    mine = desk.worktree(repository, issue)
    await refused(desk, Conflict, desk.actor("worker", issue, worktree=str(mine.path), cwd=str(tmp_path)))


async def test_an_issue_that_was_moved_away_records_nothing(desk: Desk) -> None:
    issue = await desk.issue()
    await desk.project("other")
    worker = desk.actor("worker", issue, project="default")
    await desk.call(desk.actor("planner", issue), "move_issue", target_project_id="other", reason="theirs")
    await refused(desk, NotFound, worker)


async def test_a_run_is_recorded_with_all_that_was_told(desk: Desk) -> None:
    issue = await desk.issue()
    told = {
        "test_count": 150,
        "tests_added": 5,
        "tests_removed": 1,
        "test_files_changed": 3,
        "execution_time_ms": 30000,
    }
    found = await desk.call(desk.actor("worker", issue), "record_test_health", **told)
    row = desk.rows(sa.select(test_health))[0]
    assert {name: getattr(row, name) for name in told} == told
    assert (row.issue_id, row.project_id, row.author, row.source_lines) == (issue.id, issue.project_id, "worker", 0)
    assert found.model_dump() == {
        "trend": {
            "runs": 1,
            "test_count": 150,
            "test_growth_percent": 0.0,
            "source_growth_percent": None,
            "time_growth_percent": 0.0,
        },
        "bloat": False,
        "reasons": [],
    }


async def test_changed_lines_come_from_the_bound_worktree(desk: Desk) -> None:
    repository = await desk.git_project("repo")
    issue = await desk.issue(project="repo")
    tree = desk.worktree(repository, issue)
    worker = desk.actor("worker", issue, worktree=str(tree.path), cwd=str(tree.path))
    await desk.call(worker, "record_test_health", test_count=10)
    tree.commit("src/app.py", "one\ntwo\n")
    tree.commit("tests/test_app.py", "a\nb\nc\n")
    pull_request(desk, issue, 1, 500)
    await desk.call(worker, "record_test_health", test_count=12)
    other = await desk.issue(project="repo")
    pull_request(desk, other, 1, 1000)
    pull_request(desk, other, 2, 40)
    await desk.call(worker, "record_test_health", test_count=12)
    assert lines(desk) == [0, 2, 42]


async def test_without_a_worktree_they_come_from_the_latest_pull_request_of_each_issue(desk: Desk) -> None:
    await desk.project("other")
    issue, second, elsewhere = await desk.issue(), await desk.issue(), await desk.issue(project="other")
    worker = desk.actor("worker", issue)
    await desk.call(worker, "record_test_health", test_count=1)
    pull_request(desk, issue, 1, 30)
    pull_request(desk, issue, 2, 50)
    pull_request(desk, second, 1, 7)
    pull_request(desk, elsewhere, 1, 1000)
    await desk.call(worker, "record_test_health", test_count=1)
    assert lines(desk) == [0, 57]


async def test_a_worktree_that_git_cannot_compare_counts_as_none(desk: Desk, tmp_path: Path) -> None:
    issue = await desk.issue()
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / MARKER).write_text(issue.identifier)
    pull_request(desk, issue, 1, 30)
    worker = desk.actor("worker", issue, worktree=str(tmp_path / "tree"))
    await desk.call(worker, "record_test_health", test_count=1)
    assert lines(desk) == [30]


async def test_bloat_is_flagged_over_the_projects_last_ten_runs_and_shown_with_the_issue(desk: Desk) -> None:
    await desk.project("other")
    issue, second, elsewhere = await desk.issue(), await desk.issue(), await desk.issue(project="other")
    pull_request(desk, issue, 1, 1000)
    worker = desk.actor("worker", issue)
    runs = [await desk.call(worker, "record_test_health", test_count=count) for count in (50, 100, *[110] * 8)]
    assert [run.bloat for run in runs] == [False, *[True] * 9]
    await desk.call(desk.actor("worker", elsewhere), "record_test_health", test_count=9000)
    found = await desk.call(desk.actor("worker", second), "record_test_health", test_count=120)
    assert (found.bloat, found.trend["runs"], found.trend["test_growth_percent"]) == (False, 10, 20.0)
    found = await desk.call(desk.actor("worker", second), "record_test_health", test_count=133, execution_time_ms=10)
    assert found.bloat
    assert found.reasons[0].startswith("tests grew from 110 to 133 (more than 20 %)")
    shown = desk.fleet.platform.database.direct(lambda tx: project_health(tx, issue.project_id))
    assert shown is not None
    assert (shown.bloat, list(shown.reasons)) == (True, found.reasons)
    assert desk.fleet.platform.database.direct(lambda tx: project_health(tx, "no-project")) is None
