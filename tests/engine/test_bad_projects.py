"""Projects that cannot be worked on: their issues come to a person with the reason, and all others go on."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from rookery.engine.leading import Leadership
from rookery.engine.project_settings import OrchestratorProjects
from rookery.engine.tables import dispatches
from rookery.engine.tick import Tick
from tests.domains.tracker.desk import git
from tests.engine.crew import Crew, build

MOST_TICKS = 12


async def no_repository(crew: Crew, slug: str) -> str:
    folder = crew.folder / "plain"
    folder.mkdir()
    await crew.project(slug, folder)
    return "is not the root of a git repository"


async def no_folder_any_more(crew: Crew, slug: str) -> str:
    (await crew.git_project(slug)).rename(crew.folder / "moved")
    return "does not exist"


async def a_bare_repository(crew: Crew, slug: str) -> str:
    git(crew.folder, "init", "-q", "--bare", "bare.git")
    await crew.project(slug, crew.folder / "bare.git")
    return "is a bare repository"


async def no_commit(crew: Crew, slug: str) -> str:
    folder = crew.folder / "empty"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    await crew.project(slug, folder)
    return "has no commit yet"


async def no_base_branch(crew: Crew, slug: str) -> str:
    await crew.git_project(slug)
    await crew.call(crew.person(slug), "configure_project", base_branch="develop")
    return "the base branch 'develop' is not in"


async def a_folder_that_is_taken(crew: Crew, slug: str) -> str:
    await crew.git_project(slug)
    Path(crew.folder, ".rookery-worktrees").mkdir()
    Path(crew.folder, ".rookery-worktrees", slug).symlink_to(crew.folder)
    return "leads out of"


BAD: list[Callable[[Crew, str], Awaitable[str]]] = [
    no_repository,
    no_folder_any_more,
    a_bare_repository,
    no_commit,
    no_base_branch,
    a_folder_that_is_taken,
]


async def look_until_nothing_happens(crew: Crew, lead: Leadership) -> None:
    for _ in range(MOST_TICKS):
        lead.term = crew.write(lead.claim)
        report = await Tick(crew.platform, lead).run()
        assert report.failures == []
        if not report.did_something:
            return
        await crew.work()
    pytest.fail("it never came to rest")


def enable(crew: Crew, slug: str) -> None:
    project = crew.person(slug).project
    assert project is not None

    def work(tx: Any) -> None:
        OrchestratorProjects(tx, "default").update(project, enabled=True, max_retries=0)

    crew.write(work)


@pytest.mark.parametrize("bad", BAD, ids=lambda way: way.__name__)
async def test_the_issue_is_blocked_with_the_reason_and_the_good_project_goes_on(crew: Crew, bad: Any) -> None:
    await crew.open(build)
    says = await bad(crew, "broken")
    enable(crew, "broken")
    broken = [await crew.issue(f"broken {number}", status="todo", project="broken") for number in range(2)]
    good = await crew.todo()
    await look_until_nothing_happens(crew, Leadership())
    for issue in broken:
        row = crew.reload(issue)
        assert (row.status, row.blocked_on, row.lease_session) == ("blocked", "person", None)
        assert any(says in comment for comment in crew.said(issue))
        assert len(crew.said(issue)) <= 2
    assert crew.reload(good).status == "review"
    assert {started.actor.project_slug for started in crew.runtime.started} == {"shop"}


async def test_a_mended_project_is_worked_on_once_a_person_says_so(crew: Crew) -> None:
    await no_base_branch(crew, "broken")
    enable(crew, "broken")
    crew.runtime.script = build
    issue, lead = await crew.issue(status="todo", project="broken"), Leadership()
    await look_until_nothing_happens(crew, lead)
    assert crew.reload(issue).status == "blocked"
    git(crew.folder / "broken", "branch", "develop")
    await crew.call(crew.person("broken"), "set_issue_status", issue_id=issue.id, status="todo")
    await look_until_nothing_happens(crew, lead)
    tried = sa.select(dispatches).where(dispatches.c.role == "worker").order_by(dispatches.c.created_ms)
    assert [row.outcome for row in crew.rows(tried)] == ["failed", "succeeded"]
