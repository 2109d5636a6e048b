"""Proofs that a host holds the key of a log: who gets none, and which ones are believed."""

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from rookery.attest.keys import public_from
from rookery.attest.proof import is_nonce, new_nonce, proof_of, refuse_unproven
from rookery.attest.verify import Broken
from tests.attest.notary import AGENT, Notary
from tests.platform_fixtures import Fleet
from tests.server.streamable.web import Web, serving

PAGE = f"/attestations/{AGENT}/proof.json"
HERE = ("https", "agents.example", 443)
KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))


async def ask(web: Web, nonce: str, **headers: str) -> Any:
    return await web.http.get(PAGE, params={"nonce": nonce}, headers=headers)


async def test_nothing_is_signed_but_a_number_and_the_servers_own_address(notary: Notary) -> None:
    async with serving(notary.fleet) as web:
        assert (await ask(web, new_nonce())).status_code == 404
        notary.attest(51)
        for wrong in ("", "a", "A" * 64, "g" * 64, "0" * 65, "{}"):
            assert (await ask(web, wrong)).status_code == 400
        for name in ("127.0.0.1", "127.0.0.1:1", "localhost"):
            refused = await ask(web, new_nonce(), host=name)
            assert (refused.status_code, "public_url" in refused.text) == (409, True)
        assert (await ask(web, new_nonce(), host=f"evil.example:{web.port}")).status_code == 421
        notary.lose_key()
        assert (await ask(web, new_nonce())).status_code == 404


async def test_a_server_that_is_open_to_all_signs_for_no_number_that_is_not_its_own(
    database_url: str, make_fleet: Callable[..., Fleet]
) -> None:
    notary = Notary(make_fleet(database_url, extra={}, host="0.0.0.0"))
    notary.attest(51)
    async with serving(notary.fleet) as web:
        assert (await ask(web, new_nonce(), host=f"192.0.2.1:{web.port}")).status_code == 409
        assert (await ask(web, new_nonce())).status_code == 200


@pytest.mark.parametrize("public_url", ["", "https://agents.example"])
async def test_a_server_proves_that_it_holds_the_key(
    database_url: str, make_fleet: Callable[..., Fleet], public_url: str
) -> None:
    notary = Notary(make_fleet(database_url, extra={}, public_url=public_url))
    public = public_from(json.loads(notary.attest(51))["key"]["public"])
    nonce = new_nonce()
    async with serving(notary.fleet) as web:
        shown = (await ask(web, nonce)).json()
        origin = HERE if public_url else ("http", "127.0.0.1", web.port)
    refuse_unproven(shown, public, AGENT, nonce, origin)
    with pytest.raises(Broken, match="passes on the proof of another host"):
        refuse_unproven(shown, public, AGENT, nonce, ("https", "evil.example", 443))


def test_what_proves_something_else_is_refused() -> None:
    nonce = new_nonce()
    good = json.loads(json.dumps(proof_of(KEY, AGENT, nonce, HERE)))
    refuse_unproven(good, KEY.public_key(), AGENT, nonce, HERE)
    spoilt = copy.deepcopy(good)
    spoilt["payload"] = "AAAA"
    other = Ed25519PrivateKey.generate()
    for wrong in (
        None,
        7,
        {},
        spoilt,
        {**good, "payloadType": "application/vnd.rookery.reputation+json"},
        proof_of(other, AGENT, nonce, HERE),
        proof_of(KEY, AGENT, new_nonce(), HERE),
        proof_of(KEY, "agt_bob", nonce, HERE),
        proof_of(KEY, AGENT, nonce, ("http", "agents.example", 80)),
        proof_of(KEY, AGENT, nonce, ("https", "agents.example", 8443)),
    ):
        with pytest.raises(Broken, match="does not hold the key") as broken:
            refuse_unproven(wrong, KEY.public_key(), AGENT, nonce, HERE)
        assert broken.value.fault == "other_agent"


def test_numbers_are_new_each_time() -> None:
    assert is_nonce(new_nonce())
    assert new_nonce() != new_nonce()
