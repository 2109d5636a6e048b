"""The stream of a session's events: every event once, wherever a reader was cut off, and nobody's but those who may."""

import asyncio
import contextlib
import random
import socket

import pytest

from rookery.lifecycle.run_store import NewRun, Runs
from rookery.server.api import streaming
from rookery.sessions.events import SessionEvent
from rookery.sessions.log import SessionLog
from tests.server.api.conftest import LIMIT_S, Site, events_of, until

pytestmark = pytest.mark.anyio


class Talker:
    """A session in which things happen when a test says so."""

    def __init__(self, site: Site, session_id: str) -> None:
        self.log: SessionLog = site.fleet.platform.calls.facts["sessions"].log
        self.id = session_id
        new = NewRun(project_id=site.fleet.actor().project or "", kind="session")
        self.run = site.fleet.platform.database.direct(lambda tx: Runs(tx, "default").start(new), write=True).id

    async def say(self, *words: str) -> None:
        self.log.put("default", self.id, self.run, *(SessionEvent("system", {"text": word}) for word in words))
        await self.log.flush(self.id)


async def talker(site: Site) -> Talker:
    async with site.client(site.token()) as owner:
        return Talker(site, (await owner.post("/api/sessions", json={})).json()["session"]["id"])


async def test_ids_of_other_sessions_and_of_events_to_come_are_refused(site: Site) -> None:
    one, other = await talker(site), await talker(site)
    await one.say("a")
    async with site.client(site.token()) as owner:
        for last, status in (
            (f"{other.id}:1", 400),
            ("1", 400),
            ("x" * 500, 400),
            (f"{one.id}:-1", 400),
            (f"{one.id}:2", 409),
        ):
            answer = await owner.get(f"/api/sessions/{one.id}/events", headers={"Last-Event-ID": last})
            assert (answer.status_code, bool(answer.json()["error"]["message"])) == (status, True), last


async def test_a_reader_who_loses_the_right_is_cut_off(site: Site) -> None:
    one, token = await talker(site), site.token()
    async with site.client(token) as owner, contextlib.aclosing(events_of(owner, one.id)) as coming:
        assert (await anext(coming)).name == "snapshot"
        tokens = (await site.fleet.call(site.fleet.owner, "list_tokens")).model_dump()["tokens"]
        for each in tokens:
            await site.fleet.call(site.fleet.owner, "revoke_token", id=each["id"])
        await one.say("secret")
        async with asyncio.timeout(LIMIT_S):
            assert [event.name async for event in coming] == []


async def test_a_stream_ends_with_its_token(site: Site) -> None:
    one = await talker(site)
    token = site.token(lasts_ms="1500")
    async with site.client(token) as owner, contextlib.aclosing(events_of(owner, one.id)) as coming:
        assert (await anext(coming)).name == "snapshot"
        async with asyncio.timeout(LIMIT_S):
            while (await owner.get("/api/sessions")).status_code == 200:
                await asyncio.sleep(0.05)
            await one.say("secret")
            assert [event.name async for event in coming] == []


async def test_the_stream_begins_with_how_things_stand_and_goes_on_from_the_last_event_seen(site: Site) -> None:
    one = await talker(site)
    await one.say("a", "b", "c")
    async with (
        site.client(site.token()) as owner,
        contextlib.aclosing(events_of(owner, one.id, f"{one.id}:1")) as coming,
    ):
        first = await anext(coming)
        assert (first.name, first.id, first.data["id"], first.data["event_count"]) == ("snapshot", None, one.id, 3)
        assert [(await anext(coming)).data["text"] for _ in range(2)] == ["b", "c"]
        await one.say("d\n\ne")
        last = await anext(coming)
        assert (last.data["text"], last.id, last.data["number"]) == ("d\n\ne", f"{one.id}:4", 4)


@pytest.mark.parametrize("seed", range(4))
async def test_a_client_that_is_cut_off_anywhere_sees_every_event_once(site: Site, seed: int) -> None:
    chance, one, total = random.Random(seed), await talker(site), 120

    async def talk() -> None:
        said = 0
        while said < total:
            many = min(chance.randint(1, 9), total - said)
            await one.say(*(f"{said + at}" for at in range(many)))
            said += many

    talking, seen, last = asyncio.create_task(talk()), list[str](), None
    async with site.client(site.token()) as owner, asyncio.timeout(LIMIT_S):
        while len(seen) < total:
            patience = chance.randint(1, 30)
            async with contextlib.aclosing(events_of(owner, one.id, last)) as coming:
                async for event in coming:
                    if event.name != "snapshot":
                        seen.append(event.data["text"])
                        last = event.id
                        patience -= 1
                    if not patience or len(seen) == total:
                        break
    await talking
    assert seen == [f"{number}" for number in range(total)]


async def test_a_reader_who_does_not_read_is_let_go(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming, "PATIENCE_S", 0.2)
    one, token = await talker(site), site.token()
    host, port = site.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))) as line:
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        head = (f"GET /api/sessions/{one.id}/events HTTP/1.1", f"Host: {host}:{port}", f"Authorization: Bearer {token}")
        line.sendall(("\r\n".join(head) + "\r\n\r\n").encode())
        streams = site.web._api._streams
        async with asyncio.timeout(LIMIT_S):
            while not streams._open:
                await asyncio.sleep(0.01)
            while streams._open:
                await one.say("x" * 60_000)
    async with site.client(site.token()) as owner:
        assert (await until(owner, one.id, "system"))[0].name == "snapshot"


async def test_nothing_is_left_of_a_reader_who_goes(site: Site) -> None:
    one = await talker(site)
    async with site.client(site.token()) as owner, contextlib.aclosing(events_of(owner, one.id)) as coming:
        await anext(coming)
    async with asyncio.timeout(LIMIT_S):
        while site.web._api._streams._open:
            await asyncio.sleep(0.01)
