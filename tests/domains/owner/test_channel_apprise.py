"""The channel of Apprise: for people alone, and only where the extra is installed."""

from collections.abc import Callable

import pytest

from rookery.core.errors import ValidationFailed
from rookery.outgoing.services import is_installed
from tests.domains.owner.telling import HERE, Telling
from tests.outgoing.loopback import web_server
from tests.platform_fixtures import Fleet

pytestmark = pytest.mark.anyio


@pytest.fixture
def telling(database_url: str, make_fleet: Callable[..., Fleet]) -> Telling:
    return Telling(make_fleet(database_url, extra={}, outgoing_allow=HERE))


async def test_an_agent_cannot_set_it_up_and_without_the_extra_nobody_can(telling: Telling) -> None:
    with pytest.raises(ValidationFailed, match="set up by people"):
        await telling.configure(telling.agent, "set", "apprise", config={"url": "json://8.8.8.8"})
    wrong = "apprise knows no service" if is_installed() else "apprise is not installed"
    with pytest.raises(ValidationFailed, match=wrong):
        await telling.configure(telling.owner, "set", "apprise", config={"url": "pigeon://8.8.8.8"})
    assert telling.rows("channels") == []


@pytest.mark.skipif(not is_installed(), reason="the extra notify is not installed")
async def test_what_an_agent_tells_goes_by_the_service_that_the_owner_chose(telling: Telling) -> None:
    async with web_server() as web:
        address = f"json://127.0.0.1:{web.port}/s3cr3t"
        await telling.configure(telling.owner, "set", "apprise", config={"url": address})
        telling.leave(telling.agent)
        await telling.work()
        assert [row.status for row in telling.rows("deliveries")] == ["sent"]
        assert [seen.path for seen in web.seen] == ["/s3cr3t"]
    assert "s3cr3t" not in telling.everything()
