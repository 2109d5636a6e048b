"""A call that asks its client several times, and what the person and the model behind the client answer."""

from typing import Any

from rookery.core.context import Context
from rookery.core.questions import Roots, Sample
from tests.server.streamable.scripts import scripts
from tests.server.streamable.web import Web

ABLE: dict[str, Any] = {"elicitation": {}, "sampling": {}, "roots": {}}
NAME = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
SAID = "Ada Lovelace at file:///home/ada"


async def converse(ctx: Context) -> str:
    """A question, two at once that depend on its answer, and one that depends on theirs."""
    first = await ctx.elicit("First name?", NAME)
    told, where = await ctx.ask(Sample(f"Greet {first and first['name']}", 20), Roots())
    last = await ctx.elicit(f"{told.text} Last name?", NAME)
    return f"{first and first['name']} {last and last['name']} at {where.roots[0].uri}"


def accept(name: str) -> dict[str, Any]:
    return {"action": "accept", "content": {"name": name}}


def reply(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": {"type": "text", "text": text}, "model": "m", "stopReason": "endTurn"}


def answer_to(method: str, params: dict[str, Any]) -> dict[str, Any]:
    """What makes `converse` say SAID."""
    if method == "elicitation/create":
        return accept("Ada" if params["message"] == "First name?" else "Lovelace")
    if method == "sampling/createMessage":
        return reply(f"{params['messages'][0]['content']['text']}!")
    return {"roots": [{"uri": "file:///home/ada"}]}


def text_of(result: dict[str, Any]) -> str:
    """What the tools of the tests say."""
    return result["structuredContent"]["text"]


async def play_rounds(web: Web, token: str) -> tuple[str, list[list[str]]]:
    """Converse as a client of 2026-07-28: what comes of it, and what was asked in each round."""
    scripts["converse"] = converse
    params: dict[str, Any] = {"name": "play_script", "arguments": {"name": "converse"}}
    rounds: list[list[str]] = []
    while True:
        result = (await web.modern("tools/call", token, capabilities=ABLE, **params)).json()["result"]
        if result["resultType"] != "input_required":
            return text_of(result), rounds
        wanted: dict[str, Any] = result["inputRequests"]
        rounds.append(sorted(each["method"] for each in wanted.values()))
        assert len(rounds) < 9
        answers = {key: answer_to(each["method"], each.get("params", {})) for key, each in wanted.items()}
        params |= {"inputResponses": answers, "requestState": result["requestState"]}
