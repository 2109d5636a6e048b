"""What agents are listed: the arguments of the seed and no more, since each is paid for in every context."""

import pytest

from rookery.core.wire import wire_form
from tests.domains.github.desk import Desk

SEED = {
    "github_star_repo": {"repo"},
    "github_unstar_repo": {"repo"},
    "github_fork_repo": {"repo"},
    "github_list_prs": {"repo", "state"},
    "github_create_pr": {"repo", "title", "body", "head", "base"},
    "github_review_pr": {"repo", "pr_number", "body", "event"},
    "github_create_issue": {"repo", "title", "body"},
    "github_list_issues": {"repo", "state", "labels"},
    "github_repo_info": {"repo"},
    "github_get_pr_diff": {"repo", "pr_number"},
    "github_comment_on_pr": {"repo", "pr_number", "body"},
    "github_follow_user": {"username"},
}
OPTIONAL = {"state", "labels", "base", "event"}


@pytest.mark.parametrize("name", SEED)
async def test_a_tool_lists_what_the_seed_names(desk: Desk, name: str) -> None:
    shown = wire_form(desk.fleet.platform.registry.require(name))
    assert set(shown["inputSchema"]["properties"]) == SEED[name]
    optional = OPTIONAL | ({"body"} if name == "github_create_issue" else set())
    assert set(shown["inputSchema"]["required"]) == SEED[name] - optional


async def test_the_domain_has_these_tools_and_a_default_agent_has_them_all(desk: Desk) -> None:
    own = {tool.name for tool in desk.fleet.platform.registry if tool.domain == "github"}
    assert own == set(SEED)
    assert own <= desk.fleet.names(desk.agent)


@pytest.mark.parametrize("name", ["github_create_pr", "github_create_issue", "github_comment_on_pr"])
async def test_who_posts_is_told_that_the_model_can_be_named(desk: Desk, name: str) -> None:
    assert "Also takes model." in wire_form(desk.fleet.platform.registry.require(name))["description"]


@pytest.mark.parametrize(
    ("name", "field", "first"),
    [
        ("github_list_prs", "state", "open (default)"),
        ("github_list_issues", "state", "open (default)"),
        ("github_review_pr", "event", "COMMENT (default)"),
    ],
)
async def test_a_choice_names_its_default(desk: Desk, name: str, field: str, first: str) -> None:
    shown = wire_form(desk.fleet.platform.registry.require(name))
    assert shown["inputSchema"]["properties"][field]["description"].startswith(first)
