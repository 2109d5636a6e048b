"""Pages of a list: an opaque cursor that says where the next page starts."""

import base64
import binascii
import json
from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import TypeVar

from rookery.core.admission import storable
from rookery.core.errors import InvalidParams

T = TypeVar("T")


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
