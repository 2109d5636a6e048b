"""Our own card: what it says, to whom, and what a client makes of it."""

from collections.abc import Callable

import pytest

from rookery import __version__
from rookery.domains.a2a import sdk
from tests.domains.a2a.conftest import MakeOutpost
from tests.domains.a2a.outpost import Outpost
from tests.domains.a2a.visitor import open_house, visiting
from tests.platform_fixtures import Fleet
from tests.server.streamable.web import serving

CARD = "/.well-known/agent-card.json"
MESSAGE = {"messageId": "m1", "role": "user", "kind": "message", "parts": [{"kind": "text", "text": "!say hi"}]}


async def test_the_settings_turn_the_server_off(make_outpost: MakeOutpost) -> None:
    async with open_house(make_outpost(a2a_server=False), work=False) as web:
        for path in (CARD, "/a2a", "/a2a/tasks/send"):
            assert (await web.http.post(path, json={})).status_code == 404


async def test_what_to_install_is_said_where_the_sdk_is_missing(
    outpost: Outpost, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sdk, "is_installed", lambda: False)
    async with open_house(outpost, work=False) as web:
        head = {"authorization": f"Bearer {await web.token()}"}
        for answer in (await web.http.get(CARD), await web.http.post("/a2a", json={}, headers=head)):
            assert answer.status_code == 501
            assert answer.json()["hint"] == "pip install 'rookery[a2a]'"


async def test_the_card_has_the_fields_of_every_revision(outpost: Outpost) -> None:
    async with open_house(outpost, work=False) as web:
        answer = await web.http.get(CARD)
        card = answer.json()
        about = await web.http.get(card["documentationUrl"])
        kept = await web.http.get(CARD, headers={"if-none-match": answer.headers["etag"]})
    endpoint = f"{web.url}/a2a"
    assert (card["name"], card["version"], card["url"]) == ("Rookery", __version__, endpoint)
    assert [(each["url"], each["protocolVersion"]) for each in card["supportedInterfaces"]] == [
        (endpoint, "1.0"),
        (endpoint, "0.3"),
    ]
    assert (card["documentationUrl"], about.status_code) == (f"{web.url}/api/openapi.json", 200)
    assert card["capabilities"]["streaming"] is True
    assert card["capabilities"]["pushNotifications"] is False
    assert card["authentication"] == {"schemes": ["bearer"]}
    assert card["security"] == [{"bearer": []}]
    assert [each["protocol"] for each in card["supportedProtocols"]] == ["A2A", "HTTP", "MCP"]
    assert (kept.status_code, kept.content) == (304, b"")


async def test_skills_are_the_tools_that_a_task_can_be_done_with(outpost: Outpost) -> None:
    async with open_house(outpost, work=False) as web, visiting(web) as visitor:
        skills = {skill.id: skill for skill in visitor.card.skills}
    assert {"ping", "save_memory", "discover_agent"} <= skills.keys()
    assert skills.keys().isdisjoint({"ask_owner", "send_message", "grant_credits", "create_token", "get_issue"})
    assert "memory" in skills["save_memory"].tags
    tools = {tool.name: tool for tool in outpost.platform.registry}
    assert all(tools[name].default for name in skills)


async def test_the_public_address_is_the_one_that_is_told(make_outpost: MakeOutpost) -> None:
    async with open_house(make_outpost(public_url="https://rookery.example.org"), work=False) as web:
        card = (await web.http.get(CARD)).json()
    assert card["url"] == "https://rookery.example.org/a2a"


async def test_a_published_attestation_is_named(outpost: Outpost) -> None:
    async with open_house(outpost, work=False) as web:
        assert "extensions" not in (await web.http.get(CARD)).json()["capabilities"]
        await outpost.result("publish_attestation")
        card = (await web.http.get(CARD)).json()
    (extension,) = card["capabilities"]["extensions"]
    assert extension["params"]["log"].startswith(f"{web.url}/attestations/")
    assert card["supportedProtocols"][-1]["endpoint"].startswith("algo://")


async def test_tools_of_plugins_are_nobodys_business(database_url: str, make_fleet: Callable[..., Fleet]) -> None:
    async with serving(make_fleet(database_url)) as web:
        skills = {skill["id"] for skill in (await web.http.get(CARD)).json()["skills"]}
        assert {tool.name for tool in web.platform.registry if tool.module == "tests.stand_ins"}
    assert skills.isdisjoint(tool.name for tool in web.platform.registry if tool.module == "tests.stand_ins")


async def test_the_card_of_one_agent_is_for_those_with_a_token(outpost: Outpost) -> None:
    made = await outpost.fleet.call(outpost.fleet.owner, "create_agent", name="bob", permissions=["ping"])
    async with open_house(outpost) as web:
        assert (await web.http.get("/api/agents/bob/agent-card")).status_code == 401
        head = {"authorization": f"Bearer {await web.token()}"}
        assert (await web.http.get("/api/agents/eve/agent-card", headers=head)).status_code == 404
        card = (await web.http.get("/api/agents/bob/agent-card", headers=head)).json()
        assert (card["name"], card["url"]) == ("bob", f"{web.url}/a2a/agents/{made.id}")
        assert [skill["id"] for skill in card["skills"]] == ["ping"]
        body = {"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": {"message": MESSAGE}}
        done = (await web.http.post(f"/a2a/agents/{made.id}", json=body, headers=head)).json()
        again = (await web.http.post("/a2a/agents/bob", json=body, headers=head)).json()
        taken = (await web.http.post("/a2a/agents/eve", json=body, headers=head)).json()
        body["params"] = {"message": {**MESSAGE, "messageId": "m2"}}
        missing = (await web.http.post("/a2a/agents/eve", json=body, headers=head)).json()
    assert done["result"]["status"]["state"] == "completed"
    assert again["result"]["id"] == done["result"]["id"]
    assert [each["error"]["code"] for each in (taken, missing)] == [-32602, -32602]
    assert missing["error"]["message"].startswith("there is no such agent")
    assert [asked[0].agent_name for asked in outpost.runtime.asked] == ["bob"]
