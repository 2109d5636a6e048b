"""An agent elsewhere, served over real HTTP, by a Rookery or by something that only looks like one."""

import json
from typing import Any

from rookery.attest.card import EXTENSION
from rookery.attest.log import AttestationLog
from rookery.core.actor import Actor
from tests.domains.reputation.bench import Bench
from tests.outgoing.loopback import Web

KEY, LOG, CARD = "/a/key.json", "/a/log.json", "/.well-known/agent-card.json"


def log_of(bench: Bench, actor: Actor) -> bytes:
    """The log of an agent as it is published."""
    assert actor.agent is not None
    agent_id, database = actor.agent, bench.fleet.platform.database
    found = database.direct(lambda tx: AttestationLog(tx, actor.tenant, agent_id).document())
    assert found is not None
    return found


def card(**changes: Any) -> dict[str, Any]:
    """A card that names key and log, relative to itself."""
    extension = {"uri": EXTENSION, "params": {"key": KEY, "log": LOG}}
    good = {"name": "Eve", "version": "1", "capabilities": {"extensions": [extension]}}
    return {name: value for name, value in {**good, **changes}.items() if value is not None}


def show(web: Web, log: bytes, **changes: Any) -> None:
    """Let the server have a card, the log and the key that stands in the log."""
    web.says(CARD, body=json.dumps(card(**changes)).encode())
    web.says(LOG, body=log)
    web.says(KEY, body=json.dumps(json.loads(log)["key"]).encode())
