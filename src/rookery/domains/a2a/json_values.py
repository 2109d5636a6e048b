"""How much there is in JSON that others have sent. Pure.

Protobuf takes some six microseconds for each value, however short: half a megabyte of `{}` would hold up everybody.
"""

import json
from typing import Any, cast


def has_more_values(found: Any, most: int) -> bool:
    """Whether there are more values in it, itself and what is inside others counted, than `most`."""
    count, waiting = 1, [found]
    while waiting and count <= most:
        value = waiting.pop()
        if isinstance(value, dict):
            inside = list(cast("dict[str, Any]", value).values())
        elif isinstance(value, list):
            inside = cast("list[Any]", value)
        else:
            continue
        count += len(inside)
        waiting += inside
    return count > most


def is_modest(text: bytes, most: int) -> bool:
    """Whether the text has at most so many values. What is no JSON has none, and whoever reads it will say so."""
    try:
        return not has_more_values(json.loads(text), most)
    except (ValueError, RecursionError):
        return True
