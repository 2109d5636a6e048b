"""notify_owner: kept before it is sent, and truthful about which channels have it."""

import asyncio
import json
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import sqlalchemy as sa

from rookery.core.errors import InvalidParams, PermissionDenied, RateLimited
from rookery.domains.owner.delivery_store import Deliveries
from rookery.domains.owner.notify_tables import owner_notifications
from tests.domains.owner.telling import HERE, Telling
from tests.outgoing.loopback import web_server
from tests.platform_fixtures import Fleet

pytestmark = pytest.mark.anyio


@pytest.fixture
def telling(database_url: str, make_fleet: Callable[..., Fleet]) -> Telling:
    return Telling(make_fleet(database_url, extra={}, outgoing_allow=HERE))


async def test_bad_arguments_are_refused(telling: Telling) -> None:
    wrong: list[dict[str, Any]] = [
        {},
        {"message": " \n"},
        {"message": "x" * 8001},
        {"message": "x", "title": "t" * 201},
        {"message": "x", "level": "fatal"},
        {"message": "x", "agent": "ada"},
        {"message": "a\0b"},
        {"message": 5},
    ]
    for arguments in wrong:
        with pytest.raises(InvalidParams):
            await telling.fleet.call(telling.agent, "notify_owner", **arguments)
    assert telling.rows("told") == []


async def test_whoever_is_no_agent_of_ours_cannot_tell_anything(telling: Telling) -> None:
    outsider = replace(telling.agent, kind="external", agent=None, scopes=frozenset({"owner:notify"}))
    with pytest.raises(PermissionDenied, match="this caller is none"):
        await telling.fleet.call(outsider, "notify_owner", message="x")
    assert telling.rows("told") == []


async def test_without_a_channel_it_is_kept_and_nobody_is_said_to_have_it(telling: Telling) -> None:
    told = await telling.fleet.call(telling.agent, "corvid_notify_owner", message="  done  ", title="a\nb")
    assert (told.sent, told.pending, told.failed) == ([], [], [])
    (row,) = telling.rows("told")
    assert (row.id, row.message, row.title, row.level, row.sender) == (told.id, "done", "a b", "info", "default")


async def test_a_channel_that_takes_it_is_told_of(telling: Telling) -> None:
    async with web_server() as web:
        await telling.configure(telling.agent, "set", "webhook", config={"url": f"{web.url}/hook"})
        told = await telling.tell(telling.agent, "it works", title="News", level="success")
        assert (told.sent, told.pending, told.failed) == (["webhook"], [], [])
        (seen,) = web.seen
        (delivery,) = telling.rows("deliveries")
        assert json.loads(seen.body) == {
            "delivery": delivery.id,
            "kind": "notification",
            "id": told.id,
            "title": "News",
            "message": "it works",
            "level": "success",
            "agent": "default",
        }
        assert (delivery.status, delivery.attempts, delivery.error) == ("sent", 1, None)


async def test_channels_that_fail_or_are_slow_are_not_said_to_have_it(telling: Telling) -> None:
    async with web_server() as web, web_server() as slow:
        web.says("/refused", 403)
        slow.silent = True
        await telling.configure(telling.agent, "set", "webhook", config={"url": f"{web.url}/refused"})
        await telling.configure(telling.owner, "set", "ntfy", config={"topic": "t", "server_url": slow.url})
        started = time.monotonic()
        told = await telling.tell(telling.agent)
        assert (told.sent, told.pending, told.failed) == ([], ["ntfy"], ["webhook"])
        assert time.monotonic() - started < 10
        errors = {row.channel_type: row.error for row in telling.rows("deliveries")}
        assert errors["webhook"] == "webhook answered 403; check the config of the channel"


