"""Forks: one that is there already is as good as a new one."""

from typing import Any

import pytest

from rookery.core.errors import InvalidParams, NotFound, PermissionDenied, ValidationFailed
from tests.domains.github.desk import Desk
from tests.domains.github.fake_github import Repo
from tests.domains.github.fake_server import BROKEN, Said


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


async def test_the_account_of_the_token_has_to_be_allowed_as_well(desk: Desk) -> None:
    with pytest.raises(PermissionDenied, match="robot is not among"):
        await desk.with_settings(github_allow=("acme",)).call("github_fork_repo")
    desk.server.fail(Said(403, {"message": "Resource not accessible by integration"}), part="/user")
    with pytest.raises(PermissionDenied, match="which account") as caught:
        await desk.with_settings(github_allow=("acme", "robot")).call("github_fork_repo")
    assert "org" in (caught.value.hint or "")
    assert desk.asked("POST") == []
    allowed = desk.with_settings(github_allow=("acme", "robot"))
    assert (await allowed.call("github_fork_repo"))["fork"] == "robot/shop"


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
    heard: list[Any] = []
    desk.fleet.platform.events.subscribe(heard.append)
    assert (await desk.call("github_fork_repo"))["existed"] is True
    assert (await desk.call("github_fork_repo", org="octocat"))["existed"] is False
    assert [each.name for each in heard].count("GithubRepoForked") == 1, "only what is new is told to the other domains"


async def test_a_lost_answer_makes_no_second_fork(desk: Desk) -> None:
    desk.server.fail(BROKEN, method="POST", after=True)
    assert (await desk.call("github_fork_repo"))["fork"] == "robot/shop"
    assert set(desk.github.repos) == {"acme/shop", "robot/shop"}
