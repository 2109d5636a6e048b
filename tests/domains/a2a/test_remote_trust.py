"""Agents that say of themselves how far they can be trusted: what that is worth."""

import base64
import json
from typing import Any

import pytest
import sqlalchemy as sa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from rookery.attest.card import EXTENSION
from rookery.attest.keys import address_of
from rookery.core.errors import PermissionDenied
from rookery.repute.tables import reputation_events
from tests.domains.a2a.conftest import MakeOutpost, on_one_database
from tests.domains.a2a.outpost import Outpost
from tests.domains.a2a.visitor import open_house
from tests.outgoing.loopback import Web, web_server

CARD = "/.well-known/agent-card.json"


def card(web: Web, **more: Any) -> None:
    web.says(CARD, body=json.dumps({"name": "Eve", "version": "1", **more}).encode())


async def test_the_log_of_another_is_no_trust(outpost: Outpost, make_outpost: MakeOutpost) -> None:
    await outpost.result("publish_attestation")
    async with open_house(outpost, work=False) as web, web_server() as eve:
        honest = (await web.http.get(CARD)).json()["capabilities"]["extensions"]
        card(eve, capabilities={"extensions": honest})
        with pytest.raises(PermissionDenied, match="is untrusted, and low is needed"):
            await make_outpost(a2a_trust=()).invoke(eve.url, "hi")
    assert {seen.method for seen in eve.seen} == {"GET"}


@on_one_database
async def test_a_wallet_is_no_trust(make_outpost: MakeOutpost) -> None:
    wallet = address_of(Ed25519PrivateKey.generate().public_key())
    note = base64.b64encode(b"corvid-reputation:agt_1:" + b"a" * 64).decode()
    paid = {"receiver": wallet, "amount": 0}
    written = [
        {"id": f"TX{at}", "tx-type": "pay", "sender": wallet, "confirmed-round": at, "note": note}
        | {"payment-transaction": paid}
        for at in range(1, 20)
    ]
    async with web_server() as eve:
        card(eve, supportedProtocols=[{"protocol": "AlgoChat", "endpoint": f"algo://{wallet}"}])
        eve.says(f"/v2/accounts/{wallet}/transactions", body=json.dumps({"transactions": written}).encode())
        with pytest.raises(PermissionDenied, match="is untrusted, and low is needed"):
            await make_outpost(a2a_trust=(), algorand_indexer_url=eve.url).invoke(eve.url, "hi")


@on_one_database
async def test_more_than_a_little_trust_is_the_owners_alone(make_outpost: MakeOutpost) -> None:
    async with web_server() as eve:
        params = {"key": "/a/key.json", "log": "/a/log.json"}
        card(eve, capabilities={"extensions": [{"uri": EXTENSION, "params": params}]})
        for level in ("medium", "verified"):
            with pytest.raises(PermissionDenied, match=f"is untrusted, and {level} is needed"):
                await make_outpost(a2a_trust=()).invoke(eve.url, "hi", min_trust=level)
    # Nothing that it could say would be enough, so it is not asked.
    assert {seen.path for seen in eve.seen} == {CARD}


@on_one_database
async def test_whoever_asks_for_trust_has_a_budget(make_outpost: MakeOutpost) -> None:
    outpost = make_outpost(a2a_trust=(), a2a_max_invocations=1)
    async with web_server() as eve:
        card(eve)
        with pytest.raises(PermissionDenied):
            await outpost.invoke(eve.url, "hi")
        asked = len(eve.seen)
        with pytest.raises(Exception, match="may not ask a remote agent now"):
            await outpost.invoke(eve.url, "hi")
    assert len(eve.seen) == asked


async def test_a_copy_of_anothers_log_is_no_trust(outpost: Outpost, make_outpost: MakeOutpost) -> None:
    await outpost.result("publish_attestation")
    async with open_house(outpost, work=False) as web, web_server() as eve:
        [honest] = (await web.http.get(CARD)).json()["capabilities"]["extensions"]
        copied = {name: honest["params"][name].removeprefix(web.url) for name in ("key", "log")}
        for path in copied.values():
            eve.says(path, body=(await web.http.get(path)).content)
        card(eve, capabilities={"extensions": [{"uri": EXTENSION, "params": copied}]})
        caller = make_outpost(a2a_trust=())
        told = await caller.result("verify_agent_reputation", agent_url=eve.url)
        assert (told.structured["verified"], told.structured["proven"]) == (True, False)
        with pytest.raises(PermissionDenied, match="is untrusted, and low is needed"):
            await caller.invoke(eve.url, "hi")


async def test_an_agent_must_have_the_key_that_the_owner_pinned(outpost: Outpost, make_outpost: MakeOutpost) -> None:
    async with open_house(outpost) as web:
        place = f"127.0.0.1:{web.port}"
        tokens = ((place, (await web.token(),)),)

        def caller(*words: str) -> Outpost:
            return make_outpost(a2a_tokens=tokens, a2a_trust=((place, words),))

        with pytest.raises(PermissionDenied, match="does not show the key that the owner has pinned"):
            await caller("high", "0" * 64).invoke(web.url, "!say hi")
        await outpost.result("publish_attestation")
        with pytest.raises(PermissionDenied, match="does not show the key that the owner has pinned"):
            await caller("high", "0" * 64).invoke(web.url, "!say hi")
        violations = sa.select(reputation_events).where(reputation_events.c.type == "security_violation")
        assert outpost.platform.database.direct(lambda tx: tx.all(violations)) == []
        keyid = (await caller("low").result("verify_agent_reputation", agent_url=web.url)).structured["keyid"]
        assert (await caller("high", keyid).invoke(web.url, "!say hi", min_trust="high"))["answer"] == "hi"
        with pytest.raises(PermissionDenied, match="is high, and verified is needed"):
            await caller("high", keyid).invoke(web.url, "!say hi", min_trust="verified")


async def test_attestations_do_not_lift_whom_the_owner_distrusts(outpost: Outpost, make_outpost: MakeOutpost) -> None:
    await outpost.result("publish_attestation")
    async with open_house(outpost, work=False) as web:
        caller = make_outpost(a2a_trust=((f"127.0.0.1:{web.port}", ("untrusted",)),))
        with pytest.raises(PermissionDenied, match="is untrusted, and low is needed"):
            await caller.invoke(web.url, "hi")
