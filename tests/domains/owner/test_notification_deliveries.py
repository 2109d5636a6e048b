"""Deliveries: tried again when that may help, not when it cannot, and asks are told like notifications."""

import asyncio
import json
import time
from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa

from rookery.asks.tables import asks
from rookery.domains.owner.notify_tables import notification_deliveries
from rookery.jobs.store import Jobs
from rookery.jobs.tables import jobs
from rookery.outgoing.client import GuardedClient
from tests.domains.owner.telling import HERE, Telling
from tests.jobs.working import running_worker
from tests.outgoing.loopback import Names, web_server
from tests.platform_fixtures import Fleet

pytestmark = pytest.mark.anyio


@pytest.fixture
def telling(database_url: str, make_fleet: Callable[..., Fleet]) -> Telling:
    return Telling(make_fleet(database_url, extra={}, outgoing_allow=HERE))


def open_ask(telling: Telling, **values: Any) -> str:
    """An ask of the default agent, and its deliveries waiting; its id."""
    agent = telling.agent
    row = {
        "id": "ask-1",
        "tenant": agent.tenant,
        "kind": "question",
        "agent_id": agent.agent,
        "question": "Which one?",
        "options": ["red", "blue"],
        "context": "The button.",
        "status": "open",
        "batch_key": "",
        "created_ms": 1,
        "expires_ms": 1 << 50,
    } | values

    def keep(tx: Any) -> None:
        tx.run(sa.insert(asks).values(**row))
        Jobs(tx, agent.tenant).defer("owner.deliver_ask", {"ask_id": row["id"]})

    telling.platform.database.direct(keep, write=True)
    return row["id"]


async def test_trouble_is_tried_three_times_and_then_given_up(telling: Telling) -> None:
    async with web_server() as web:
        web.says("/", 503)
        await telling.configure(telling.agent, "set", "webhook", config={"url": web.url})
        told = await telling.tell(telling.agent)
        assert told.pending == ["webhook"]
        (row,) = telling.rows("deliveries")
        assert (row.status, row.attempts, row.error) == ("pending", 1, "webhook answered 503")
        await telling.try_again()
        await telling.try_again()
        await telling.try_again()
        (row,) = telling.rows("deliveries")
        assert (row.status, row.attempts, len(web.seen)) == ("failed", 3, 3)
        assert row.error == "SERVICE_UNAVAILABLE: webhook answered 503"


async def test_a_second_try_delivers_and_names_the_delivery_as_the_first_did(telling: Telling) -> None:
    async with web_server() as web:
        web.says("/", 429)
        await telling.configure(telling.agent, "set", "webhook", config={"url": web.url})
        await telling.tell(telling.agent)
        web.says("/", 200)
        await telling.try_again()
        await telling.try_again()
        (row,) = telling.rows("deliveries")
        assert (row.status, row.attempts, row.error, len(web.seen)) == ("sent", 2, None, 2)
        assert len({seen.headers["x-rookery-delivery"] for seen in web.seen}) == 1


async def test_a_job_that_runs_again_after_the_delivery_sends_nothing(telling: Telling) -> None:
    async with web_server() as web:
        await telling.configure(telling.agent, "set", "webhook", config={"url": web.url})
        await telling.tell(telling.agent)
        telling.change(sa.update(jobs).values(state="waiting", due_ms=0))
        await telling.work()
        assert len(web.seen) == 1


async def test_a_channel_that_was_turned_off_or_removed_meanwhile_gets_nothing(telling: Telling) -> None:
    async with web_server() as web:
        await telling.configure(telling.agent, "set", "webhook", config={"url": web.url})
        for action in ("disable", "remove"):
            await telling.configure(telling.agent, "enable", "webhook")
            telling.leave(telling.agent)
            await telling.configure(telling.agent, action, "webhook")
            await telling.work()
        assert web.seen == []
        rows = telling.rows("deliveries")
        assert {(row.status, row.error) for row in rows} == {("failed", "the channel was turned off or removed")}


