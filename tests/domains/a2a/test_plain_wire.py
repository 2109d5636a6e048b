"""The wire from before the protocol, from both of its ends."""

import json
from typing import Any

import pytest

from rookery.core.errors import Conflict, NotFound, ServiceUnavailable
from rookery.domains.a2a.peer import Asked
from rookery.domains.a2a.plain_peer import PlainPeer
from rookery.outgoing.client import GuardedClient
from rookery.settings import Settings
from tests.domains.a2a.conftest import MakeOutpost, on_one_database
from tests.domains.a2a.outpost import HERE, Outpost
from tests.domains.a2a.visitor import open_house
from tests.outgoing.loopback import Said, Seen, Web, web_server
from tests.server.streamable.web import until

CARD = {"name": "Old", "version": "1.0.0", "description": "Before the protocol"}
DONE = {"id": "t1", "state": "completed", "messages": [{"role": "agent", "parts": [{"type": "text", "text": "hi"}]}]}


@on_one_database
@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"<html>", 400),
        (b"[]", 400),
        (b"{}", 400),
        (b'{"message": "  "}', 400),
        (b'{"message": 7}', 400),
        (b'{"message": "x", "timeoutMs": -1}', 400),
        (b'{"message": "x", "timeoutMs": true}', 400),
        (b'{"message": "x", "timeoutMs": 1e999}', 400),
        (b'{"params": {"message": "x", "depth": "deep"}}', 400),
        (b'{"params": {"message": "x", "depth": 4}}', 403),
        (b'{"message": "\\u0000"}', 400),
    ],
)
async def test_what_is_no_task_is_refused(make_outpost: MakeOutpost, body: bytes, status: int) -> None:
    outpost = make_outpost(auth_mode="none")
    async with open_house(outpost, work=False) as web:
        answer = await web.http.post("/a2a/tasks/send", content=body)
    assert answer.status_code == status
    assert answer.json()["error"]
    assert outpost.rows("tasks") == []


async def test_a_task_is_posted_and_looked_at_by_its_sender_alone(outpost: Outpost) -> None:
    await outpost.fleet.call(outpost.fleet.owner, "create_agent", name="bob")
    async with open_house(outpost) as web:
        ada, bob = [{"authorization": f"Bearer {await web.token(name)}"} for name in ("default", "bob")]
        for body in ({"params": {"message": "!say one", "skill": "ping"}}, {"message": "!say one"}):
            task = (await web.http.post("/a2a/tasks/send", json=body, headers=ada)).json()
            assert (task["state"], task["messages"][0]["role"]) == ("submitted", "user")
            found = await _over(web.http, task["id"], ada)
            assert found["state"] == "completed"
            assert found["messages"][-1] == {"role": "agent", "parts": [{"type": "text", "text": "one"}]}
            assert found["sessionId"]
            assert found["createdAt"] <= found["updatedAt"]
            assert (await web.http.get(f"/a2a/tasks/{task['id']}", headers=bob)).status_code == 404
        assert (await web.http.get("/a2a/tasks/nope", headers=ada)).status_code == 404


async def test_a_task_that_takes_too_long_fails(outpost: Outpost) -> None:
    async with open_house(outpost) as web:
        ada = {"authorization": f"Bearer {await web.token()}"}
        body = {"message": "!wait 60", "timeoutMs": 50}
        task = (await web.http.post("/a2a/tasks/send", json=body, headers=ada)).json()
        found = await _over(web.http, task["id"], ada)
    assert found["state"] == "failed"
    assert found["messages"][-1]["parts"][0]["text"] == "not done within its time"


async def test_too_many_tasks_are_told_to_wait(make_outpost: MakeOutpost) -> None:
    async with open_house(make_outpost(auth_mode="none", a2a_inbound_rate_limit_per_min=1), work=False) as web:
        first, second = [await web.http.post("/a2a/tasks/send", json={"message": "x"}) for _ in range(2)]
    assert (first.status_code, second.status_code) == (200, 429)
    assert second.headers["retry-after"] == "60"


async def _over(http: Any, task_id: str, head: dict[str, str]) -> dict[str, Any]:
    for _ in range(3000):
        found = (await http.get(f"/a2a/tasks/{task_id}", headers=head)).json()
        if found["state"] not in ("submitted", "working"):
            return found
    raise AssertionError("it never ends")


