"""At every door an identity is shown the same tools and decided about alike: over stdio, over HTTP and in process."""

import asyncio
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from rookery.app import Platform, make_platform
from rookery.core.actor import Actor
from rookery.core.decide import decide
from rookery.core.tool import PROFILES, Tool
from rookery.identity.resolve import Binding
from rookery.server.inprocess import create_tool_server
from rookery.settings import Settings
from tests.server.conftest import Place
from tests.server.inprocess_client import connected
from tests.server.processes import PATIENCE_S, Client
from tests.server.streamable.web import LEGACY
from tests.server.test_parity_http import HttpClient

WHO: list[str | None] = [None, *PROFILES.values()]
"""The default agent, and it again with each profile."""
# An argument that no tool has: whoever may call the tool is told so, and nothing is done.
WRONG = {"no_such_argument": 1}
Told = dict[str, Any]


@pytest.fixture
def bare(plugin: Path) -> Iterator[Place]:
    """A home with a running server that has our tools alone."""
    place = Place(plugin)
    place.plugin = None
    try:
        place.server()
        yield place
    finally:
        place.close()


@pytest.fixture
def beside(bare: Place) -> Iterator[Platform]:
    """Another platform on the same home, in this process."""
    platform = make_platform(Settings(home=str(bare.home), plugins=False))
    yield platform
    platform.close()


def decision(answer: Told) -> list[Any]:
    """What was decided about a call: not there, refused by a layer, or let as far as its arguments."""
    if "error" in answer:
        return ["unknown", answer["error"]["code"]]
    error = answer["result"]["_meta"]["rookery/error"]
    return [error["code"], error.get("layer"), error["message"] if error.get("layer") else ""]


def expected(actor: Actor, tool: Tool) -> list[Any]:
    """The same by the decision itself."""
    decided = decide(actor, tool)
    if decided.outcome == "hide":
        return ["unknown", -32602]
    return ["INVALID_PARAMS", None, ""] if decided.listed else ["PERMISSION_DENIED", decided.layer, decided.reason]


def seen(listing: Told, answers: dict[str, Told]) -> Told:
    """What a door shows one identity and decides about it."""
    shown = ("name", "title", "description", "inputSchema", "outputSchema", "annotations")
    tools = {tool["name"]: {key: tool.get(key) for key in shown} for tool in listing["result"]["tools"]}
    assert "nextCursor" not in listing["result"]
    return {"tools": tools, "decisions": {name: decision(answer) for name, answer in answers.items()}}


def over_stdio(client: Client, names: list[str]) -> Told:
    client.initialize()
    listing = client.request("tools/list")
    asked = [client.ask_tool(name, **WRONG) for name in names]
    return seen(listing, dict(zip(names, client.answers_to(asked), strict=True)))


def over_http(client: HttpClient, names: list[str]) -> Told:
    listing = client.request("tools/list")
    return seen(listing, {name: client.request("tools/call", name=name, arguments=WRONG) for name in names})


async def in_process(platform: Platform, actor: Actor, names: list[str]) -> Told:
    async with connected(create_tool_server(platform, actor)) as client:
        listing = await client.request("tools/list")
        answers = await asyncio.gather(*(client.call(name, **WRONG) for name in names))
    return seen(listing, dict(zip(names, answers, strict=True)))


def digest(told: Told) -> str:
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()


@pytest.mark.early
async def test_every_door_shows_and_decides_the_same(bare: Place, beside: Platform) -> None:
    names = [tool.name for tool in beside.registry]
    owner = beside.database.direct(lambda tx: beside.resolver.resolve(tx, Binding(as_owner=True))).actor
    doors: dict[str, dict[str, Told]] = {"stdio": {}, "http": {}, "in process": {}}
    with httpx2.Client(
        base_url=f"http://127.0.0.1:{bare.servers[0].port}", timeout=PATIENCE_S, trust_env=False
    ) as http:
        for profile in WHO:
            bound = Binding(profile=profile)
            actor = beside.database.direct(lambda tx, bound=bound: beside.resolver.resolve(tx, bound)).actor
            who, kind = profile or "default", {} if profile is None else {"agent_type": profile}
            made = await beside.calls.call(owner, "create_token", {"name": who, "agent": "default", **kind})
            flags = () if profile is None else ("--agent-type", profile)
            doors["stdio"][who] = over_stdio(bare.client(*flags), names)
            doors["http"][who] = over_http(HttpClient(http, made.structured["secret"], LEGACY), names)
            doors["in process"][who] = await in_process(beside, actor, names)
            decided = {tool.name: expected(actor, tool) for tool in beside.registry}
            assert doors["in process"][who]["decisions"] == decided
    assert set().union(*(told["tools"] for told in doors["stdio"].values())) < set(names)
    assert len({digest(told) for told in doors["stdio"].values()}) == len(WHO), "no two see the same"
    by_hash = {door: digest(told) for door, told in doors.items()}
    if len(set(by_hash.values())) != 1:
        # Only for whoever reads the failure: the hashes do not say what differs.
        assert doors["http"] == doors["stdio"]
        assert doors["in process"] == doors["stdio"]
    assert len(set(by_hash.values())) == 1
