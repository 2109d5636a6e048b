"""Stars: of the account whose token it is."""

import pytest

from rookery.core.errors import NotFound, PermissionDenied
from tests.domains.github.desk import Desk
from tests.domains.github.fake_server import BROKEN, Said


async def test_what_is_not_there_gets_no_star(desk: Desk) -> None:
    with pytest.raises(NotFound, match="no repository acme/till"):
        await desk.call("github_star_repo", repo="acme/till")
    assert desk.github.starred == set()


async def test_a_token_without_the_right_is_told_which_one_it_needs(desk: Desk) -> None:
    refusal = Said(403, {"message": "Resource not accessible"}, {"X-Accepted-GitHub-Permissions": "starring=write"})
    desk.server.fail(refusal, method="PUT")
    with pytest.raises(PermissionDenied, match="Resource not accessible") as caught:
        await desk.call("github_star_repo")
    assert caught.value.hint == "the token needs starring=write"


async def test_a_star_is_given_once_however_often(desk: Desk) -> None:
    for _ in range(2):
        assert await desk.call("github_star_repo") == {"starred": "acme/shop"}
    assert desk.github.starred == {"acme/shop"}


async def test_it_is_tried_again_when_the_line_breaks(desk: Desk) -> None:
    desk.server.fail(BROKEN, method="PUT", times=2)
    assert await desk.call("github_star_repo") == {"starred": "acme/shop"}
    assert len(desk.asked("PUT")) == 3
