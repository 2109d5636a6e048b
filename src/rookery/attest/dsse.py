"""DSSE envelopes (secure-systems-lab/dsse) with one Ed25519 signature."""

import base64
import binascii
from typing import Any, TypedDict, cast

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from rookery.attest.keys import keyid_of

MAX_WORD = 200
"""No type, id of a key or signature has more characters."""


class Signature(TypedDict):
    keyid: str
    sig: str


class Envelope(TypedDict):
    payload: str
    payloadType: str
    signatures: list[Signature]


class BadEnvelope(ValueError):
    """The envelope does not hold."""


def signed(key: Ed25519PrivateKey, kind: str, payload: bytes) -> Envelope:
    """The payload in an envelope, signed."""
    signature = key.sign(to_sign(kind, payload))
    return {
        "payload": base64.b64encode(payload).decode(),
        "payloadType": kind,
        "signatures": [{"keyid": keyid_of(key.public_key()), "sig": base64.b64encode(signature).decode()}],
    }


def opened(envelope: Any, kind: str, public: Ed25519PublicKey) -> bytes:
    """The payload, if the envelope is of this kind and the key signed it; BadEnvelope says what is wrong."""
    parts = _fields(envelope, "payload", "payloadType", "signatures")
    if parts["payloadType"] != kind:
        raise BadEnvelope(f"it is of the type {str(parts['payloadType'])[:100]!r}, not {kind}")
    payload = _bytes(parts["payload"])
    try:
        public.verify(_bytes(_only_signature(parts)["sig"]), to_sign(kind, payload))
    except InvalidSignature:
        raise BadEnvelope("its signature does not belong to it") from None
    return payload


def signer_of(envelope: Any) -> str:
    """The id of the key that an envelope says it was signed with."""
    return str(_only_signature(_fields(envelope, "payload", "payloadType", "signatures"))["keyid"])


def is_slight(envelope: Any, most: int) -> bool:
    """Whether this has the shape of an envelope with at most `most` bytes in it. Tells cheaply what is junk."""
    try:
        parts = _fields(envelope, "payload", "payloadType", "signatures")
        signature = _only_signature(parts)
    except BadEnvelope:
        return False
    words = (parts["payloadType"], signature["keyid"], signature["sig"])
    payload = parts["payload"]
    return (
        isinstance(payload, str)
        and len(payload) <= 4 * (most // 3 + 1)
        and all(isinstance(word, str) and len(word) <= MAX_WORD for word in words)
    )


def to_sign(kind: str, payload: bytes) -> bytes:
    """What is signed: type and payload with their lengths, so that neither can pass for a part of the other."""
    name = kind.encode()
    return b"DSSEv1 %d %b %d %b" % (len(name), name, len(payload), payload)


def _only_signature(parts: dict[str, Any]) -> dict[str, Any]:
    found = cast("list[Any]", parts["signatures"]) if isinstance(parts["signatures"], list) else []
    if len(found) != 1:
        raise BadEnvelope("it must have exactly one signature")
    return _fields(found[0], "keyid", "sig")


def _fields(value: Any, *names: str) -> dict[str, Any]:
    found = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    if set(found) != set(names):
        raise BadEnvelope("it is no DSSE envelope")
    return found


def _bytes(text: Any) -> bytes:
    """What the text encodes. There is one text for each content: another one was changed."""
    try:
        found = base64.b64decode(text, validate=True)
    except (binascii.Error, TypeError, ValueError):
        raise BadEnvelope("it has something in it that is no base64") from None
    if base64.b64encode(found).decode() != text:
        raise BadEnvelope("it has base64 in it that nobody writes so")
    return found
