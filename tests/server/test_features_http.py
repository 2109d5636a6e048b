"""Resources, prompts and blocks at the HTTP door: the same as over stdio, with the scopes of a token in front."""

from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx2
import pytest
import sqlalchemy as sa

from tests.platform_fixtures import Fleet
from tests.server import feature_trials
from tests.server.feature_trials import SECRET
from tests.server.streamable.web import LEGACY, MODERN, Web, events, modern, serving

ERAS = (LEGACY, MODERN)
NOT_FOUND = {LEGACY: -32002, MODERN: -32602}
TRACE = f"00-{'4bf92f35' * 4}-{'00f067aa' * 2}-01"


@pytest.fixture
async def web(database_url: str, make_fleet: Callable[..., Fleet]) -> AsyncIterator[Web]:
    async with serving(make_fleet(database_url, extra={"features": feature_trials})) as running:
        yield running


class Caller:
    """One token, speaking one era."""

    def __init__(self, web: Web, token: str, era: str) -> None:
        self.web, self.token, self.era = web, token, era
        self.session: str | None = None

    async def request(self, method: str, headers: dict[str, str] | None = None, **params: Any) -> dict[str, Any]:
        """The message that answers."""
        if self.era == MODERN:
            message, own = modern(method, **params)
            answer = await self.web.post(message, self.token, **{**own, **(headers or {})})
        else:
            self.session = self.session or await self.web.initialize(self.token)
            message = {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}
            own = {"mcp_session_id": self.session, "mcp_protocol_version": LEGACY}
            answer = await self.web.post(message, self.token, **{**own, **(headers or {})})
        return last_message(answer)

    async def names(self, method: str, key: str) -> set[str]:
        return {each["name"] for each in (await self.request(method))["result"][key]}


def last_message(answer: httpx2.Response) -> dict[str, Any]:
    if answer.headers["content-type"].startswith("text/event-stream"):
        return events(answer.text)[-1]
    return answer.json()


@pytest.fixture(params=ERAS)
def era(request: pytest.FixtureRequest) -> str:
    return request.param


async def test_a_token_without_the_scope_sees_and_gets_nothing(web: Web, era: str) -> None:
    caller = Caller(web, await web.token(scopes=["system:read", "prompt:who_am_i"]), era)
    for uri in ("echo://x", "judge://report", "nowhere://x"):
        error = (await caller.request("resources/read", uri=uri))["error"]
        assert error == {"code": NOT_FOUND[era], "message": "Resource not found", "data": {"uri": uri}}
    for name in ("code_review", "no_such_prompt"):
        error = (await caller.request("prompts/get", name=name))["error"]
        assert error == {"code": -32602, "message": f"Unknown prompt: {name}"}
    assert await caller.names("resources/list", "resources") == {"server"}
    assert await caller.names("resources/templates/list", "resourceTemplates") == set()
    assert await caller.names("prompts/list", "prompts") == {"who_am_i"}


@pytest.mark.parametrize("scope", ["resource:echo:read", "resource:echo", "resource:*", "features:use"])
async def test_a_scope_opens_a_resource_and_nothing_it_does_not_name(web: Web, era: str, scope: str) -> None:
    caller = Caller(web, await web.token(scopes=[scope]), era)
    (part,) = (await caller.request("resources/read", uri="echo://hello"))["result"]["contents"]
    assert part == {"uri": "echo://hello", "mimeType": "text/plain", "text": "hello"}
    tools = await caller.names("tools/list", "tools")
    assert ("echo_message" in tools) is (scope == "features:use")
    error = (await caller.request("resources/read", uri="judge://report"))["error"]
    assert (error["code"], SECRET in str(error)) == (NOT_FOUND[era], False)


async def test_prompts_completions_and_blocks_are_those_of_every_door(web: Web, era: str) -> None:
    caller = Caller(web, await web.token(scopes=["*"]), era)
    got = await caller.request("prompts/get", name="code_review", arguments={"language": "php"})
    assert [each["role"] for each in got["result"]["messages"]] == ["user", "assistant"]
    ref, argument = {"type": "ref/prompt", "name": "code_review"}, {"name": "language", "value": "p"}
    done = await caller.request("completion/complete", ref=ref, argument=argument)
    assert done["result"]["completion"]["values"] == ["python", "php"]
    shown = await caller.request("tools/call", name="show_everything", arguments={"message": "x"})
    kinds = [each["type"] for each in shown["result"]["content"]]
    assert kinds == ["text", "image", "audio", "resource", "resource", "resource_link"]
    assert shown["result"]["structuredContent"] == {"said": "x"}


async def test_the_trace_of_a_header_is_taken_over_and_that_of_the_request_wins(web: Web, era: str) -> None:
    caller = Caller(web, await web.token(scopes=["*"]), era)
    other = TRACE.replace("4bf92f35", "aaaaaaaa")
    await caller.request("resources/read", {"traceparent": TRACE}, uri="echo://header")
    await caller.request("tools/call", {"traceparent": TRACE}, name="ping", arguments={}, _meta={"traceparent": other})
    for wrong in ("", "00", TRACE.upper(), f"01{TRACE[2:]}", f"00-{'0' * 32}-{'1' * 16}-01", f"{TRACE}-more"):
        await caller.request("prompts/get", {"traceparent": wrong}, name="who_am_i")
    query = sa.text("SELECT DISTINCT tool, trace FROM audit_log WHERE source = 'http' ORDER BY tool")
    rows = web.platform.database.direct(lambda tx: [tuple(row) for row in tx.all(query)])
    assert rows == [("ping", other), ("prompt:who_am_i", None), ("resource:echo", TRACE)]


async def test_a_resource_that_asks_goes_on_with_the_answer(web: Web) -> None:
    caller = Caller(web, await web.token(scopes=["*"]), MODERN)
    can = {"elicitation": {}}
    asked = (await caller.request("resources/read", capabilities=can, uri="asked://hi"))["result"]
    (key,) = asked["inputRequests"]
    answers = {key: {"action": "accept", "content": {"name": "Ada"}}}
    carried = {"inputResponses": answers, "requestState": asked["requestState"]}
    done = await caller.request("resources/read", capabilities=can, uri="asked://hi", **carried)
    assert done["result"]["contents"][0]["text"] == "hi {'name': 'Ada'}"
    stranger = Caller(web, await web.token(scopes=["*"]), MODERN)
    refused = await stranger.request("resources/read", capabilities=can, uri="asked://hi", **carried)
    assert refused["error"]["code"] == -32602