async def test_our_own_client_talks_with_our_own_server(outpost: Outpost) -> None:
    async with open_house(outpost) as web:
        place = f"{HERE}:{web.port}"
        settings = Settings(home="unused", a2a_tokens=((place, (await web.token(),)),))
        peer = PlainPeer(web.url, GuardedClient((HERE,)), settings)
        told = await peer.send(Asked(text="!say hello", skill="ping", depth=2, limit_s=30))
        looked: list[Any] = []
        while not looked or looked[-1].state in ("submitted", "working"):
            looked.append(await peer.look(told.task))
        with pytest.raises(NotFound):
            await peer.look("other")
    assert (looked[-1].state, looked[-1].text) == ("completed", "hello")


def corvid(web: Web, *answers: Any) -> None:
    """Have the server behave as the old ones did: one answer to the task, the others to looks at it."""
    rest = list(answers)

    async def act(seen: Seen) -> Said:
        if seen.path.endswith("agent-card.json"):
            return 200, {}, json.dumps(CARD).encode()
        said = rest.pop(0) if len(rest) > 1 else rest[0]
        return (200, {}, json.dumps(said).encode()) if isinstance(said, dict) else (said, {}, b"oops")

    web.act = act


async def test_an_agent_of_old_is_asked_on_its_own_wire(outpost: Outpost) -> None:
    async with web_server() as web:
        corvid(web, {"id": "t1", "state": "submitted"}, {"id": "t1", "state": "working", "messages": []}, DONE)
        done = await outpost.invoke(web.url, "hello", skill="s")
    assert done["answer"] == "hi"
    posted = web.seen[1]
    assert (posted.method, posted.path) == ("POST", "/a2a/tasks/send")
    assert json.loads(posted.body) == {"params": {"message": "hello", "timeoutMs": 300_000, "depth": 2, "skill": "s"}}
    assert [seen.path for seen in web.seen[2:]] == ["/a2a/tasks/t1"] * 2


async def test_a_look_that_fails_is_repeated(outpost: Outpost) -> None:
    async with web_server() as web:
        corvid(web, {"id": "t1", "state": "working"}, DONE)
        acted = web.act
        assert acted is not None

        async def flaky(seen: Seen) -> Said:
            if seen.path == "/a2a/tasks/t1" and len([each for each in web.seen if each.path == seen.path]) == 1:
                raise ConnectionError("gone for a moment")
            return await acted(seen)

        web.act = flaky
        assert (await outpost.invoke(web.url, "hello"))["answer"] == "hi"
        await until(lambda: len(web.seen) == 4, "it looks twice")


@on_one_database
@pytest.mark.parametrize(
    ("answer", "error", "why"),
    [
        (500, ServiceUnavailable, "answered with 500"),
        (429, ServiceUnavailable, "answered with 429"),
        (400, Conflict, "answered with 400"),
        ({"id": "t1"}, ServiceUnavailable, "a task without an id or a state"),
        ({"id": 7, "state": "working"}, ServiceUnavailable, "a task without an id or a state"),
        ({"state": "completed"}, ServiceUnavailable, "a task without an id or a state"),
        ({"id": "t1", "state": "failed", "messages": "none"}, Conflict, "says failed: it gives no reason"),
    ],
)
async def test_what_an_old_agent_gets_wrong_is_told(outpost: Outpost, answer: Any, error: Any, why: str) -> None:
    async with web_server() as web:
        corvid(web, answer)
        with pytest.raises(error, match=why):
            await outpost.invoke(web.url, "hello")


async def test_an_agent_that_is_busy_for_a_while_is_waited_for(outpost: Outpost) -> None:
    async with web_server() as web:
        corvid(web, {"id": "t1", "state": "working"}, 503, 429, 404, DONE)
        assert (await outpost.invoke(web.url, "hello"))["answer"] == "hi"


@on_one_database
async def test_an_agent_that_refuses_every_look_is_given_up(outpost: Outpost) -> None:
    async with web_server() as web:
        corvid(web, {"id": "t1", "state": "working"}, 400)
        with pytest.raises(Conflict, match="answered with 400; its task t1 was given up"):
            await outpost.invoke(web.url, "hello")
