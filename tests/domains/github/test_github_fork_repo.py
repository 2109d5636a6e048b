"""Forks: one that is there already is as good as a new one."""

import pytest

from rookery.core.errors import InvalidParams, NotFound, PermissionDenied, ValidationFailed
from tests.domains.github.desk import Desk
from tests.domains.github.fake_github import Repo
from tests.domains.github.fake_server import BROKEN


async def test_what_is_not_there_is_not_forked(desk: Desk) -> None:
    with pytest.raises(NotFound):
        await desk.call("github_fork_repo", repo="acme/till")


async def test_an_organization_that_makes_no_sense_or_is_not_allowed_is_refused(desk: Desk) -> None:
    with pytest.raises(InvalidParams, match="org"):
        await desk.call("github_fork_repo", org="../acme")
    with pytest.raises(PermissionDenied, match="octocat is not among"):
        await desk.with_settings(github_allow=("acme",)).call("github_fork_repo", org="octocat")
    assert desk.server.asked == []
    with pytest.raises(ValidationFailed, match="organization 'nobody' not found"):
        await desk.call("github_fork_repo", org="nobody")


async def test_a_repository_is_forked_into_the_account_or_an_organization(desk: Desk) -> None:
    forked = await desk.call("github_fork_repo")
    assert forked == {
        "fork": "robot/shop",
        "url": "https://github.example/robot/shop",
        "default_branch": "main",
        "existed": False,
    }
    assert (await desk.call("github_fork_repo", org="octocat"))["fork"] == "octocat/shop"


async def test_a_fork_that_exists_is_a_success(desk: Desk) -> None:
    desk.github.repos["robot/shop"] = Repo("robot/shop")
    assert (await desk.call("github_fork_repo"))["existed"] is True


async def test_a_lost_answer_makes_no_second_fork(desk: Desk) -> None:
    desk.server.fail(BROKEN, method="POST", after=True)
    assert (await desk.call("github_fork_repo"))["fork"] == "robot/shop"
    assert set(desk.github.repos) == {"acme/shop", "robot/shop"}