async def test_what_waited_for_hours_goes_by_the_channels_of_people_only(telling: Telling) -> None:
    async with web_server() as web:
        for actor, path in ((telling.agent, "agent"), (telling.owner, "people")):
            await telling.configure(actor, "set", "webhook", config={"url": f"{web.url}/{path}"})
        telling.leave(telling.agent)
        past = notification_deliveries.c.created_ms - 7 * 3_600_000
        telling.change(sa.update(notification_deliveries).values(created_ms=past))
        await telling.work()
        assert [seen.path for seen in web.seen] == ["/people"]
        assert {row.error for row in telling.rows("deliveries")} == {
            None,
            "the agent's channels are too slow for what it tells",
        }


async def test_a_name_that_leads_home_by_the_time_it_is_sent_is_refused(telling: Telling) -> None:
    names = Names(hooks_example=[["8.8.8.8"], ["127.0.0.2"]])
    facts: Any = telling.platform.calls.facts
    facts["outgoing"] = GuardedClient(HERE, resolve=names)
    async with web_server("127.0.0.2") as web:
        config = {"url": f"http://hooks.example:{web.port}/x"}
        await telling.configure(telling.agent, "set", "webhook", config=config)
        assert (await telling.tell(telling.agent)).failed == ["webhook"]
        assert web.seen == []
        (row,) = telling.rows("deliveries")
        assert row.error.startswith("the host is in this machine's own or a private network")


async def test_an_ask_goes_by_every_channel_once_with_numbers_from_one(telling: Telling) -> None:
    async with web_server() as web:
        web.says("/ntfy", 200, b'{"id": "n1"}')
        await telling.configure(telling.agent, "set", "webhook", config={"url": f"{web.url}/hook"})
        await telling.configure(telling.owner, "set", "ntfy", config={"topic": "t", "server_url": f"{web.url}/ntfy"})
        ask = open_ask(telling)
        await telling.work()
        telling.change(sa.update(jobs).where(jobs.c.kind == "owner.deliver_ask").values(state="waiting", due_ms=0))
        await telling.work()
        assert sorted(seen.path for seen in web.seen) == ["/hook", "/ntfy"]
        said = next(seen for seen in web.seen if seen.path == "/ntfy").body.decode()
        assert "Question from default: Which one?" in said
        assert said.index("1. red\\n") < said.index("2. blue\\n")
        assert f"rookery answer {ask} NUMBER or TEXT" in said
        refs = {row.channel_type: (row.about, row.status, row.external_ref) for row in telling.rows("deliveries")}
        assert refs == {"webhook": ("ask", "sent", None), "ntfy": ("ask", "sent", "n1")}


@pytest.mark.parametrize("values", [{"status": "answered"}, {"status": "withdrawn"}, {"expires_ms": 5}])
async def test_an_ask_that_is_settled_bothers_nobody(telling: Telling, values: dict[str, Any]) -> None:
    async with web_server() as web:
        await telling.configure(telling.agent, "set", "webhook", config={"url": web.url})
        open_ask(telling, **values)
        await telling.work()
        assert web.seen == []
        assert {row.status for row in telling.rows("deliveries")} <= {"failed"}


async def test_an_unknown_ask_is_no_trouble(telling: Telling) -> None:
    telling.platform.database.direct(
        lambda tx: Jobs(tx, "default").defer("owner.deliver_ask", {"ask_id": "ask-9"}), write=True
    )
    await telling.work()
    assert telling.rows("deliveries") == []


async def test_what_ask_owner_asks_goes_by_the_channels_while_it_waits(telling: Telling) -> None:
    async with web_server() as web, running_worker(telling.platform):
        await telling.configure(telling.owner, "set", "webhook", config={"url": web.url})
        asking = asyncio.create_task(telling.fleet.call(telling.agent, "ask_owner", question="Red or blue?"))
        deadline = time.monotonic() + 30
        while not web.seen:
            assert time.monotonic() < deadline
            await asyncio.sleep(0.01)
        told = json.loads(web.seen[0].body)
        assert (told["kind"], told["message"], told["agent"]) == ("ask", "Red or blue?", "default")
        await telling.fleet.call(telling.owner, "answer_ask", ask_id=told["id"], answer="blue")
        assert "blue" in str(await asking)
