"""Who sent a task, and what it may do here: partners with tokens of one agent are strangers to each other."""

import asyncio
import json
from typing import Any

import httpx
import pytest
import sqlalchemy as sa
from a2a.client.errors import A2AClientError
from a2a.types.a2a_pb2 import ListTasksRequest, TaskState
from a2a.utils.errors import TaskNotFoundError

from rookery.domains.a2a.inbound import MAX_OPEN, Incoming, submit
from rookery.domains.a2a.tables import tasks
from rookery.lifecycle.sessions import Outcome
from rookery.server.a2a import following
from tests.domains.a2a.conftest import MakeOutpost, on_one_database
from tests.domains.a2a.outpost import Outpost
from tests.domains.a2a.visitor import answer_of, open_house, state_of, visiting
from tests.domains.messages.post_office import Gated
from tests.server.streamable.web import until

WAIT = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage"}
A2A = {"a2a-version": "1.0"}


def message(text: str, message_id: str) -> dict[str, object]:
    return {**WAIT, "params": {"message": {"messageId": message_id, "role": "ROLE_USER", "parts": [{"text": text}]}}}


async def test_two_tokens_of_one_agent_are_two_senders(make_outpost: MakeOutpost) -> None:
    outpost = make_outpost(a2a_inbound_rate_limit_per_min=1)
    async with open_house(outpost) as web:
        first, second = await web.token(), await web.token()
        async with visiting(web, first, streaming=False) as ada, visiting(web, second, streaming=False) as bob:
            task = await ada.send("!say private", message_id="m-1")
            for attempt in (bob.look(task.id), bob.cancel(task.id), bob.send("hi", context_id=task.context_id)):
                with pytest.raises(TaskNotFoundError):
                    await attempt
            assert list((await bob.client.list_tasks(ListTasksRequest())).tasks) == []
            # Neither the id of the message nor the rate is shared.
            assert answer_of(await bob.send("!say other", message_id="m-1")) == "other"
            assert [each.id for each in (await ada.client.list_tasks(ListTasksRequest())).tasks] == [task.id]
            plain = {"authorization": f"Bearer {second}"}
            assert (await web.http.get(f"/a2a/tasks/{task.id}", headers=plain)).status_code == 404


async def test_an_agent_with_more_tools_does_not_lend_them_to_the_sender(outpost: Outpost) -> None:
    owner = outpost.fleet.owner
    await outpost.fleet.call(owner, "create_agent", name="small", permissions=["send_message", "ping"])
    await outpost.fleet.call(owner, "create_agent", name="powerful")
    await outpost.fleet.call(owner, "grant_tool", agent="powerful", tool="grant_credits")
    async with open_house(outpost) as web:
        head = {"authorization": f"Bearer {await web.token('small')}", **A2A}
        asked = message('!call ping {}\n!call save_memory {"key": "k", "content": "c"}', "m-1")
        answer = await web.http.post("/a2a/agents/powerful", json=asked, headers=head)
    (said,) = answer.json()["result"]["task"]["artifacts"][0]["parts"]
    assert said["text"].startswith("ping: ")
    assert "save_memory was refused: PERMISSION_DENIED" in said["text"]
    actor = outpost.runtime.asked[0][0]
    assert actor.agent_name == "powerful"
    assert outpost.fleet.names(actor) <= {"send_message", "ping"}


