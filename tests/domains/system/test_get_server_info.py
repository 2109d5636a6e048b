from collections.abc import Callable

import pytest

from rookery import __version__
from rookery.core.errors import InvalidParams, PermissionDenied
from tests.platform_fixtures import Fleet


async def test_an_agent_without_the_tool_is_told_nothing(fleet: Fleet) -> None:
    await fleet.call(fleet.owner, "create_agent", name="ada", permissions=["ping"])
    with pytest.raises(PermissionDenied):
        await fleet.call(fleet.actor(agent="ada"), "get_server_info")


async def test_it_says_product_version_and_port(database_url: str, make_fleet: Callable[..., Fleet]) -> None:
    fleet = make_fleet(database_url, port=4711)
    told = await fleet.call(fleet.actor(), "get_server_info")
    assert (told.product, told.version, told.port) == ("Rookery", __version__, 4711)
    assert told.uptime_seconds is None


async def test_uptime_is_told_if_asked_for_and_grows(fleet: Fleet) -> None:
    first = await fleet.call(fleet.actor(), "get_server_info", include_uptime=True)
    second = await fleet.call(fleet.actor(), "get_server_info", include_uptime=True)
    assert 0 <= first.uptime_seconds <= second.uptime_seconds


async def test_only_a_yes_or_no_is_taken(fleet: Fleet) -> None:
    for wrong in ("maybe", [], 7):
        with pytest.raises(InvalidParams, match="include_uptime"):
            await fleet.call(fleet.actor(), "get_server_info", include_uptime=wrong)
