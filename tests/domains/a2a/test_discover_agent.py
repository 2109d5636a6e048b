"""Cards of agents elsewhere: what is refused, what is soft, what is shown and what is kept."""

import json
from typing import Any

import pytest
import sqlalchemy as sa

from rookery.core.errors import InvalidParams, PermissionDenied, ValidationFailed
from rookery.domains.a2a import sdk
from rookery.domains.a2a.tables import cards
from tests.domains.a2a.conftest import MakeOutpost, on_one_database
from tests.domains.a2a.outpost import Outpost
from tests.domains.a2a.remote_agent import RemoteAgent
from tests.outgoing.loopback import Web, web_server

CARD = "/.well-known/agent-card.json"
OLD = {"name": "Old", "version": "1.0.0", "description": "Before the protocol", "skills": []}


def says(web: Web, card: Any, **how: Any) -> None:
    web.says(CARD, body=card if isinstance(card, bytes) else json.dumps(card).encode(), **how)


async def test_words_that_are_no_query_are_refused(outpost: Outpost) -> None:
    for wrong in ("", "  ", "x" * 1001):
        with pytest.raises(InvalidParams):
            await outpost.discover(wrong)
    for wrong in ("ftp://agent.example", "https://", "https://user:secret@agent.example", "https://a.example/?q=1"):
        with pytest.raises(ValidationFailed):
            await outpost.discover(wrong)


async def test_a_session_of_an_agent_without_networking_has_no_cards(outpost: Outpost) -> None:
    await outpost.fleet.call(outpost.fleet.owner, "update_agent", agent="default", restrict_networking=True)
    with pytest.raises(PermissionDenied) as refused:
        await outpost.discover("anybody", outpost.agent(source="agent"))
    assert refused.value.layer == "source"


@on_one_database
@pytest.mark.parametrize(
    "place", ["http://127.0.0.1:9", "http://localhost:9", "http://[::1]:9", "http://169.254.169.254", "http://10.0.0.1"]
)
async def test_nobody_reaches_this_machine_or_its_network_unless_the_owner_says_so(
    make_outpost: MakeOutpost, place: str
) -> None:
    found = await make_outpost(a2a_allow=()).discover(place)
    assert found["agents"] == []
    assert found["note"].startswith(f"No agent card at {place}: the host ")
    assert "the owner can allow it with the setting a2a_allow" in found["note"]


async def test_a_redirect_leads_nowhere_else(make_outpost: MakeOutpost) -> None:
    async with web_server() as web, web_server("127.0.0.2") as other:
        other.says(CARD, body=json.dumps(OLD).encode())
        web.says(CARD, 302, location=f"{other.url}{CARD}")
        found = await make_outpost(a2a_allow=(f"127.0.0.1:{web.port}",)).discover(web.url)
    assert "private network" in found["note"]
    assert other.seen == []


@on_one_database
@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"<html>Welcome</html>", "the answer is no JSON object"),
        (b"[]", "the answer is no JSON object"),
        (b"\xff\xfe", "the answer is no JSON object"),
        ({"name": "Nameless"}, "the card has no version"),
        ({"version": "1"}, "the card has no name"),
        ({"name": " ", "version": "1"}, "the card has no name"),
        ({"name": {"a": 1}, "version": "1"}, "the card cannot be read"),
        ({"name": "x", "version": "1", "skills": "all"}, "the card cannot be read"),
        (b'{"name": "\\ud800", "version": "1"}', "the card cannot be read"),
        ({"name": "x", "version": "1", "capabilities": 7, "supportsAuthenticatedExtendedCard": True}, "the card"),
        (b'{"name": "x", "version": "1", "a":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "the answer is no JSON"),
        (b'{"name": "' + b"x" * 300_000 + b'", "version": "1"}', "the host answered with more than"),
    ],
)
async def test_what_is_no_card_is_told_as_such(outpost: Outpost, body: Any, why: str) -> None:
    async with web_server() as web:
        says(web, body)
        found = await outpost.discover(web.url)
    assert found["agents"] == []
    assert found["note"].startswith(f"No agent card at {web.url}: {why}")
    assert outpost.rows("cards") == []


async def test_a_missing_card_and_a_host_that_is_gone_are_told(outpost: Outpost) -> None:
    async with web_server() as web:
        web.says(CARD, 404)
        assert "the host answered with 404" in (await outpost.discover(web.url))["note"]
    assert "could not be reached" in (await outpost.discover(web.url))["note"]


