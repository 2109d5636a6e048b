"""Workspaces of issues that have ended: removed by a job, or kept with a reason that is told once."""

import os
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from rookery.engine.cleaning import FIRST_LOOK_MS, LAST_LOOK_MS, clean_later
from rookery.engine.tables import workspaces
from rookery.engine.workspace_store import WorkspaceRows
from rookery.identity.tables import projects
from rookery.jobs.tables import jobs
from rookery.lifecycle.issue_tables import issues
from tests.domains.work.workshop import git
from tests.engine.crew import Crew, build
from tests.engine.yard import commit

HOUR_MS = 3_600_000


async def worked_on(crew: Crew, **settings: Any) -> tuple[sa.Row[Any], sa.Row[Any]]:
    """An issue that an agent has worked on, and its workspace."""
    await crew.open(build, **settings)
    issue = await crew.todo()
    await crew.dispatched(issue)
    return issue, workspace(crew, issue)


def workspace(crew: Crew, issue: sa.Row[Any]) -> sa.Row[Any]:
    return crew.rows(sa.select(workspaces).where(workspaces.c.issue_id == issue.id))[0]


def end(crew: Crew, issue: sa.Row[Any], status: str = "cancelled") -> None:
    crew.write(lambda tx: tx.run(sa.update(issues).where(issues.c.id == issue.id).values(status=status)))


async def clean(crew: Crew) -> None:
    crew.write(clean_later)
    await crew.work()


def looks(crew: Crew) -> list[tuple[str, int]]:
    """The looks that are still to come, and in how many hours."""
    later = sa.select(jobs).where(jobs.c.kind == "orchestrator.clean", jobs.c.state == "waiting").order_by(jobs.c.id)
    return [(row.key, round((row.due_ms - row.created_ms) / HOUR_MS)) for row in crew.rows(later)]


async def test_the_workspace_of_an_open_issue_is_never_looked_at(crew: Crew) -> None:
    issue, row = await worked_on(crew)
    for status in ("backlog", "todo", "in_progress", "review", "blocked"):
        end(crew, issue, status)
        await clean(crew)
        assert workspace(crew, issue).removed_ms is None
    assert os.path.isdir(row.path)


async def test_the_workspace_is_left_while_somebody_works_on_the_issue(crew: Crew) -> None:
    issue, row = await worked_on(crew)
    end(crew, issue)
    queued = crew.queue(issue)
    crew.write(clean_later)
    assert looks(crew) == []
    await crew.work()
    assert crew.row(queued).state == "ended"
    assert os.path.isdir(row.path)


async def test_an_ended_issues_workspace_goes_and_its_unmerged_branch_stays(crew: Crew) -> None:
    issue, row = await worked_on(crew)
    end(crew, issue)
    await clean(crew)
    now = workspace(crew, issue)
    assert now.removed_ms is not None
    assert now.kept is None
    assert not os.path.lexists(row.path)
    assert "add a.txt" in git(crew.repository, "log", "--format=%s", row.branch)
    assert looks(crew) == []


async def test_a_merged_branch_goes_with_it(crew: Crew) -> None:
    issue, row = await worked_on(crew)
    git(crew.repository, "merge", "-q", "--ff-only", row.branch)
    end(crew, issue, "done")
    await clean(crew)
    assert git(crew.repository, "branch", "--list", "rookery/*") == ""


async def test_work_that_is_nowhere_else_keeps_it_and_is_told_once(crew: Crew) -> None:
    issue, row = await worked_on(crew)
    Path(row.path, "half.txt").write_text("half", encoding="utf-8")
    end(crew, issue)
    for _ in range(2):
        await clean(crew)
    assert workspace(crew, issue).kept == "files that are not committed: half.txt"
    (said,) = crew.said(issue)
    assert said.startswith(f"The workspace {row.path} is kept: files that are not committed: half.txt.")
    assert looks(crew) == [(f"clean:{issue.id}:2", 1)]


async def test_a_later_look_removes_what_holds_nothing_any_more(crew: Crew) -> None:
    issue, row = await worked_on(crew)
    Path(row.path, "half.txt").write_text("half", encoding="utf-8")
    end(crew, issue)
    await clean(crew)
    commit(row.path, "half.txt")
    crew.write(lambda tx: tx.run(sa.update(jobs).where(jobs.c.state == "waiting").values(due_ms=0)))
    await crew.work()
    assert workspace(crew, issue).removed_ms is not None
    assert "half.txt" in git(crew.repository, "show", "--name-only", "--format=", row.branch)
    assert looks(crew) == []


async def test_looks_become_rarer_but_never_stop(crew: Crew) -> None:
    issue, row = await worked_on(crew)
    Path(row.path, "half.txt").write_text("half", encoding="utf-8")
    end(crew, issue)
    await clean(crew)
    hours: list[int] = []
    for _ in range(6):
        ((_, due),) = looks(crew)
        hours.append(due)
        crew.write(lambda tx: tx.run(sa.update(jobs).where(jobs.c.state == "waiting").values(due_ms=0)))
        await crew.work()
    assert hours == [1, 2, 4, 8, 16, 24]
    assert (FIRST_LOOK_MS, LAST_LOOK_MS) == (HOUR_MS, 24 * HOUR_MS)
    assert len(crew.said(issue)) == 1


async def test_a_command_that_fails_keeps_it(crew: Crew) -> None:
    issue, row = await worked_on(crew, hooks={"before_remove": "echo still in use; exit 1"})
    end(crew, issue)
    await clean(crew)
    assert "still in use" in (workspace(crew, issue).kept or "")
    assert os.path.isdir(row.path)


async def test_a_repository_that_is_gone_keeps_it(crew: Crew) -> None:
    issue, row = await worked_on(crew)
    os.rename(crew.repository, crew.folder / "moved")
    end(crew, issue)
    await clean(crew)
    assert "does not exist" in (workspace(crew, issue).kept or "")
    assert os.path.isdir(row.path)


async def test_it_is_removed_from_the_repository_that_it_was_made_from(crew: Crew) -> None:
    issue, _ = await worked_on(crew)
    other = crew.folder / "other"
    git(crew.folder, "clone", "-q", str(crew.repository), str(other))
    crew.write(lambda tx: tx.run(sa.update(projects).where(projects.c.slug == "shop").values(path=str(other))))
    end(crew, issue)
    await clean(crew)
    assert workspace(crew, issue).removed_ms is not None
    assert git(crew.repository, "worktree", "list").count("\n") == 0


async def test_workspaces_belong_to_their_tenant(crew: Crew) -> None:
    issue, row = await worked_on(crew)
    assert crew.write(lambda tx: WorkspaceRows(tx, "other").of(issue.id)) is None
    crew.write(lambda tx: WorkspaceRows(tx, "other").removed(row))
    assert not crew.write(lambda tx: WorkspaceRows(tx, "other").kept(row, "mine"))
    assert workspace(crew, issue) == row
    end(crew, issue)
    assert crew.write(lambda tx: WorkspaceRows(tx, "other").over(10)) == []
    assert [each.issue_id for each in crew.write(lambda tx: WorkspaceRows(tx, "default").over(10))] == [issue.id]
