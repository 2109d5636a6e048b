"""Questions to the client over HTTP: sent on the call's stream before 2026-07-28, an unfinished answer from then on."""

import asyncio
from typing import Any

import pytest

from rookery.core.context import Context
from tests.server.streamable.conftest import MakeWeb, on_one_database
from tests.server.streamable.conversation import ABLE, NAME, SAID, accept, answer_to, converse, play_rounds, text_of
from tests.server.streamable.scripts import scripts
from tests.server.streamable.tap import Tap, asking, hearing
from tests.server.streamable.web import LEGACY, Web, call, modern, until


def on(session: str) -> dict[str, str]:
    return {"mcp_session_id": session, "mcp_protocol_version": LEGACY}


async def tell(web: Web, session: str, question: Any, result: Any, token: str | None = None) -> int:
    """Post the answer to a question; the status."""
    return (await web.post({"jsonrpc": "2.0", "id": question, "result": result}, token, **on(session))).status_code


async def question(stream: Tap) -> dict[str, Any]:
    message = await stream.next()
    assert message is not None
    assert "method" in message, message
    return message


@on_one_database
async def test_several_rounds_in_the_handshake_era(web: Web) -> None:
    scripts["converse"] = converse
    token = await web.token()
    session = await web.initialize(token, **ABLE)
    asked: list[str] = []
    async with asking(web, call("play_script", name="converse"), token, **on(session)) as stream:
        while (message := await stream.next()) is not None and "method" in message:
            asked.append(message["method"])
            given = answer_to(message["method"], message.get("params", {}))
            assert await tell(web, session, message["id"], given, token) == 202
    assert message is not None
    assert text_of(message["result"]) == SAID
    assert sorted(asked) == sorted(["elicitation/create", "sampling/createMessage", "roots/list", "elicitation/create"])


async def test_several_rounds_in_2026_07_28(web: Web) -> None:
    said, rounds = await play_rounds(web, await web.token())
    assert said == SAID
    assert rounds == [["elicitation/create"], ["roots/list", "sampling/createMessage"], ["elicitation/create"]]


@on_one_database
async def test_the_state_between_rounds_is_no_use_to_another_identity(web: Web) -> None:
    scripts["converse"] = converse
    ada, bob = await web.token(), await web.token(None)
    params: dict[str, Any] = {"name": "play_script", "arguments": {"name": "converse"}}
    first = (await web.modern("tools/call", ada, capabilities=ABLE, **params)).json()["result"]
    params |= {"inputResponses": {"input_1": accept("Eve")}, "requestState": first["requestState"]}
    stolen = await web.modern("tools/call", bob, capabilities=ABLE, **params)
    assert "error" in stolen.json(), stolen.text
    altered = params | {"requestState": first["requestState"][:-4] + "AAAA"}
    assert "error" in (await web.modern("tools/call", ada, capabilities=ABLE, **altered)).json()
    own = await web.modern("tools/call", ada, capabilities=ABLE, **params)
    assert own.json()["result"]["resultType"] == "input_required"


@on_one_database
async def test_answers_of_others_are_not_taken(web: Web) -> None:
    ada, bob = await web.token(), await web.token(None)
    session, other = await web.initialize(ada, **ABLE), await web.initialize(bob, **ABLE)
    async with asking(web, call("ask_name"), ada, **on(session)) as stream:
        asked = (await question(stream))["id"]
        assert await tell(web, session, asked, accept("Mallory"), bob) == 404
        assert await tell(web, other, asked, accept("Mallory"), bob) == 202, "dropped: nobody waits there"
        assert await tell(web, session, f"{asked}0", accept("Mallory"), ada) == 202
        answer = await web.post({"jsonrpc": "2.0", "id": asked, "result": accept("Mallory")}, **on(session))
        assert answer.status_code == 401
        assert await tell(web, session, asked, accept("Ada"), ada) == 202
        assert await tell(web, session, asked, accept("Mallory"), ada) == 202, "too late"
        result = await stream.next()
    assert result is not None
    assert text_of(result["result"]) == "hello Ada"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"result": {"action": "decline"}}, "nobody answered"),
        ({"result": {"action": "cancel"}}, "nobody answered"),
        ({"error": {"code": -1, "message": "no person here"}}, "no person here"),
        ({"result": {"nonsense": True}}, "makes no sense"),
        ({"error": {"nonsense": True}}, "makes no sense"),
    ],
)
async def test_a_client_may_answer_badly_or_not_at_all(trusting: Web, given: dict[str, Any], said: str) -> None:
    session = await trusting.initialize(**ABLE)
    async with asking(trusting, call("ask_name"), **on(session)) as stream:
        asked = await question(stream)
        answer = await trusting.post({"jsonrpc": "2.0", "id": asked["id"], **given}, **on(session))
        assert answer.status_code == 202
        result = await stream.next()
    assert result is not None
    assert said in result["result"]["content"][0]["text"]


