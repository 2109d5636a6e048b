"""Agents elsewhere that answer with anything but an answer: clear errors, and nothing else is reached."""

import json
from typing import Any

import pytest

from rookery.core.errors import Conflict, RookeryError, ServiceUnavailable, TimedOut, ValidationFailed
from tests.domains.a2a.conftest import MakeOutpost, on_one_database
from tests.domains.a2a.outpost import HERE, Outpost
from tests.outgoing.loopback import Said, Seen, Web, web_server

TASK = {"id": "t1", "contextId": "c1", "status": {"state": "TASK_STATE_COMPLETED"}}


def card(url: str, binding: str = "JSONRPC", version: str = "1.0") -> dict[str, Any]:
    interface = {"url": url, "protocolBinding": binding, "protocolVersion": version}
    return {"name": "Odd", "version": "1", "supportedInterfaces": [interface]}


def answers(web: Web, status: int, body: Any, head: dict[str, str] | None = None, **of_card: str) -> None:
    """A card, and one answer to everything else."""

    async def act(seen: Seen) -> Said:
        if seen.path.endswith("agent-card.json"):
            return 200, {}, json.dumps(card(of_card.get("url", f"{web.url}/rpc"))).encode()
        if not isinstance(body, dict):
            return status, head or {}, body
        return status, head or {}, json.dumps({"jsonrpc": "2.0", "id": json.loads(seen.body)["id"], **body}).encode()

    web.act = act


@on_one_database
@pytest.mark.parametrize(
    ("status", "body", "error", "why"),
    [
        (200, b"<html>Sign in</html>", ServiceUnavailable, "cannot be read"),
        (200, b"", ServiceUnavailable, "cannot be read"),
        (200, b"[1, 2]", ServiceUnavailable, "cannot be read"),
        (200, b"[" * 50_000, ServiceUnavailable, "cannot be read"),
        (500, b"oops", ServiceUnavailable, "500"),
        (404, b"{}", ServiceUnavailable, "404"),
        (200, {"result": {}}, ServiceUnavailable, "cannot be read"),
        (200, {"result": "done"}, ServiceUnavailable, "cannot be read"),
        (200, {"result": {"task": {"id": "t1", "status": {"state": 77}}}}, ServiceUnavailable, "cannot be read"),
        (200, {"result": {"task": {"status": TASK["status"]}}}, ServiceUnavailable, "cannot be read"),
        (200, {"error": {"code": -32004, "message": "never"}}, Conflict, "the remote agent refuses: never"),
        (200, {"error": {"code": 1, "message": "odd"}}, ServiceUnavailable, "odd"),
        (200, {"error": "odd"}, ServiceUnavailable, "cannot be read"),
    ],
)
async def test_an_answer_that_is_none_is_a_clear_error(
    outpost: Outpost, status: int, body: Any, error: type[RookeryError], why: str
) -> None:
    async with web_server() as web:
        answers(web, status, body)
        with pytest.raises(error, match=why):
            await outpost.invoke(web.url, "hello")


@on_one_database
async def test_an_answer_without_end_is_cut_off(outpost: Outpost) -> None:
    async with web_server() as web:
        answers(web, 200, b"x" * (2 * 1024 * 1024))
        with pytest.raises(ValidationFailed, match="more than 1048576 bytes"):
            await outpost.invoke(web.url, "hello")


@on_one_database
async def test_an_answer_that_would_take_long_to_read_is_not_read(outpost: Outpost) -> None:
    async with web_server() as web:
        answers(web, 200, {"result": {"task": {**TASK, "artifacts": [{"artifactId": "a", "parts": [{}] * 100_000}]}}})
        with pytest.raises(ValidationFailed, match="more than 10000 values"):
            await outpost.invoke(web.url, "hello")


async def test_an_agent_that_says_nothing_is_given_up(outpost: Outpost) -> None:
    async with web_server() as web:
        answers(web, 200, b"{}")
        await outpost.discover(web.url)
        web.silent = True
        with pytest.raises(TimedOut):
            await outpost.invoke(web.url, "hello", timeout_minutes=0.005)


