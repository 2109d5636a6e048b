"""Channel configs at rest: sealed with the key of the installation or with the server's own, and moved to a new key."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import sqlalchemy as sa

from rookery.core.errors import ConfigurationError
from rookery.domains.owner.channel_seal import ChannelSeal
from rookery.domains.owner.notify_tables import notification_channels as channels
from rookery.sealing.keyring import Keyring
from tests.domains.owner.telling import HERE, Telling
from tests.outgoing.loopback import web_server
from tests.platform_fixtures import Fleet

pytestmark = pytest.mark.anyio
OLD, NEW = Keyring(b"o" * 32), Keyring(b"n" * 32)
CONFIG = {"url": "https://8.8.8.8/s3cr3t-path", "secret": "s3cr3t-value"}


@pytest.fixture
def telling(database_url: str, make_fleet: Callable[..., Fleet]) -> Telling:
    return Telling(make_fleet(database_url, extra={}, outgoing_allow=HERE))


def use(telling: Telling, keyring: Keyring | None) -> None:
    facts: Any = telling.platform.calls.facts
    facts["keyring"] = keyring


def opened(telling: Telling, keyring: Keyring | None) -> list[dict[str, str]]:
    return telling.platform.database.direct(
        lambda tx: [ChannelSeal(tx, keyring).config_of(row) for row in tx.all(sa.select(channels))]
    )


@pytest.mark.parametrize("keyring", [None, OLD])
async def test_no_value_of_a_config_can_be_read_in_the_database(telling: Telling, keyring: Keyring | None) -> None:
    use(telling, keyring)
    await telling.configure(telling.agent, "set", "webhook", config=CONFIG)
    assert "s3cr3t" not in telling.everything()
    assert opened(telling, keyring) == [CONFIG]


async def test_another_key_another_row_and_no_key_open_nothing(telling: Telling) -> None:
    use(telling, OLD)
    await telling.configure(telling.agent, "set", "webhook", config=CONFIG)
    for keyring in (NEW, None):
        with pytest.raises(ConfigurationError) as refusal:
            opened(telling, keyring)
        assert "s3cr3t" not in str(refusal.value)
    await telling.configure(telling.owner, "set", "webhook", config=CONFIG)
    first, second = telling.rows("channels")
    telling.change(sa.update(channels).where(channels.c.id == first.id).values(config=second.config))
    with pytest.raises(ConfigurationError):
        opened(telling, OLD)


async def test_a_new_key_takes_over_what_the_old_one_and_the_server_sealed(telling: Telling) -> None:
    await telling.configure(telling.agent, "set", "webhook", config=CONFIG)
    use(telling, OLD)
    await telling.configure(telling.owner, "set", "webhook", config=CONFIG)
    database = telling.platform.database
    done = [database.direct(lambda tx: ChannelSeal(tx, OLD).reseal(NEW, limit=1), write=True) for _ in range(3)]
    assert done == [1, 1, 0]
    assert opened(telling, NEW) == [CONFIG, CONFIG]
    with pytest.raises(ConfigurationError):
        opened(telling, OLD)


async def test_a_config_that_does_not_open_fails_its_deliveries_and_says_why(telling: Telling) -> None:
    async with web_server() as web:
        use(telling, OLD)
        await telling.configure(telling.agent, "set", "webhook", config={"url": web.url})
        use(telling, NEW)
        telling.leave(telling.agent)
        for _ in range(3):
            await telling.try_again()
        assert web.seen == []
        (row,) = telling.rows("deliveries")
        assert row.status == "failed"
        assert "another key sealed it" in row.error


async def test_a_channel_set_before_there_was_a_key_still_works_with_one(telling: Telling) -> None:
    async with web_server() as web:
        await telling.configure(telling.agent, "set", "webhook", config={"url": web.url})
        use(telling, OLD)
        assert (await telling.tell(replace(telling.agent))).sent == ["webhook"]
