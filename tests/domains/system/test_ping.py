from datetime import UTC, datetime, timedelta

import pytest

from rookery.core.errors import InvalidParams, PermissionDenied
from tests.platform_fixtures import Fleet


async def test_an_agent_with_no_tools_cannot_even_ping(fleet: Fleet) -> None:
    await fleet.call(fleet.owner, "create_agent", name="ada", permissions=[])
    with pytest.raises(PermissionDenied):
        await fleet.call(fleet.actor(agent="ada"), "ping")


async def test_ping_answers_pong_and_the_time(fleet: Fleet) -> None:
    for actor in (fleet.actor(), fleet.actor(profile="intake"), fleet.actor(scheduler=True), fleet.owner):
        before = datetime.now(UTC) - timedelta(milliseconds=1)
        result = await fleet.platform.calls.call(actor, "ping", {})
        assert set(result.structured) == {"status", "timestamp"}
        assert result.structured["status"] == "pong"
        told = datetime.fromisoformat(result.structured["timestamp"])
        assert before <= told <= datetime.now(UTC)
        assert result.text.startswith('{"status":"pong"')


async def test_ping_takes_no_arguments(fleet: Fleet) -> None:
    with pytest.raises(InvalidParams, match="loudly"):
        await fleet.call(fleet.actor(), "ping", loudly=True)
