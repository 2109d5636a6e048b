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
    value = read_json(text)
    refuse_other_form(value, text)
    return value


def read_json(text: bytes) -> Any:
    """What the bytes say, in whatever form; NotCanonical if they are no JSON. A fraction of what the form costs."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise NotCanonical("it is no JSON of a kind that can be signed") from error


def refuse_other_form(value: Any, text: bytes) -> None:
    """NotCanonical unless the bytes are the canonical form of the value."""
    try:
        again = canonical(value)
    except (ValueError, RecursionError) as error:
        raise NotCanonical("it is no JSON of a kind that can be signed") from error
    if again != text:
        raise NotCanonical("its bytes are not the canonical form of what it says")


def sha256(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()
