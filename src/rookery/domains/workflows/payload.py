"""What may go into a run from outside: JSON that both databases can keep, and not too much of it."""

import json
import math
from typing import Any, cast

from rookery.core.admission import storable
from rookery.core.errors import InvalidParams

Json = dict[str, Any]
MAX_LEVELS = 50
MAX_BITS = 4_096
"""The largest number. Python refuses to write those of more than some thousand digits."""
MAX_TEXT = 100_000
"""What an agent says at most reaches the nodes behind it, in characters."""


def refuse_unfit(value: Any, what: str, limit: int) -> None:
    """Raise InvalidParams unless `value` is JSON that fits, of at most `limit` bytes."""
    if not _fits(value):
        raise InvalidParams(
            f"{what}: must be JSON of at most {MAX_LEVELS} levels, without NaN or giant numbers", hint="make it simpler"
        )
    size = len(json.dumps(value, ensure_ascii=False).encode())
    if size > limit:
        raise InvalidParams(f"{what}: has {size} bytes, more than {limit}", hint="pass a reference instead")


def read_object(body: bytes) -> Json | None:
    """The JSON object in `body`, {} if it is empty; None if it is anything else, or nothing that fits."""
    if not body.strip():
        return {}
    try:
        value: Any = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return cast(Json, value) if isinstance(value, dict) and _fits(value) else None


def _fits(value: Any) -> bool:
    """Whether both databases can keep it, and whether nothing that walks through it will get lost."""
    rest: list[tuple[int, Any]] = [(1, value)]
    while rest:
        level, each = rest.pop()
        inner: list[Any] = []
        if isinstance(each, dict):
            members = cast("dict[str, Any]", each)
            inner = [*members, *members.values()]
        elif isinstance(each, list):
            inner = cast("list[Any]", each)
        elif not _plain(each):
            return False
        if inner and level > MAX_LEVELS:
            return False
        rest += [(level + 1, one) for one in inner]
    return True


def _plain(value: Any) -> bool:
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, int):
        return value.bit_length() <= MAX_BITS
    return not isinstance(value, float) or math.isfinite(value)


def fit_text(text: str) -> str:
    """What an agent said, as a database can keep it, and its end left off if it is too long."""
    return text[:MAX_TEXT].replace("\0", "").encode("utf-8", "replace").decode()
