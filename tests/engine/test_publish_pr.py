"""Publishing with a real remote, and a stand-in for the tool that speaks to GitHub."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from rookery.core.errors import Conflict, PermissionDenied, RookeryError, ServiceUnavailable, ValidationFailed
from rookery.engine import publishing
from rookery.engine.publishing import publish_pr
from rookery.engine.tables import workspaces
from tests.domains.tracker.desk import Desk, git
from tests.domains.tracker.reviewing import Author, author
from tests.domains.work import hub
from tests.platform_fixtures import Fleet

ADDRESS = "https://github.com/acme/shop.git"
FIRST = "https://github.com/acme/shop/pull/1"


@pytest.fixture
def desk(database_url: str, make_fleet: Callable[..., Fleet], tmp_path: Path) -> Desk:
    hub.ASKED.clear()
    fleet = make_fleet(database_url, extra={})
    # In place of the product's own tool, which would ask GitHub.
    fleet.platform.registry._tools[hub.github_create_pr.name] = replace(hub.github_create_pr, domain="hub")
    return Desk(fleet, tmp_path)


async def opened(desk: Desk, **fields: Any) -> Author:
    """A pull request in a repository with a remote."""
    at = await author(desk, **fields)
    git(desk.folder, "init", "-q", "--bare", "remote.git")
    git(at.repository, "remote", "add", "origin", ADDRESS)
    git(at.repository, "config", "remote.origin.pushurl", str(desk.folder / "remote.git"))
    await at.open()
    return at


async def publish(at: Author, actor: Any = None, **more: Any) -> Any:
    calls = at.desk.fleet.platform.calls
    return (await calls.run(actor or at.person, publish_pr, {"issue_id": at.issue.identifier, **more})).value


async def refused(at: Author, kind: type[RookeryError], says: str, actor: Any = None) -> None:
    with pytest.raises(kind) as caught:
        await publish(at, actor)
    assert says in caught.value.message
    assert (at.prs()[-1].url, at.comments()) == (None, [])


def remote(at: Author, branch: str | None = None) -> str:
    wanted = branch or at.tree.branch
    return git(at.desk.folder / "remote.git", "for-each-ref", "--format=%(objectname)", f"refs/heads/{wanted}").strip()


async def test_no_agent_publishes_and_no_session_pays_for_the_tool(desk: Desk) -> None:
    at = await opened(desk)
    for profile in ("worker", "judge", None):
        await refused(at, PermissionDenied, "", at.bound(profile))
    assert "publish_pr" not in desk.fleet.platform.registry
    assert (hub.ASKED, remote(at)) == ([], "")


async def test_what_is_decided_or_has_moved_is_not_published(desk: Desk) -> None:
    at = await opened(desk)
    at.tree.commit("more.py", "x = 1\n")
    await refused(at, Conflict, "not at the commit that is reviewed")
    git(at.tree.path, "reset", "-q", "--hard", "HEAD~1")
    await desk.call(at.bound("judge"), "reject_pr")
    with pytest.raises(Conflict, match="is rejected"):
        await publish(at)
    assert (hub.ASKED, remote(at)) == ([], "")


async def test_another_revision_than_the_one_that_was_read_is_not_published(desk: Desk) -> None:
    at = await opened(desk)
    with pytest.raises(Conflict, match="is at revision 1, not 2"):
        await publish(at, revision=2)
    assert (hub.ASKED, remote(at)) == ([], "")
    assert (await publish(at, revision=1)).revision == 1


async def test_a_remote_that_is_not_on_github_is_left_alone(desk: Desk) -> None:
    at = await opened(desk)
    git(at.repository, "remote", "set-url", "origin", "https://example.org/acme/shop.git")
    await refused(at, ValidationFailed, "is not on GitHub")
    assert remote(at) == ""


async def test_nothing_is_forced(desk: Desk) -> None:
    at = await opened(desk)
    there = git(at.repository, "commit-tree", "HEAD^{tree}", "-m", "theirs").strip()
    git(at.repository, "push", "-q", str(desk.folder / "remote.git"), f"{there}:refs/heads/{at.tree.branch}")
    await refused(at, ServiceUnavailable, "could not be pushed")
    assert (hub.ASKED, remote(at)) == ([], there)


async def test_the_branch_is_pushed_and_the_address_kept_and_shown(desk: Desk) -> None:
    at = await opened(desk)
    done = await publish(at)
    assert done.model_dump() == {
        "identifier": at.issue.identifier, "revision": 1, "url": FIRST, "repeated": False,
    }  # fmt: skip
    (asked,) = hub.ASKED
    assert (asked.repo, asked.title, asked.head, asked.base) == (
        "acme/shop", f"{at.issue.identifier}: login fails", at.tree.branch, "main",
    )  # fmt: skip
    assert remote(at) == at.prs()[0].head
    assert (await desk.call(desk.owner, "get_issue", issue_id=at.issue.id)).pr["url"] == FIRST
    assert at.comments() == [f"**Published** (revision 1): {FIRST}"]


async def test_a_branch_that_moves_at_the_last_moment_is_published_as_it_was_reviewed(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = await opened(desk)
    push = publishing.push_branch

    async def moved(folder: str, *words: Any) -> str | None:
        at.tree.commit("more.py", "x = 1\n")
        return await push(folder, *words)

    monkeypatch.setattr(publishing, "push_branch", moved)
    await publish(at)
    assert remote(at) == at.prs()[0].head


async def test_a_branch_that_is_not_the_issues_own_is_not_pushed(desk: Desk) -> None:
    at = await opened(desk)
    values = {"issue_id": at.issue.id, "tenant": "default", "project_id": at.issue.project_id, "made_ms": 1}
    values |= {"repository": "/srv/shop", "path": "/srv/trees/1", "branch": "rookery/REP-1", "base": "0" * 40}
    desk.change(sa.insert(workspaces).values(**values))
    await refused(at, Conflict, f"is on the branch {at.tree.branch}, and not on its own")
    assert remote(at) == ""


async def test_a_second_time_opens_no_second_one(desk: Desk) -> None:
    at = await opened(desk)
    await publish(at)
    await desk.call(at.bound("judge"), "approve_pr")
    again = await publish(at)
    assert (again.url, again.repeated, len(hub.ASKED), len(at.comments())) == (FIRST, True, 1, 1)


async def test_one_that_github_has_already_is_found(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was opened by a call that died before it could keep the address, or for the revision before."""
    at = await opened(desk)

    async def taken(*_: Any) -> Any:
        raise Conflict(f"there is a pull request for work already: {FIRST}", hint="push to its branch")

    tools = desk.fleet.platform.registry._tools
    monkeypatch.setitem(tools, "github_create_pr", replace(tools["github_create_pr"], handler=taken))
    done = await publish(at)
    assert (done.url, done.repeated, at.prs()[0].url) == (FIRST, True, FIRST)


async def test_a_hub_that_is_down_is_told_and_it_can_be_tried_again(desk: Desk) -> None:
    at = await opened(desk, title="the hub is down")
    await refused(at, ServiceUnavailable, "the hub is down")


async def test_two_at_once_keep_one_address(desk: Desk) -> None:
    at = await opened(desk)
    done = await asyncio.gather(*(publish(at) for _ in range(3)), return_exceptions=True)
    # Of pushes at the same moment the remote may refuse some.
    assert at.prs()[0].url in {each.url for each in done if not isinstance(each, BaseException)}
    assert len(at.comments()) == 1
