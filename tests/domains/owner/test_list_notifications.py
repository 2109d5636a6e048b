"""list_notifications: people read what they were told, also what no channel took."""

from collections.abc import Callable

import pytest

from rookery.core.errors import InvalidParams, PermissionDenied
from tests.domains.owner.telling import HERE, Telling
from tests.outgoing.loopback import web_server
from tests.platform_fixtures import Fleet

pytestmark = pytest.mark.anyio


@pytest.fixture
def telling(database_url: str, make_fleet: Callable[..., Fleet]) -> Telling:
    return Telling(make_fleet(database_url, extra={}, outgoing_allow=HERE))


async def test_agents_cannot_read_them(telling: Telling) -> None:
    with pytest.raises(PermissionDenied, match="is for people"):
        await telling.fleet.call(telling.agent, "list_notifications")
    for limit in (0, 101):
        with pytest.raises(InvalidParams):
            await telling.fleet.call(telling.owner, "list_notifications", limit=limit)


async def test_the_newest_come_first_with_how_far_they_got(telling: Telling) -> None:
    await telling.fleet.call(telling.agent, "notify_owner", message="first", level="error")
    async with web_server() as web:
        web.says("/", 404)
        await telling.configure(telling.agent, "set", "webhook", config={"url": web.url})
        await telling.tell(telling.agent, "second", title="Two")
    found = (await telling.fleet.call(telling.owner, "list_notifications")).notifications
    assert [(each["message"], each["title"], each["from"]) for each in found] == [
        ("second", "Two", "default"),
        ("first", "", "default"),
    ]
    (delivery,) = found[0]["deliveries"]
    assert (delivery["channel_type"], delivery["status"], delivery["attempts"]) == ("webhook", "failed", 1)
    assert found[1]["deliveries"] == []
    errors = await telling.fleet.call(telling.owner, "list_notifications", level="error", limit=1)
    assert [each["message"] for each in errors.notifications] == ["first"]
    assert (await telling.fleet.call(telling.stranger, "list_notifications")).notifications == []