async def test_a_question_survives_a_cut_stream(trusting: Web) -> None:
    session = await trusting.initialize(**ABLE)
    async with asking(trusting, call("ask_name"), **on(session)) as stream:
        first = await stream.frame()
    assert first is not None
    async with hearing(trusting, session, after=first.event) as stream:
        asked = await question(stream)
        assert await tell(trusting, session, asked["id"], accept("Ada")) == 202
        result = await stream.next()
    assert result is not None
    assert text_of(result["result"]) == "hello Ada"


async def test_a_call_that_gives_up_takes_its_question_back(trusting: Web) -> None:
    async def ask_briefly(ctx: Context) -> str:
        try:
            async with asyncio.timeout(0.1):
                await ctx.elicit("Quick?", NAME)
        except TimeoutError:
            return "too slow"
        return "quick"

    scripts["ask_briefly"] = ask_briefly
    session = await trusting.initialize(**ABLE)
    async with asking(trusting, call("play_script", name="ask_briefly"), **on(session)) as stream:
        asked = await question(stream)
        taken_back = await question(stream)
        result = await stream.next()
    assert taken_back["method"] == "notifications/cancelled"
    assert taken_back["params"]["requestId"] == asked["id"]
    assert result is not None
    assert text_of(result["result"]) == "too slow"


async def test_whoever_cannot_be_asked_is_told_so(make_web: MakeWeb) -> None:
    async with make_web(auth_mode="none") as web:
        session = await web.initialize()
        result = (await web.call(session, "ask_name")).json()["result"]
        assert result["isError"]
        assert result["_meta"]["rookery/error"]["code"] == "SERVICE_UNAVAILABLE"
        able = await web.initialize(**ABLE)
        plain = await web.post(call("ask_name"), **on(able), accept="application/json")
        assert plain.json()["result"]["_meta"]["rookery/error"]["code"] == "SERVICE_UNAVAILABLE"
        lacking = await web.modern("tools/call", name="ask_name", arguments={})
        assert lacking.status_code == 400
        assert lacking.json()["error"]["code"] == -32021
        assert lacking.json()["error"]["data"] == {"requiredCapabilities": {"elicitation": {}}}
    async with make_web(auth_mode="none", http_sessions="stateless") as web:
        result = (await web.post(call("ask_name"), mcp_protocol_version=LEGACY)).json()["result"]
        assert result["_meta"]["rookery/error"]["code"] == "SERVICE_UNAVAILABLE"


async def test_a_session_that_ends_gives_up_its_questions(trusting: Web) -> None:
    session = await trusting.initialize(**ABLE)
    async with asking(trusting, call("ask_name"), **on(session)) as stream:
        await question(stream)
        ended = await trusting.http.delete("/mcp", headers={"mcp-session-id": session})
        assert ended.status_code == 200
        message, headers = modern("tools/call", name="say_again", arguments={"name": "on"})
        assert (await trusting.post(message, **headers)).status_code == 200, "everybody else goes on"
        last = [frame.message for frame in await stream.rest()][-1]
    assert last is not None
    assert "ended" in last["error"]["message"]
    await until(lambda: not trusting.endpoint.exchanges, "nothing waits")
