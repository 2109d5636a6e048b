"""A summary asked of a real client over HTTP: by a question on the stream, or by an unfinished answer."""

from typing import Any

import pytest

from tests.domains.research.desk import Desk
from tests.server.streamable.conversation import reply
from tests.server.streamable.tap import asking
from tests.server.streamable.web import LEGACY, Web, call, serving

ABLE: dict[str, Any] = {"sampling": {}}
PARAMS: dict[str, Any] = {"name": "deep_research", "arguments": {"query": "rooks", "queries": ["nests"]}}


async def modern(web: Web, token: str, **more: Any) -> dict[str, Any]:
    return (await web.modern("tools/call", token, capabilities=ABLE, **PARAMS, **more)).json()["result"]


async def test_the_answers_to_somebody_elses_question_find_nothing_kept(desk: Desk) -> None:
    desk.brave.find("Rooks")
    async with serving(desk.fleet) as web:
        await modern(web, await web.token())
        assert len(desk.brave.asked) == 2
        other = await modern(web, await web.token(None), inputResponses={"summary": reply("mine")})
        assert other["structuredContent"]["summary"] == "mine"
        assert len(desk.brave.asked) == 4


async def test_a_client_of_the_newest_revision_is_asked_by_an_answer_and_nothing_is_searched_twice(desk: Desk) -> None:
    desk.brave.find("Rooks")
    async with serving(desk.fleet) as web:
        token = await web.token()
        first = await modern(web, token)
        ((key, question),) = first["inputRequests"].items()
        assert (first["resultType"], key, question["method"]) == ("input_required", "summary", "sampling/createMessage")
        assert "Rooks" in question["params"]["messages"][0]["content"]["text"]
        answers = {"inputResponses": {key: reply("Birds.")}, "requestState": first["requestState"]}
        told = (await modern(web, token, **answers))["structuredContent"]
        assert (told["summary"], told["summarized_by"], told["total"]) == ("Birds.", "m", 1)
        assert len(desk.brave.asked) == 2
        await modern(web, token)
        assert len(desk.brave.asked) == 4, "what was kept for the answer is gone with it"


async def test_a_client_that_comes_back_without_an_answer_gets_what_was_found(desk: Desk) -> None:
    desk.brave.find("Rooks")
    async with serving(desk.fleet) as web:
        token = await web.token()
        assert (await modern(web, token))["resultType"] == "input_required"
        told = (await modern(web, token))["structuredContent"]
        assert (told["summary"], told["total"], len(desk.brave.asked)) == (None, 1, 2)
        assert (await modern(web, token))["resultType"] == "input_required"


@pytest.mark.parametrize("answer", [reply("Birds."), None], ids=["answers", "refuses"])
async def test_a_client_of_the_handshake_era_is_asked_on_the_stream(desk: Desk, answer: dict[str, Any] | None) -> None:
    desk.brave.find("Rooks")
    said = {"error": {"code": -1, "message": "not now"}} if answer is None else {"result": answer}
    async with serving(desk.fleet) as web:
        token = await web.token()
        session = await web.initialize(token, **ABLE)
        on = {"mcp_session_id": session, "mcp_protocol_version": LEGACY}
        async with asking(web, call("deep_research", **PARAMS["arguments"]), token, **on) as stream:
            while (message := await stream.next()) is not None and "result" not in message:
                if message.get("method") == "sampling/createMessage":
                    posted = await web.post({"jsonrpc": "2.0", "id": message["id"], **said}, token, **on)
                    assert posted.status_code == 202
    assert message is not None
    told = message["result"]["structuredContent"]
    assert (told["summary"], told["total"]) == (None if answer is None else "Birds.", 1)
    assert len(desk.brave.asked) == 2
