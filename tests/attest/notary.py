"""Makes logs of attestations, and spoils them."""

import base64
import json
from typing import Any

import sqlalchemy as sa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from rookery.attest.canonical import canonical, sha256
from rookery.attest.dsse import signed
from rookery.attest.log import AttestationLog
from rookery.attest.verify import GENESIS, HEAD, STATEMENT, key_page
from rookery.db.server_keys import server_keys
from rookery.db.tx import Tx
from tests.platform_fixtures import Fleet

AGENT = "agt_ada"


def score(overall: int) -> dict[str, Any]:
    """What an attestation says."""
    return {"overallScore": overall, "trustLevel": "medium", "components": {"peerRating": 50}}


class Notary:
    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet

    def attest(self, *scores: int, agent: str = AGENT) -> bytes:
        """Add an entry for each score; the log afterwards."""

        def add(tx: Tx) -> bytes:
            log = AttestationLog(tx, "default", agent)
            for each in scores:
                log.append(score(each))
            found = log.document()
            assert found is not None
            return found

        return self.direct(add)

    def lose_key(self) -> None:
        """The agent's key is gone: the next attestation makes a new one."""
        self.direct(lambda tx: tx.run(sa.delete(server_keys).where(server_keys.c.name.like("signing:%"))))

    def direct(self, work: Any) -> Any:
        return self.fleet.platform.database.direct(work, write=True)


def changed(document: bytes, change: Any) -> bytes:
    """The document after `change(its content)`, in canonical form again."""
    content = json.loads(document)
    change(content)
    return canonical(content)


def forged(*statements: dict[str, Any], agent: str = AGENT) -> bytes:
    """A log that is signed as it should be, of statements that say whatever they say."""
    key = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
    envelopes: list[Any] = []
    last = GENESIS
    for number, statement in enumerate(statements, 1):
        payload = canonical({**statement, "agentId": agent, "number": number, "previous": last})
        envelopes.append(signed(key, STATEMENT, payload))
        last = sha256(payload)
    head = signed(key, HEAD, canonical({"agentId": agent, "count": len(statements), "hash": last}))
    page = key_page(agent, key.public_key().public_bytes_raw().hex())
    return canonical({"agentId": agent, "attestations": envelopes, "head": head, "key": page})


def said(envelope: dict[str, Any]) -> dict[str, Any]:
    """What an envelope says."""
    return json.loads(base64.b64decode(envelope["payload"]))
