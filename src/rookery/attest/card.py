"""Where an agent's card says that its attestations are, and the small card that this server has for each attester."""

from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import urljoin, urlsplit, urlunsplit

from rookery.attest.keys import is_address

EXTENSION = "urn:rookery:attestations:1"
CARD = "/.well-known/agent-card.json"
WALLET = "algo://"
_PORTS = {"http": 80, "https": 443}
Json = dict[str, Any]
Origin = tuple[str, str, int]
"""Who serves an address: scheme, host and port."""


@dataclass(frozen=True, slots=True)
class Places:
    """Where a card says that an agent's key and log are, and what it says besides: they may be anybody's.

    Compare their `origin_of` before they are believed. `proof` is where the host proves that it holds the key.
    """

    key: str
    log: str
    proof: str | None = None
    agent_id: str | None = None

    @property
    def all(self) -> tuple[str, ...]:
        return (self.key, self.log) if self.proof is None else (self.key, self.log, self.proof)


def extension(base: str, agent_id: str) -> Json:
    """The entry below `capabilities.extensions` of a card by which others find the agent's key and log."""
    at = f"{base.rstrip('/')}/attestations/{agent_id}"
    return {
        "uri": EXTENSION,
        "description": "Attestations of the agent's reputation, signed with its key",
        "params": {
            "agentId": agent_id,
            "key": f"{at}/key.json",
            "log": f"{at}/log.json",
            "proof": f"{at}/proof.json",
        },
    }


def attester_card(base: str, agent_id: str, version: str, wallet: str) -> Json:
    """A card of one agent, for whoever wants to know only whether it can be trusted."""
    return {
        "name": agent_id,
        "description": "An agent of a Rookery, and where its attestations are",
        "url": f"{base.rstrip('/')}/attestations/{agent_id}",
        "version": version,
        "capabilities": {"extensions": [extension(base, agent_id)]},
        "defaultInputModes": ["text/plain"],
        "defaultOutputModes": ["text/plain"],
        "skills": [],
        "supportedProtocols": [
            {"protocol": "AlgoChat", "description": "Its wallet on Algorand", "endpoint": f"{WALLET}{wallet}"}
        ],
    }


def card_address(address: str) -> str:
    """Where the card of the agent at an address is, in one spelling; ValueError if it is no address."""
    at = urlsplit(address if address.endswith(".json") else f"{address.rstrip('/')}{CARD}")
    own = f":{_PORTS.get(at.scheme)}"
    return urlunsplit(at._replace(netloc=at.netloc.lower().removesuffix(own)))


def origin_of(address: str) -> Origin | None:
    """Who serves an address; None if it is no address of the web."""
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError:
        return None
    if parts.scheme not in _PORTS or not parts.hostname:
        return None
    return parts.scheme, parts.hostname, _PORTS[parts.scheme] if port is None else port


def attestations_of(card: Json, address: str) -> Places | None:
    """What a card says of the agent's attestations; None if it says nothing. Addresses may be relative to the card."""
    for each in _entries(_object(card.get("capabilities")).get("extensions")):
        if each.get("uri") == EXTENSION:
            params = _object(each.get("params"))
            key, log, proof, agent_id = (_text(params.get(name)) for name in ("key", "log", "proof", "agentId"))
            if key is None or log is None:
                continue
            try:
                proof_at = None if proof is None else urljoin(address, proof)
                return Places(urljoin(address, key), urljoin(address, log), proof_at, agent_id)
            except ValueError:
                return None
    return None


def wallet_of_card(card: Json) -> str | None:
    """The Algorand address that a card names; None if it names none."""
    for each in _entries(card.get("supportedProtocols")):
        endpoint = each.get("endpoint")
        if isinstance(endpoint, str) and is_address(endpoint.removeprefix(WALLET)):
            return endpoint.removeprefix(WALLET)
    return None


def _object(value: Any) -> Json:
    return cast(Json, value) if isinstance(value, dict) else {}


def _entries(value: Any) -> list[Json]:
    return [_object(each) for each in cast("list[Any]", value)] if isinstance(value, list) else []


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
