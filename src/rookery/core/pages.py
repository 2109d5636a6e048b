"""Pages of a list: an opaque cursor that says where the next page starts."""

import base64
import binascii
import json

from rookery.core.errors import InvalidParams


def encode_cursor(key: str) -> str:
    """A cursor that continues after `key`."""
    return base64.urlsafe_b64encode(json.dumps({"after": key}).encode()).decode().rstrip("=")


def decode_cursor(cursor: str | None) -> str | None:
    """The key to continue after, None for the first page. A cursor that we did not make is refused."""
    if cursor is None:
        return None
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        value = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
        after = value["after"]
    except (binascii.Error, ValueError, KeyError, TypeError):
        after = None
    if not isinstance(after, str):
        raise _foreign()
    return after


def decode_number(cursor: str | None) -> int | None:
    """The same for lists that are ordered by a 64-bit number."""
    after = decode_cursor(cursor)
    if after is None:
        return None
    if not (after.isascii() and after.isdigit() and len(after) <= 18):
        raise _foreign()
    return int(after)


def _foreign() -> InvalidParams:
    return InvalidParams("the cursor is not one of ours", hint="start again without a cursor")