async def test_without_a_worker_it_waits_a_moment_and_is_pending(telling: Telling) -> None:
    async with web_server() as web:
        await telling.configure(telling.agent, "set", "webhook", config={"url": web.url})
        told = await telling.fleet.call(telling.agent, "notify_owner", message="x")
        assert (told.sent, told.pending) == ([], ["webhook"])
        assert web.seen == []
        await telling.work()
        assert len(web.seen) == 1


async def test_it_goes_by_the_agents_own_channels_and_by_those_of_people_and_no_others(telling: Telling) -> None:
    ada = await telling.new_agent("ada")
    async with web_server() as web:
        await telling.configure(telling.owner, "set", "webhook", config={"url": f"{web.url}/people"})
        await telling.configure(ada, "set", "webhook", config={"url": f"{web.url}/ada"})
        await telling.configure(telling.agent, "set", "webhook", config={"url": f"{web.url}/default"})
        await telling.configure(telling.agent, "disable", "webhook")
        assert (await telling.tell(ada)).sent == ["webhook", "webhook"]
        assert sorted(seen.path for seen in web.seen) == ["/ada", "/people"]
        web.seen.clear()
        await telling.tell(telling.agent)
        await telling.tell(telling.owner)
        assert [seen.path for seen in web.seen] == ["/people", "/people"]
        assert (await telling.tell(telling.stranger)).sent == []


async def test_an_agent_cannot_flood_its_owner(telling: Telling) -> None:
    agent = telling.agent
    for number in range(30):
        await telling.fleet.call(agent, "notify_owner", message=f"{number}")
    with pytest.raises(RateLimited):
        await telling.fleet.call(agent, "notify_owner", message="x")
    assert len(telling.rows("told")) == 30


async def test_two_servers_count_together(
    telling: Telling, database_url: str, make_fleet: Callable[..., Fleet]
) -> None:
    other = make_fleet(database_url, extra={})
    agent = telling.agent
    for number in range(15):
        await telling.fleet.call(agent, "notify_owner", message=f"{number}")
        await other.call(agent, "notify_owner", message=f"other {number}")
    for fleet in (telling.fleet, other):
        with pytest.raises(RateLimited, match="at most 30 things a minute"):
            await fleet.call(agent, "notify_owner", message="x")
    past = owner_notifications.c.created_ms - 60_000
    telling.change(sa.update(owner_notifications).values(created_ms=past))
    await other.call(agent, "notify_owner", message="x")
    assert len(telling.rows("told")) == 31


async def test_the_same_words_within_a_minute_are_told_once(telling: Telling) -> None:
    ada = await telling.new_agent("ada")
    async with web_server() as web:
        await telling.configure(telling.owner, "set", "webhook", config={"url": web.url})
        first = await telling.tell(telling.agent, "x")
        again = await telling.tell(telling.agent, " x ")
        assert (again.id, again.duplicate, again.sent) == (first.id, True, ["webhook"])
        await asyncio.gather(*(telling.fleet.call(telling.agent, "notify_owner", message="y") for _ in range(5)))
        assert len(telling.rows("told")) == 2
        for more in ({"title": "t"}, {"level": "error"}):
            await telling.fleet.call(telling.agent, "notify_owner", message="x", **more)
        await telling.fleet.call(ada, "notify_owner", message="x")
        assert len(telling.rows("told")) == 5
        telling.change(sa.update(owner_notifications).values(created_ms=owner_notifications.c.created_ms - 60_000))
        assert (await telling.tell(telling.agent, "x")).id != first.id
        assert len(telling.rows("told")) == 6


async def test_whoever_waits_for_channels_reads_seldom(telling: Telling, monkeypatch: pytest.MonkeyPatch) -> None:
    async with web_server() as web:
        web.silent = True
        await telling.configure(telling.agent, "set", "webhook", config={"url": web.url})
        reads: list[int] = []
        of = Deliveries.of
        monkeypatch.setattr(Deliveries, "of", lambda *given: reads.append(1) or of(*given))
        assert (await telling.tell(telling.agent)).pending == ["webhook"]
        assert len(reads) <= 8
