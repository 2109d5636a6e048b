"""The pages of attestations, as anybody reads them."""

import json

from rookery.attest.card import EXTENSION
from rookery.attest.verify import verify_log
from tests.attest.notary import AGENT, Notary
from tests.server.streamable.web import serving


async def test_who_has_published_nothing_has_no_pages(notary: Notary) -> None:
    agent = notary.fleet.actor().agent
    async with serving(notary.fleet) as web:
        for name in (agent, AGENT, "nobody", "%00", "..%2f..", "a" * 5000):
            for page in ("key.json", "log.json", ".well-known/agent-card.json"):
                assert (await web.http.get(f"/attestations/{name}/{page}")).status_code in (404, 414)
        for method in ("POST", "PUT", "DELETE"):
            assert (await web.http.request(method, f"/attestations/{AGENT}/log.json")).status_code == 405
        foreign = await web.http.get(f"/attestations/{AGENT}/log.json", headers={"host": "evil.example"})
        assert foreign.status_code == 421


async def test_key_log_and_card_go_together_and_need_no_token(notary: Notary) -> None:
    document = notary.attest(51, 52)
    async with serving(notary.fleet) as web:
        log = await web.http.get(f"/attestations/{AGENT}/log.json")
        assert (log.status_code, log.content) == (200, document)
        assert log.headers["content-type"] == "application/json"
        assert verify_log(log.content).fault is None
        key = await web.http.get(f"/attestations/{AGENT}/key.json")
        assert key.json() == json.loads(document)["key"]
        card = (await web.http.get(f"/attestations/{AGENT}/.well-known/agent-card.json")).json()
        [extension] = card["capabilities"]["extensions"]
        at = f"http://127.0.0.1:{web.port}/attestations/{AGENT}"
        assert extension["uri"] == EXTENSION
        pages = {name: f"{at}/{name}.json" for name in ("key", "log", "proof")}
        assert extension["params"] == {"agentId": AGENT, **pages}
        assert card["supportedProtocols"][0]["endpoint"] == f"algo://{key.json()['wallet']}"
        assert "signing" not in log.text + key.text
