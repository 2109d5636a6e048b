"""Tasks that come in by A2A, sent by the official SDK's client: who may, what becomes of them, and who sees them."""

import asyncio

import pytest
import sqlalchemy as sa
from a2a.client.errors import A2AClientError
from a2a.types.a2a_pb2 import (
    ListTasksRequest,
    Part,
    SendMessageConfiguration,
    SubscribeToTaskRequest,
    TaskPushNotificationConfig,
    TaskState,
)
from a2a.utils.errors import (
    ContentTypeNotSupportedError,
    InvalidParamsError,
    PushNotificationNotSupportedError,
    TaskNotCancelableError,
    TaskNotFoundError,
    UnsupportedOperationError,
)

from rookery.core.errors import Conflict, PermissionDenied
from rookery.lifecycle.sessions import Outcome
from tests.domains.a2a.conftest import MakeOutpost, on_one_database
from tests.domains.a2a.outpost import Outpost
from tests.domains.a2a.visitor import answer_of, open_house, state_of, visiting
from tests.domains.messages.post_office import Gated

REVISIONS = pytest.mark.parametrize("version", ["1.0", "0.3"])


async def test_who_shows_no_token_or_a_wrong_one_is_challenged(outpost: Outpost) -> None:
    async with open_house(outpost, work=False) as web:
        for head in ({}, {"authorization": "Bearer rk_wrong"}):
            for method, path in (("POST", "/a2a"), ("POST", "/a2a/tasks/send"), ("GET", "/a2a/tasks/x")):
                answer = await web.http.request(method, path, headers=head, json={} if method == "POST" else None)
                assert answer.status_code == 401
                assert answer.headers["www-authenticate"].startswith('Bearer realm="rookery"')
    assert outpost.rows("tasks") == []


async def test_who_may_not_send_messages_may_not_send_tasks(outpost: Outpost) -> None:
    async with (
        open_house(outpost, work=False) as web,
        visiting(web, await web.token(scopes=["tracker:*"]), streaming=False) as visitor,
    ):
        with pytest.raises(A2AClientError, match="403"):
            await visitor.send("!say hi")
    assert outpost.rows("tasks") == []


async def test_a_page_of_another_site_cannot_send_tasks(make_outpost: MakeOutpost) -> None:
    async with open_house(make_outpost(auth_mode="none"), work=False) as web:
        answer = await web.http.post("/a2a", json={}, headers={"origin": "https://evil.example"})
        assert answer.status_code == 403


@REVISIONS
async def test_a_task_is_done_by_an_unattended_session_and_streamed(outpost: Outpost, version: str) -> None:
    async with open_house(outpost) as web, visiting(web, await web.token(), version=version) as visitor:
        events = await visitor.events("!say the answer", about={"skill": "ping"})
        kinds = [event.WhichOneof("payload") for event in events]
        assert (kinds[0], kinds[-1]) == ("task", "status_update")
        assert "artifact_update" in kinds
        assert state_of(events[-1].status_update) == "completed"
        task = await visitor.look(events[0].task.id)
        assert (state_of(task), answer_of(task)) == ("completed", "the answer")
        assert [part.text for message in task.history for part in message.parts] == ["!say the answer", "the answer"]
    (actor, prompt, _key), (row,) = outpost.runtime.asked[0], outpost.rows("tasks")
    assert (actor.scheduler, actor.unattended, actor.source, actor.depth) == (True, True, "agent", 2)
    assert prompt.startswith("Task from default, from outside, for the skill ping:\n\n!say the answer")
    assert row.session_id is not None
    names = outpost.fleet.names(actor)
    assert "ping" in names
    assert names.isdisjoint({"ask_owner", "send_message", "grant_credits"})


@REVISIONS
async def test_who_does_not_stream_waits_or_comes_back(outpost: Outpost, version: str) -> None:
    async with open_house(outpost) as web:
        token = await web.token()
        async with visiting(web, token, version=version, streaming=False) as visitor:
            assert answer_of(await visitor.send("!say at once")) == "at once"
        async with visiting(web, token, version=version, streaming=False, polling=True) as visitor:
            begun = await visitor.send("!say later")
            assert answer_of(await visitor.until(begun.id, "completed")) == "later"


