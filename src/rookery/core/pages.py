"""Pages of a list: an opaque cursor that says where the next page starts."""

import base64
import binascii
import json
import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import TypeVar

from rookery.core.admission import storable
from rookery.core.errors import InvalidParams

T = TypeVar("T")
_MOMENT = re.compile(r"([0-9]{1,18}) ([^\s]{1,100})")


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
    if not isinstance(after, str) or not storable(after):
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


def encode_moment(at_ms: int, key: str) -> str:
    """A cursor for lists that are ordered by a time, and by a key where two have the same."""
    return encode_cursor(f"{at_ms} {key}")


def decode_moment(cursor: str | None, prefix: str = "") -> tuple[int, str] | None:
    """The time and the key to continue after, None for the first page. Keys of another `prefix` are foreign."""
    after = decode_cursor(cursor)
    if after is None:
        return None
    parts = _MOMENT.fullmatch(after)
    if parts is None or not parts[2].startswith(prefix):
        raise _foreign()
    return int(parts[1]), parts[2]


def _foreign() -> InvalidParams:
    return InvalidParams("the cursor is not one of ours", hint="start again without a cursor")


def page(
    listing: str, items: Sequence[T], key: Callable[[T], str], cursor: str | None, size: int
) -> tuple[Sequence[T], str | None]:
    """The part of `items`, which are sorted by `key`, that `cursor` asks for, and the cursor of the next.

    A cursor of another listing is as foreign as one that we did not make. What comes or goes between two pages moves
    nothing else.
    """
    after = decode_cursor(cursor)
    if after is not None:
        of, _, last = after.partition(" ")
        if of != listing:
            raise _foreign()
        items = items[bisect_right(items, last, key=key) :]
    if len(items) <= size:
        return items, None
    return items[:size], encode_cursor(f"{listing} {key(items[size - 1])}")