async def test_a_task_without_a_worker_fails_when_its_time_is_over(outpost: Outpost) -> None:
    async with (
        open_house(outpost, work=False) as web,
        visiting(web, await web.token(), streaming=False, polling=True) as visitor,
    ):
        task = await visitor.send("!say hi")
        other = await visitor.send("!say ho")
        half = outpost.platform.settings.agent_timeout_ms // 2
        outpost.change(sa.update(tasks).values(created_ms=tasks.c.created_ms - half))
        assert state_of(await visitor.look(task.id)) == "submitted"
        outpost.change(sa.update(tasks).values(created_ms=tasks.c.created_ms - half))
        late = await visitor.look(task.id)
        assert (state_of(late), late.status.message.parts[0].text) == ("failed", "not done within its time")
        async with visiting(web, await web.token()) as stranger:
            with pytest.raises(TaskNotFoundError):
                await stranger.look(other.id)
            assert list((await stranger.client.list_tasks(ListTasksRequest())).tasks) == []
        assert {row.state for row in outpost.rows("tasks")} == {"submitted", "failed"}
        for status in (TaskState.TASK_STATE_UNSPECIFIED, TaskState.TASK_STATE_FAILED):
            listed = await visitor.client.list_tasks(ListTasksRequest(status=status))
            assert [(each.id, state_of(each)) for each in listed.tasks] == [(other.id, "failed"), (task.id, "failed")]
        waiting = await visitor.client.list_tasks(ListTasksRequest(status=TaskState.TASK_STATE_SUBMITTED))
        assert (list(waiting.tasks), waiting.total_size) == ([], 0)
    async with open_house(outpost):
        await until(lambda: {row.state for row in outpost.rows("tasks")} == {"failed"}, "both have failed")
    assert outpost.runtime.asked == []


def test_one_sender_has_so_many_open_tasks(make_outpost: MakeOutpost) -> None:
    outpost = make_outpost(a2a_inbound_rate_limit_per_min=0)
    calls, database = outpost.platform.calls, outpost.platform.database

    def send(number: int) -> None:
        incoming = Incoming(text=f"task {number}")
        database.direct(lambda tx: submit(tx, calls, outpost.agent(), incoming), write=True)

    for number in range(MAX_OPEN):
        send(number)
    with pytest.raises(Exception, match="10 tasks are not done yet"):
        send(MAX_OPEN)
    outpost.change(sa.update(tasks).values(created_ms=tasks.c.created_ms - outpost.platform.settings.agent_timeout_ms))
    send(MAX_OPEN)
    assert [row.state for row in outpost.rows("tasks")].count("failed") == MAX_OPEN


@on_one_database
async def test_only_so_many_requests_of_one_sender_wait(outpost: Outpost, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "MOST_OF_ONE", 2)
    gated = Gated(Outcome("done", output="at last"))
    outpost.use(gated)
    async with (
        open_house(outpost) as web,
        httpx.AsyncClient(base_url=web.url, trust_env=False, verify=False, timeout=30) as http,
    ):
        head = {"authorization": f"Bearer {await web.token()}", **A2A}
        waiting = [asyncio.create_task(http.post("/a2a", json=message("x", "m-1"), headers=head)) for _ in range(3)]
        done, rest = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        refused = done.pop().result()
        assert (refused.status_code, refused.headers["retry-after"]) == (429, "60")
        await asyncio.wait_for(gated.started.wait(), 20)
        gated.gate.set()
        for each in rest:
            assert (await each).json()["result"]["task"]["status"]["state"] == "TASK_STATE_COMPLETED"
        again = await http.post("/a2a", json=message("x", "m-1"), headers=head)
    assert again.status_code == 200


@on_one_database
async def test_a_body_that_would_take_long_to_read_is_not_read(outpost: Outpost) -> None:
    async with open_house(outpost, work=False) as web:
        head = {"authorization": f"Bearer {await web.token()}", **A2A}
        many: list[dict[str, str]] = [{}] * 100_000
        for path, body, why in (
            ("/a2a", {**WAIT, "params": {"message": {"parts": many}}}, "more than 2000 values"),
            ("/a2a", {**WAIT, "params": {"metadata": {"a": [1] * 2_000}}}, "more than 2000 values"),
            ("/a2a/tasks/send", {"params": {"message": {"parts": many}}}, "more than 2000 values"),
            ("/a2a", message("x" * 600_000, "m-1"), "more than 524288 bytes"),
            ("/a2a/tasks/send", {"message": "x" * 600_000}, "more than 524288 bytes"),
        ):
            answer = await web.http.post(path, json=body, headers=head)
            assert answer.status_code == 413
            assert why in answer.json()["error"]
        nested = await web.http.post("/a2a", content=b"[" * 100_000, headers=head)
        assert "error" in nested.json()
    assert outpost.rows("tasks") == []


