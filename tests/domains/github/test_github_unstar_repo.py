"""Taking a star back."""

import pytest

from rookery.core.errors import NotFound
from tests.domains.github.desk import Desk


async def test_what_is_not_there_has_no_star_to_take(desk: Desk) -> None:
    with pytest.raises(NotFound):
        await desk.call("github_unstar_repo", repo="acme/till")


async def test_a_star_is_gone_whether_or_not_it_was_there(desk: Desk) -> None:
    desk.github.starred.add("acme/shop")
    for _ in range(2):
        assert await desk.call("github_unstar_repo") == {"unstarred": "acme/shop"}
    assert desk.github.starred == set()
