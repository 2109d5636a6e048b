"""JSON in the one form of RFC 8785, so that the same content has the same bytes and the same hash everywhere."""

import hashlib
import json
from typing import Any


class NotCanonical(ValueError):
    """The bytes are no JSON, or not in the canonical form."""


def canonical(value: Any) -> bytes:
    """The value as RFC 8785 writes it."""
    import rfc8785

    return rfc8785.dumps(value)


def read_canonical(text: bytes) -> Any:
    """What the bytes say, or NotCanonical: also if a single byte is not as RFC 8785 has it."""
    try:
        value = json.loads(text)
        again = canonical(value)
    except (ValueError, RecursionError) as error:
        raise NotCanonical("it is no JSON of a kind that can be signed") from error
    if again != text:
        raise NotCanonical("its bytes are not the canonical form of what it says")
    return value


def sha256(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()
