"""What a repository is; and what all tools have in common: who may call, which names are taken, which are allowed."""

from typing import Any

import pytest

from rookery.core.errors import ConfigurationError, InvalidParams, NotFound, PermissionDenied
from tests.domains.github.desk import Desk

BAD_NAMES = [
    "shop", "acme/", "/shop", "acme/shop/x", "acme/..", "acme/.", "../shop", "acme/shop;rm -rf ~", "acme/$(id)",
    "acme/sh op", "acme/shop?x=1", "acme/shop#x", "acme%2Fshop", "-x/shop", "--repo/shop", "acme/shop\n", "acme\\shop",
    "https://github.com/acme/shop", "acme/shop.git", "ä/shop", "a" * 101 + "/shop", "acme/" + "s" * 101, "@acme/shop",
]  # fmt: skip


@pytest.mark.parametrize("repo", BAD_NAMES)
async def test_a_name_with_anything_else_in_it_is_refused_before_anybody_is_asked(desk: Desk, repo: str) -> None:
    with pytest.raises(InvalidParams, match="owner/name"):
        await desk.call("github_repo_info", repo=repo)
    assert desk.server.asked == []


async def test_a_repository_that_is_not_there_or_not_to_be_seen_is_not_found(desk: Desk) -> None:
    with pytest.raises(NotFound, match="no repository acme/secret that this token may see"):
        await desk.call("github_repo_info", repo="acme/secret")


@pytest.mark.parametrize(
    ("tool", "more"),
    [
        ("github_repo_info", {}),
        ("github_star_repo", {}),
        ("github_fork_repo", {}),
        ("github_list_prs", {}),
        ("github_list_issues", {}),
        ("github_get_pr_diff", {"pr_number": 1}),
        ("github_create_issue", {"title": "x"}),
        ("github_create_pr", {"title": "x", "body": "", "head": "fix"}),
        ("github_comment_on_pr", {"pr_number": 1, "body": "x"}),
        ("github_review_pr", {"pr_number": 1, "body": "x"}),
        ("github_unstar_repo", {}),
    ],
)
async def test_every_tool_keeps_to_what_the_owner_allows(desk: Desk, tool: str, more: dict[str, Any]) -> None:
    held = desk.with_settings(github_allow=("octo", "acme/till"))
    with pytest.raises(PermissionDenied, match="acme/shop is not among what the owner allows") as caught:
        await held.call(tool, **more)
    assert caught.value.layer == "github_allow"
    assert "github_allow" in (caught.value.hint or "")
    assert desk.server.asked == []


@pytest.mark.parametrize("allow", [("acme",), ("acme/shop",), ("octo", "acme/shop")])
async def test_an_owner_or_a_repository_can_be_allowed_whatever_its_capitals(desk: Desk, allow: tuple[str]) -> None:
    desk.github.repos["Acme/Shop"] = desk.github.shop
    assert (await desk.with_settings(github_allow=allow).call("github_repo_info", repo="Acme/Shop"))["name"] == "shop"


async def test_without_a_token_each_tool_says_what_to_set(desk: Desk) -> None:
    for tool, more in (("github_repo_info", {}), ("github_star_repo", {}), ("github_create_issue", {"title": "x"})):
        with pytest.raises(ConfigurationError, match="no GitHub token is set") as caught:
            await desk.with_settings(github_token="").call(tool, **more)
        assert "GITHUB_TOKEN" in (caught.value.hint or "")
    assert desk.server.asked == []


async def test_tools_without_a_token_are_hidden_where_the_owner_wants_that(desk: Desk) -> None:
    names = {"github_repo_info", "github_create_pr", "github_star_repo"}
    bare = desk.with_settings(github_token="", hide_unavailable=True).fleet
    assert not names & bare.names(bare.actor())
    ready = desk.with_settings(hide_unavailable=True).fleet
    assert names <= ready.names(ready.actor())


async def test_a_token_that_github_refuses_is_for_the_owner_to_mend(desk: Desk) -> None:
    with pytest.raises(ConfigurationError, match="does not accept the token") as caught:
        await desk.with_settings(github_token="ghp_old").call("github_repo_info")
    assert "ghp_old" not in f"{caught.value.as_dict()}"


async def test_a_repository_is_shown_in_short(desk: Desk) -> None:
    assert await desk.call("github_repo_info") == {
        "name": "shop",
        "owner": "acme",
        "description": "A shop",
        "url": "https://github.example/acme/shop",
        "stars": 7,
        "forks": 2,
        "open_issues": 0,
        "archived": False,
        "private": False,
        "fork": False,
        "default_branch": "main",
        "language": "Python",
        "license": "MIT",
        "topics": ["shop"],
        "pushed_at": "2026-01-01T00:00:00Z",
    }
    assert (await desk.call("corvid_github_repo_info"))["name"] == "shop"


async def test_a_scheduled_session_may_look_but_neither_fork_nor_post(desk: Desk) -> None:
    scheduled = desk.fleet.actor(scheduler=True)
    assert (await desk.call("github_repo_info", scheduled))["name"] == "shop"
    posts = {"github_fork_repo": {}, "github_create_issue": {"title": "x"}}
    for tool, more in posts.items():
        with pytest.raises(PermissionDenied) as caught:
            await desk.call(tool, scheduled, **more)
        assert caught.value.layer == "scheduler"
