"""Following somebody."""

import pytest

from rookery.core.errors import InvalidParams, NotFound, PermissionDenied
from tests.domains.github.desk import Desk


@pytest.mark.parametrize(
    "name", ["", "octo cat", "octo/cat", "../octocat", "-octocat", "octo?x", "@octocat", "o" * 101]
)
async def test_what_is_no_name_is_refused_before_anybody_is_asked(desk: Desk, name: str) -> None:
    with pytest.raises(InvalidParams, match="name of an account"):
        await desk.call("github_follow_user", username=name)
    assert desk.server.asked == []


async def test_somebody_whom_the_owner_does_not_allow_is_not_followed(desk: Desk) -> None:
    with pytest.raises(PermissionDenied, match="octocat is not among"):
        await desk.with_settings(github_allow=("acme", "octocat/hello")).call("github_follow_user", username="octocat")
    assert desk.server.asked == []


async def test_nobody_is_not_followed(desk: Desk) -> None:
    with pytest.raises(NotFound, match="no account nobody"):
        await desk.call("github_follow_user", username="nobody")


async def test_somebody_is_followed(desk: Desk) -> None:
    assert await desk.call("github_follow_user", username="octocat") == {"following": "octocat"}
    assert desk.github.following == {"octocat"}