async def test_a_session_that_fails_is_a_failed_task_that_tells_nothing_else(outpost: Outpost) -> None:
    async with open_house(outpost) as web, visiting(web, await web.token(), streaming=False) as visitor:
        task = await visitor.send("!fail the password is hunter2")
    assert state_of(task) == "failed"
    assert task.status.message.parts[0].text == "the session of default failed"


async def test_without_a_runtime_a_task_fails_clearly(outpost: Outpost) -> None:
    outpost.use(None)
    async with open_house(outpost) as web, visiting(web, await web.token(), streaming=False) as visitor:
        task = await visitor.send("hello")
    assert state_of(task) == "failed"
    assert task.status.message.parts[0].text.startswith("this server starts no agents")


async def test_the_session_reaches_no_further_than_the_senders_token(outpost: Outpost) -> None:
    async with (
        open_house(outpost) as web,
        visiting(web, await web.token(scopes=["msg:send", "system:read"]), streaming=False) as visitor,
    ):
        task = await visitor.send('!call ping {}\n!call save_memory {"key": "k", "content": "c"}')
    assert answer_of(task).startswith("ping: ")
    assert "save_memory was refused: PERMISSION_DENIED: the token lacks" in answer_of(task)


async def test_a_chain_that_is_too_deep_is_refused_and_depth_is_kept(outpost: Outpost) -> None:
    async with open_house(outpost) as web, visiting(web, await web.token(), streaming=False) as visitor:
        with pytest.raises(A2AClientError, match="403"):
            await visitor.send("!say hi", about={"depth": 4})
        for wrong in ({"depth": 1.5}, {"depth": "deep"}, {"depth": True}, {"skill": 7}):
            with pytest.raises(InvalidParamsError):
                await visitor.send("!say hi", about=wrong)
        task = await visitor.send("!call invoke_remote_agent {}", about={"depth": 3})
    assert "invocation depth 3 exceeds maximum of 3" in answer_of(task)
    assert outpost.runtime.asked[0][0].depth == 3


async def test_one_sender_sends_so_many_a_minute(make_outpost: MakeOutpost) -> None:
    outpost = make_outpost(a2a_inbound_rate_limit_per_min=2)
    async with open_house(outpost) as web:
        async with visiting(web, await web.token(), streaming=False) as visitor:
            for number in range(2):
                await visitor.send(f"!say {number}")
            with pytest.raises(A2AClientError, match="429"):
                await visitor.send("!say three")
        async with visiting(web, await web.token(agent=None), streaming=False) as owner:
            assert answer_of(await owner.send("!say other")) == "other"


async def test_who_sent_and_cancelled_what_is_recorded(outpost: Outpost) -> None:
    async with open_house(outpost, work=False) as web:
        async with visiting(web, await web.token(), streaming=False, polling=True) as visitor:
            task = await visitor.send("!say hi")
            await visitor.cancel(task.id)
        async with visiting(web, await web.token(scopes=["tracker:*"]), streaming=False) as visitor:
            with pytest.raises(A2AClientError, match="403"):
                await visitor.send("!say hi")
    written = sa.text("SELECT tool, outcome, layer FROM audit_log WHERE tool LIKE 'a2a:%' ORDER BY id")
    found = outpost.platform.database.direct(lambda tx: tx.all(written))
    assert [tuple(row) for row in found] == [
        ("a2a:send", "done", None),
        ("a2a:cancel", "done", None),
        ("a2a:send", "refused", "scopes"),
    ]


async def test_the_same_message_is_the_same_task(outpost: Outpost) -> None:
    async with open_house(outpost) as web, visiting(web, await web.token(), streaming=False) as visitor:
        first = await visitor.send("!say once", message_id="m-1")
        again = await visitor.send("!say once", message_id="m-1")
        with pytest.raises(InvalidParamsError, match="the message id is that of another message"):
            await visitor.send("!say twice", message_id="m-1")
    assert first.id == again.id
    assert len(outpost.runtime.asked) == 1


