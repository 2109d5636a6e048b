"""Proof that whoever serves a log holds its key: the host signs a number that it has never seen, and its own address.

A log and a key can be copied, and a proof that another host gives can be passed on: it then names the other host.
"""

import re
import secrets
from typing import Any, cast

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from rookery.attest.canonical import NotCanonical, canonical, read_canonical
from rookery.attest.card import Origin
from rookery.attest.dsse import BadEnvelope, Envelope, opened, signed
from rookery.attest.verify import Broken

PROOF = "application/vnd.rookery.key-proof+json"
_NONCE = re.compile(r"[0-9a-f]{64}")


def new_nonce() -> str:
    """A number that nobody has signed before."""
    return secrets.token_hex(32)


def is_nonce(text: str) -> bool:
    return _NONCE.fullmatch(text) is not None


def proof_of(key: Ed25519PrivateKey, agent_id: str, nonce: str, origin: Origin) -> Envelope:
    """What the host at `origin` says to whoever gave it the number."""
    return signed(key, PROOF, _said(agent_id, nonce, origin))


def refuse_unproven(envelope: Any, public: Ed25519PublicKey, agent_id: str, nonce: str, origin: Origin) -> None:
    """Broken unless the envelope proves that the host at `origin` holds the key of the agent."""
    try:
        payload = opened(envelope, PROOF, public)
        said = read_canonical(payload)
    except (BadEnvelope, NotCanonical) as error:
        raise Broken("other_agent", f"its host does not hold the key of its log: {error}") from None
    if payload == _said(agent_id, nonce, origin):
        return
    of = cast("dict[str, Any]", said).get("origin") if isinstance(said, dict) else None
    why = "it passes on the proof of another host" if of != _address(origin) else "its proof is an old one"
    raise Broken("other_agent", f"its host does not hold the key of its log: {why}")


def _said(agent_id: str, nonce: str, origin: Origin) -> bytes:
    return canonical({"agentId": agent_id, "nonce": nonce, "origin": _address(origin)})


def _address(origin: Origin) -> str:
    scheme, host, port = origin
    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}"
