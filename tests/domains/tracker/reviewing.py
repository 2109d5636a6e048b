"""A worker in its worktree with committed work, for the tests of pull requests."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from rookery.core.actor import Actor
from rookery.core.errors import RookeryError
from rookery.domains.tracker.tables import comments, issue_changes, pr_gates, prs
from tests.domains.tracker.desk import Desk, Worktree, git

PASSED = {"command": "make test", "label": "Tests", "exit_code": 0, "output": "42 passed"}


@dataclass
class Author:
    """Who works on the issue, and where."""

    desk: Desk
    issue: sa.Row[Any]
    actor: Actor
    repository: Path
    tree: Worktree

    def bound(self, profile: str | None, **binding: Any) -> Actor:
        """Another session on the same issue."""
        return self.desk.actor(profile, self.issue, project="repo", **binding)

    @property
    def person(self) -> Actor:
        return self.desk.fleet.actor(as_owner=True, project="repo", issue=self.issue.id)

    @property
    def diff(self) -> str:
        return git(self.tree.path, "diff", "main...HEAD")

    def arguments(self, **changes: Any) -> dict[str, Any]:
        given = {"diff": self.diff, "branch_name": self.tree.branch, "base_branch": "main"}
        return {name: value for name, value in {**given, **changes}.items() if value is not None}

    async def open(self, **changes: Any) -> Any:
        """Open a pull request as the worker; the issue goes to review."""
        return await self.desk.call(self.actor, "create_pr", **self.arguments(**changes))

    async def again(self) -> None:
        """After a rejection: the issue is in progress once more."""
        await self.desk.call(self.person, "set_issue_status", issue_id=self.issue.id, status="in_progress")

    def prs(self) -> list[sa.Row[Any]]:
        return list(self.desk.rows(sa.select(prs).where(prs.c.issue_id == self.issue.id).order_by(prs.c.revision)))

    def status(self) -> str:
        return self.desk.reload(self.issue).status

    def comments(self) -> list[str]:
        mine = sa.select(comments.c.content).where(comments.c.issue_id == self.issue.id)
        return [row.content for row in self.desk.rows(mine.order_by(comments.c.seq))]


async def author(desk: Desk, **fields: Any) -> Author:
    """A worker with one commit, in the worktree of an issue that is in progress and ready."""
    repository = desk.folder / "repo"
    if not repository.exists():
        await desk.git_project()
    issue = await desk.issue(project="repo", **fields)
    tree = desk.worktree(repository, issue)
    tree.commit("src/login.py", "def log_in():\n    return True\n")
    place = str(tree.path)
    worker = desk.actor("worker", issue, project="repo", worktree=place, cwd=place)
    return Author(desk, issue, worker, repository, tree)


def written(desk: Desk) -> list[Any]:
    """Everything that a call about pull requests could write."""
    tables = (prs, pr_gates, comments, issue_changes)
    return [*(desk.count(table) for table in tables), sorted(desk.rows(sa.select(prs.c.id, prs.c.status)))]


async def refused(
    desk: Desk, kind: type[RookeryError], says: str, actor: Actor, tool: str, **arguments: Any
) -> RookeryError:
    """What the call is refused with. Nothing is written."""
    before = written(desk)
    with pytest.raises(kind) as caught:
        await desk.call(actor, tool, **arguments)
    assert type(caught.value) is kind
    assert says in caught.value.message
    assert caught.value.hint
    assert written(desk) == before
    return caught.value
