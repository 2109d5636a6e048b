"""The Ed25519 key of each agent: it signs the agent's attestations, and is its wallet on Algorand."""

import base64
import hashlib

import sqlalchemy as sa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from rookery.attest.canonical import sha256
from rookery.db.server_keys import server_key_in, server_keys
from rookery.db.tx import Tx

KEY_BYTES = 32
ADDRESS_CHARACTERS = 58
_CHECK_BYTES = 4
_SEED = sa.select(server_keys.c.secret).where(server_keys.c.name == sa.bindparam("name"))


def seed_of(tx: Tx, tenant: str, owner: str) -> bytes:
    """The 32 secret bytes of `owner`, such as `agent:agt_…`. Made at first use, which needs a transaction that writes.

    They are kept with the keys of the server, as those are: whoever reads the database can sign.
    """
    return server_key_in(tx, _name(tenant, owner))


def agent_key(tx: Tx, tenant: str, agent_id: str) -> Ed25519PrivateKey:
    """The key of an agent; see `seed_of`."""
    return Ed25519PrivateKey.from_private_bytes(seed_of(tx, tenant, f"agent:{agent_id}"))


def held_key(tx: Tx, tenant: str, agent_id: str) -> Ed25519PrivateKey | None:
    """The key of an agent that has one, which any transaction can look up; None if it has none."""
    seed: str | None = tx.scalar(_SEED, {"name": _name(tenant, f"agent:{agent_id}")})
    return None if seed is None else Ed25519PrivateKey.from_private_bytes(bytes.fromhex(seed))


def public_from(text: str) -> Ed25519PublicKey:
    """The public key that 64 hexadecimal digits stand for; ValueError if they stand for none."""
    if len(text) != 2 * KEY_BYTES or text != text.lower():
        raise ValueError("a public key has 64 hexadecimal digits in lower case")
    return Ed25519PublicKey.from_public_bytes(bytes.fromhex(text))


def keyid_of(public: Ed25519PublicKey) -> str:
    """The name of a key: the hash of its 32 bytes."""
    return sha256(public.public_bytes_raw())


def address_of(public: Ed25519PublicKey) -> str:
    """The same key as an Algorand address."""
    raw = public.public_bytes_raw()
    return base64.b32encode(raw + _check(raw)).decode().rstrip("=")


def is_address(text: str) -> bool:
    """Whether this is an Algorand address, with the right check sum."""
    if len(text) != ADDRESS_CHARACTERS:
        return False
    try:
        raw = base64.b32decode(text + "======")
    except ValueError:
        return False
    return _check(raw[:KEY_BYTES]) == raw[KEY_BYTES:] and base64.b32encode(raw).decode().rstrip("=") == text


def _name(tenant: str, owner: str) -> str:
    return f"signing:{tenant}:{owner}"


def _check(raw: bytes) -> bytes:
    return hashlib.new("sha512_256", raw).digest()[-_CHECK_BYTES:]