async def test_a_task_can_be_cancelled_once_and_its_session_ends(outpost: Outpost) -> None:
    gated = Gated(Outcome("done", output="late"))
    outpost.use(gated)
    async with open_house(outpost) as web, visiting(web, await web.token(), streaming=False, polling=True) as visitor:
        task = await visitor.send("wait for me")
        await asyncio.wait_for(gated.started.wait(), 20)
        assert state_of(await visitor.cancel(task.id)) == "canceled"
        gated.gate.set()
        with pytest.raises(TaskNotCancelableError, match="the task is canceled"):
            await visitor.cancel(task.id)
        assert state_of(await visitor.look(task.id)) == "canceled"


async def test_another_sender_sees_neither_tasks_nor_contexts(outpost: Outpost) -> None:
    await outpost.fleet.call(outpost.fleet.owner, "create_agent", name="bob")
    async with open_house(outpost) as web:
        async with visiting(web, await web.token(), streaming=False) as ada:
            task = await ada.send("!say private")
        async with visiting(web, await web.token(agent="bob"), streaming=False) as bob:
            for attempt in (bob.look(task.id), bob.cancel(task.id), bob.send("hi", task_id=task.id)):
                with pytest.raises(TaskNotFoundError):
                    await attempt
            with pytest.raises(TaskNotFoundError, match="no such context"):
                await bob.send("hi", context_id=task.context_id)
            assert list((await bob.client.list_tasks(ListTasksRequest())).tasks) == []
            for odd in ("", "\0", "x" * 5000, "../../etc/passwd"):
                with pytest.raises((TaskNotFoundError, InvalidParamsError)):
                    await bob.look(odd)


async def test_what_was_said_before_in_the_context_is_told(outpost: Outpost) -> None:
    async with open_house(outpost) as web, visiting(web, await web.token(), streaming=False) as visitor:
        first = await visitor.send("!say blue")
        await visitor.send("!say green", context_id=first.context_id)
        with pytest.raises(UnsupportedOperationError, match="completed and takes no message"):
            await visitor.send("more", task_id=first.id)
    prompt = outpost.runtime.asked[1][1]
    assert prompt.startswith("Said before in this conversation:\n> default: !say blue\n> default: blue\n\nTask from")


async def test_tasks_are_listed_in_pages(outpost: Outpost) -> None:
    async with open_house(outpost) as web, visiting(web, await web.token(), streaming=False) as visitor:
        made = [(await visitor.send(f"!say {number}")).id for number in range(3)]
        page = await visitor.client.list_tasks(ListTasksRequest(page_size=2, history_length=0))
        assert [task.id for task in page.tasks] == made[:0:-1]
        assert (page.total_size, list(page.tasks[0].history), list(page.tasks[0].artifacts)) == (3, [], [])
        rest = await visitor.client.list_tasks(
            ListTasksRequest(page_size=2, page_token=page.next_page_token, include_artifacts=True)
        )
        assert [answer_of(task) for task in rest.tasks] == ["0"]
        assert rest.next_page_token == ""
        for state, found in ((TaskState.TASK_STATE_COMPLETED, 3), (TaskState.TASK_STATE_REJECTED, 0)):
            listed = await visitor.client.list_tasks(ListTasksRequest(status=state))
            assert len(listed.tasks) == found
        with pytest.raises(InvalidParamsError):
            await visitor.client.list_tasks(ListTasksRequest(page_size=101))


async def test_a_stream_can_be_taken_up_again(outpost: Outpost) -> None:
    gated = Gated(Outcome("done", output="at last"))
    outpost.use(gated)
    async with open_house(outpost) as web, visiting(web, await web.token()) as visitor:
        task = await visitor.send("begin", configuration=SendMessageConfiguration(return_immediately=True))
        await visitor.until(task.id, "working")
        following = visitor.client.subscribe(SubscribeToTaskRequest(id=task.id))
        first = await anext(following)
        gated.gate.set()
        rest = [event async for event in following]
        assert first.HasField("task")
        assert state_of(rest[-1].status_update) == "completed"
        with pytest.raises(UnsupportedOperationError, match="the task is completed"):
            await anext(visitor.client.subscribe(SubscribeToTaskRequest(id=task.id)))