async def until_it_waits(http: httpx.AsyncClient, body: Any, head: dict[str, str]) -> None:
    """Send until the server has a place for it, and hang up."""
    for _ in range(200):
        try:
            assert (await http.post("/a2a", json=body, headers=head, timeout=1)).status_code == 429
        except httpx.ReadTimeout:
            return
        await asyncio.sleep(0.02)
    raise AssertionError("no place is given back")


@on_one_database
async def test_who_hangs_up_gives_its_place_back(outpost: Outpost, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "MOST_OF_ONE", 1)
    outpost.use(Gated(Outcome("done", output="never")))
    async with open_house(outpost) as web, httpx.AsyncClient(base_url=web.url, trust_env=False, verify=False) as http:
        head = {"authorization": f"Bearer {await web.token()}", **A2A}
        for number in range(3):
            await until_it_waits(http, message("x", f"m-{number}"), head)
    assert len(outpost.rows("tasks")) == 3


@on_one_database
async def test_who_leaves_a_stream_gives_its_place_back(outpost: Outpost, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "MOST_OF_ONE", 1)
    outpost.use(Gated(Outcome("done", output="never")))
    async with (
        open_house(outpost) as web,
        httpx.AsyncClient(base_url=web.url, trust_env=False, verify=False, timeout=30) as http,
    ):
        head = {"authorization": f"Bearer {await web.token()}", **A2A}
        body = {**message("x", "m-1"), "method": "SendStreamingMessage"}
        for _ in range(3):
            for _ in range(200):
                async with http.stream("POST", "/a2a", json=body, headers=head) as answer:
                    if answer.status_code == 200:
                        first = await anext(answer.aiter_lines())
                        break
                await asyncio.sleep(0.02)
            else:
                raise AssertionError("no place is given back")
            assert first.startswith("data:")
    assert len(outpost.rows("tasks")) == 1


async def test_many_followers_of_a_task_are_all_told(outpost: Outpost) -> None:
    gated = Gated(Outcome("done", output="at last"))
    outpost.use(gated)
    async with open_house(outpost) as web, visiting(web, await web.token()) as visitor:
        streams = [asyncio.create_task(visitor.events("begin", message_id="m-1")) for _ in range(5)]
        await asyncio.wait_for(gated.started.wait(), 20)
        gated.gate.set()
        for events in await asyncio.gather(*streams):
            # Whoever comes when it is over is told the task alone.
            last = events[-1]
            assert state_of(last.task if last.HasField("task") else last.status_update) == "completed"


@on_one_database
@pytest.mark.parametrize("method", ["message/stream", "SendStreamingMessage"])
async def test_a_stream_that_is_refused_says_so_by_its_status(make_outpost: MakeOutpost, method: str) -> None:
    async with open_house(make_outpost(a2a_inbound_rate_limit_per_min=1), work=False) as web:
        head = {"authorization": f"Bearer {await web.token()}"}
        old = method == "message/stream"
        part, role = ({"kind": "text", "text": "x"}, "user") if old else ({"text": "x"}, "ROLE_USER")
        sent = {"messageId": "m-2", "role": role, "parts": [part]} | ({"kind": "message"} if old else {})
        assert (await web.http.post("/a2a/tasks/send", json={"message": "x"}, headers=head)).status_code == 200
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": {"message": sent}})
        answer = await web.http.post("/a2a", content=body, headers=head | ({} if old else A2A))
    assert answer.status_code == 429
    assert "1 tasks a minute" in answer.json()["error"]["message"]


async def test_a_refusal_without_the_right_stays_a_refusal(outpost: Outpost) -> None:
    async with (
        open_house(outpost, work=False) as web,
        visiting(web, await web.token(scopes=["tracker:*"]), version="0.3") as visitor,
    ):
        with pytest.raises(A2AClientError, match="403"):
            await visitor.events("!say hi")