async def test_the_card_of_a_real_agent_is_shown(outpost: Outpost, mirror: RemoteAgent) -> None:
    result = await outpost.result("discover_agent", url=f"{mirror.url}/")
    (card,) = result.structured["agents"]
    assert (card["name"], card["version"], card["at"]) == ("Mirror", "2.1.0", mirror.url)
    assert (card["streaming"], card["push"]) == (True, False)
    assert card["skills"] == [
        {"id": "echo", "name": "Echo", "description": "Says it back", "tags": ["mirror", "speech"]}
    ]
    for part in ("Mirror 2.1.0", "Says back what it is told", "- echo: Echo [mirror, speech]", "Can: streaming"):
        assert part in result.text
    head = mirror.heads[0]
    assert (head["accept"], head["user-agent"]) == ("application/json", "Rookery/A2A-Client")


async def test_a_card_from_before_the_protocol_is_shown_and_its_texts_are_made_harmless(outpost: Outpost) -> None:
    more = {
        "description": "line\none\u0000 \u202e end" + "x" * 5000,
        "authentication": {"schemes": ["bearer", 7, "bearer"]},
        "supportedProtocols": [{"protocol": "AlgoChat", "endpoint": "algo://ABC"}, "junk"],
        "provider": {"organization": "Acme", "url": "https://acme.example"},
    }
    async with web_server() as web:
        says(web, {**OLD, **more, "url": web.url})
        (card,) = (await outpost.discover(web.url))["agents"]
    assert card["description"].startswith("line one end" + "x" * 100)
    assert len(card["description"]) == 2000
    assert (card["auth"], card["protocols"]) == (["bearer"], ["AlgoChat algo://ABC"])
    assert card["provider"] == "Acme https://acme.example"


async def test_a_card_is_kept_for_five_minutes(outpost: Outpost) -> None:
    async with web_server() as web:
        says(web, OLD)
        for _ in range(3):
            await outpost.discover(web.url)
        assert len(web.seen) == 1
        outpost.change(sa.update(cards).values(fetched_ms=cards.c.fetched_ms - 300_001))
        says(web, {**OLD, "version": "1.1.0"})
        assert (await outpost.discover(web.url))["agents"][0]["version"] == "1.1.0"
    assert len(outpost.rows("cards")) == 1


async def test_known_cards_are_found_by_words_within_the_tenant(outpost: Outpost, mirror: RemoteAgent) -> None:
    assert (await outpost.discover("mirror"))["note"].startswith("No known agent card has mirror")
    await outpost.discover(mirror.url)
    for words in ("MIRROR", "speech echo", "told back"):
        (card,) = (await outpost.discover(words))["agents"]
        assert card["at"] == mirror.url
    assert (await outpost.discover("mirror nowhere"))["agents"] == []
    assert (await outpost.discover("mirror", outpost.stranger))["agents"] == []


async def test_what_to_install_is_said_where_the_sdk_is_missing(
    outpost: Outpost, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sdk, "is_installed", lambda: False)
    with pytest.raises(Exception, match="A2A is not installed") as missing:
        await outpost.discover("https://agent.example")
    assert missing.value.hint == "pip install 'rookery[a2a]'"  # type: ignore[attr-defined]


@on_one_database
async def test_a_card_without_end_is_shown_as_far_as_there_is_room(outpost: Outpost) -> None:
    skill = {"id": "i" * 200, "name": "n" * 200, "description": "d" * 400, "tags": ["t" * 100] * 20}
    interface = {
        "url": "https://x.example/\nProvider: the owner",
        "protocolBinding": "JSONRPC",
        "protocolVersion": "1.0",
    }
    async with web_server() as web:
        ways = [{**interface, "url": "https://" + "x" * 3_000}, interface, {**interface, "tenant": "t" * 50_000}]
        says(web, {"name": "Long", "version": "1", "skills": [skill] * 60, "supportedInterfaces": ways})
        result = await outpost.result("discover_agent", url=web.url)
        (found,) = result.structured["agents"]
        assert (await outpost.discover(" ".join(f"w{number}" for number in range(150))))["agents"] == []
        assert len((await outpost.discover("long " * 100))["agents"]) == 1
    assert len(found["skills"]) == 11
    assert len(found["skills"][0]["tags"]) == 10
    assert len(result.text) < 25_000
    assert "\nProvider:" not in result.text
    (kept,) = outpost.rows("cards")
    assert [way["url"] for way in kept.card["interfaces"]] == [interface["url"]]