async def test_what_cannot_be_done_is_said(outpost: Outpost) -> None:
    async with (
        open_house(outpost, work=False) as web,
        visiting(web, await web.token(), streaming=False, polling=True) as visitor,
    ):
        for parts in ([Part(raw=b"x")], [Part(text="see"), Part(url="https://files.example/x")]):
            with pytest.raises(ContentTypeNotSupportedError):
                await visitor.send("", parts=parts)
        for text in ("", "  ", "x" * 50_001, "nul \0"):
            with pytest.raises(InvalidParamsError):
                await visitor.send(text)
        push = TaskPushNotificationConfig(url="https://hooks.example")
        for configuration, error in (
            (SendMessageConfiguration(task_push_notification_config=push), PushNotificationNotSupportedError),
            (SendMessageConfiguration(accepted_output_modes=["image/png"]), ContentTypeNotSupportedError),
        ):
            with pytest.raises(error):
                await visitor.send("hi", configuration=configuration)
        push.task_id = "x"
        with pytest.raises(PushNotificationNotSupportedError):
            await visitor.client.create_task_push_notification_config(push)
    assert outpost.rows("tasks") == []


@on_one_database
@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"not json", -32700),
        (b"[]", -32600),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "Nope"}', -32601),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {"id": {}}}', -32602),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {}}', -32602),
        (b"[" * 100_000, -32603),
    ],
)
async def test_requests_that_make_no_sense_get_an_error(make_outpost: MakeOutpost, body: bytes, code: int) -> None:
    async with open_house(make_outpost(auth_mode="none"), work=False) as web:
        head = {"content-type": "application/json", "a2a-version": "1.0"}
        answer = await web.http.post("/a2a", content=body, headers=head)
        assert answer.json()["error"]["code"] == code
        assert (await web.http.get("/a2a")).status_code == 405


@on_one_database
async def test_a_body_that_is_too_large_is_refused(make_outpost: MakeOutpost) -> None:
    async with open_house(make_outpost(auth_mode="none", http_max_body_bytes=2048), work=False) as web:
        for path in ("/a2a", "/a2a/tasks/send"):
            assert (await web.http.post(path, content=b"x" * 3000)).status_code == 413


async def test_the_agent_of_the_settings_does_the_tasks(make_outpost: MakeOutpost) -> None:
    outpost = make_outpost(a2a_agent="bob")
    async with open_house(outpost) as web, visiting(web, await web.token(), streaming=False) as visitor:
        with pytest.raises(A2AClientError, match="503"):
            await visitor.send("!say hi")
        await outpost.fleet.call(outpost.fleet.owner, "create_agent", name="bob")
        await visitor.send("!say hi")
    assert outpost.runtime.asked[0][0].agent_name == "bob"


async def test_two_rookeries_talk_with_each_other(outpost: Outpost, make_outpost: MakeOutpost) -> None:
    async with open_house(outpost) as web:
        caller = make_outpost(a2a_tokens=((f"127.0.0.1:{web.port}", (await web.token(),)),))
        done = await caller.invoke(web.url, "!say from next door")
        with pytest.raises(Conflict, match="the session of default failed"):
            await caller.invoke(web.url, "!fail")
    assert (done["state"], done["answer"]) == ("completed", "from next door")
    assert outpost.runtime.asked[0][0].depth == 2


async def test_attestations_are_a_little_trust(outpost: Outpost, make_outpost: MakeOutpost) -> None:
    async with open_house(outpost) as web:
        tokens = ((f"127.0.0.1:{web.port}", (await web.token(),)),)
        caller = make_outpost(a2a_tokens=tokens, a2a_trust=())
        with pytest.raises(PermissionDenied, match="untrusted, and low is needed"):
            await caller.invoke(web.url, "!say hi")
        await outpost.result("publish_attestation")
        assert (await caller.invoke(web.url, "!say hi"))["answer"] == "hi"
        with pytest.raises(PermissionDenied, match="and high is needed"):
            await caller.invoke(web.url, "!say hi", min_trust="high")