async def test_neither_a_card_nor_a_redirect_leads_to_another_place(make_outpost: MakeOutpost) -> None:
    async with web_server() as web, web_server("127.0.0.2") as other:
        outpost = make_outpost(a2a_allow=(f"{HERE}:{web.port}",))
        answers(web, 307, b"", {"location": f"{other.url}/rpc"})
        with pytest.raises(ValidationFailed, match="private network"):
            await outpost.invoke(web.url, "hello")
        answers(web, 200, b"{}", url=f"{other.url}/rpc")
        with pytest.raises(ValidationFailed, match="private network"):
            await make_outpost(a2a_allow=(f"{HERE}:{web.port}",)).invoke(f"{web.url}/x", "hello")
    assert other.seen == []


async def test_a_card_that_points_elsewhere_gets_no_token_of_there(make_outpost: MakeOutpost) -> None:
    async with web_server() as web, web_server() as other:
        tokens = tuple((f"{HERE}:{each.port}", (f"secret-{each.port}",)) for each in (web, other))
        answers(web, 200, b"{}", url=f"{other.url}/rpc")
        with pytest.raises(ServiceUnavailable):
            await make_outpost(a2a_tokens=tokens).invoke(web.url, "hello")
    assert [seen.path for seen in other.seen] == ["/rpc"]
    assert "secret" not in str([seen.headers for seen in other.seen])


@on_one_database
@pytest.mark.parametrize("way", ["GRPC", "SMOKE", ""])
async def test_a_way_that_we_do_not_speak_is_said(outpost: Outpost, way: str) -> None:
    async with web_server() as web:
        web.says("/.well-known/agent-card.json", body=json.dumps(card(f"{web.url}/rpc", way)).encode())
        with pytest.raises(ServiceUnavailable, match="names no way that we speak"):
            await outpost.invoke(web.url, "hello")


async def test_files_are_named_and_not_fetched_and_what_is_said_is_cleaned(outpost: Outpost) -> None:
    parts = [{"text": "one\u0000"}, {"data": {"a": 1}}, {"url": "http://10.0.0.1/x", "filename": "f"}, {"raw": "AAAA"}]
    async with web_server() as web:
        answers(web, 200, {"result": {"task": {**TASK, "artifacts": [{"artifactId": "a", "parts": parts}]}}})
        done = await outpost.invoke(web.url, "hello")
    assert done["answer"] == "one\n\n{'a': 1.0}\n\n[file f: http://10.0.0.1/x]\n\n[file without a name: 3 bytes]"


@on_one_database
async def test_a_long_answer_is_cut(outpost: Outpost) -> None:
    async with web_server() as web:
        said = [{"artifactId": "a", "parts": [{"text": "x" * 200_000}]}]
        answers(web, 200, {"result": {"task": {**TASK, "artifacts": said}}})
        done = await outpost.invoke(web.url, "hello")
    assert done["answer"].endswith("x… (cut at 100000 characters)")


@on_one_database
async def test_a_task_that_cannot_be_looked_at_is_cancelled_there(outpost: Outpost) -> None:
    methods: list[str] = []
    lengths: list[int] = []
    async with web_server() as web:

        async def act(seen: Seen) -> Said:
            if seen.path.endswith("agent-card.json"):
                return 200, {}, json.dumps(card(f"{web.url}/rpc")).encode()
            asked = json.loads(seen.body)
            methods.append(asked["method"])
            lengths.extend([asked["params"]["historyLength"]] if asked["method"] == "GetTask" else [])
            begun = {"result": {"task": {**TASK, "status": {"state": "TASK_STATE_WORKING"}}}}
            said = begun if asked["method"] == "SendMessage" else {"error": {"code": -32603, "message": "oops"}}
            return 200, {}, json.dumps({"jsonrpc": "2.0", "id": asked["id"], **said}).encode()

        web.act = act
        with pytest.raises(Conflict, match="oops; its task t1 was given up"):
            await outpost.invoke(web.url, "hello")
    assert methods == ["SendMessage", *["GetTask"] * 5, "CancelTask"]
    assert set(lengths) == {10}
