"""What can happen in a run, and the form in which it is kept. Pure."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

from rookery.core.errors import ValidationFailed

EventType = Literal["system", "assistant", "user", "result", "rate_limit_event"]
EventSubtype = Literal[
    "init", "input", "status", "ask", "error", "other", "thinking", "text", "tool_use", "tool_result"
]

SUBTYPES: Mapping[EventType, tuple[EventSubtype, ...]] = {
    "system": ("init", "input", "status", "ask", "error", "other"),
    "assistant": ("thinking", "text", "tool_use"),
    "user": ("tool_result",),
    "result": (),
    "rate_limit_event": (),
}
"""The subtypes of each type, one of which its events have; those of a type without any have none."""

MAX_PAYLOAD = 256 * 1024
MAX_DEPTH = 64
KEPT = 64 * 1024


@dataclass(frozen=True, slots=True)
class RunEvent:
    """One thing that an agent, its tools or its program said. Without a time it happened when it is stored.

    What an agent says must not make its record unreadable: a payload of more than `MAX_PAYLOAD` bytes of JSON or nested
    deeper than `MAX_DEPTH` is stored as `{"cut": its beginning, "bytes": its length}`, half of a surrogate pair as `?`,
    NaN and Infinity as text.
    """

    type: EventType
    subtype: EventSubtype | None
    payload: Mapping[str, Any]
    at_ms: int | None = None


def check_pair(kind: EventType, subtype: EventSubtype | None) -> None:
    """Refuse a type with a subtype that it does not have, and name those that it has."""
    known = SUBTYPES.get(kind)
    if known is None:
        raise ValidationFailed(f"there is no event type {kind}", hint=f"known: {', '.join(SUBTYPES)}")
    if subtype in known or (not known and subtype is None):
        return
    has = f"a subtype: {', '.join(known)}" if known else "no subtype"
    raise ValidationFailed(f"{kind} with the subtype {subtype} is no event", hint=f"{kind} has {has}")


def stored_payload(payload: Mapping[str, Any]) -> dict[str, Any]:
    """The payload as it will be read again. One that JSON has no way to say is refused."""
    try:
        said = json.dumps(dict(payload), ensure_ascii=False).encode("utf-8", "replace")
    except (TypeError, ValueError, RecursionError) as error:
        raise ValidationFailed(f"the payload of an event is not JSON: {error}", hint="send plain values") from error
    kept = json.loads(said, parse_constant=str)
    if len(said) > MAX_PAYLOAD or _deeper_than(kept, MAX_DEPTH):
        return {"cut": said[:KEPT].decode("utf-8", "ignore"), "bytes": len(said)}
    return kept


def _deeper_than(value: Any, levels: int) -> bool:
    level = _inside(value)
    for _ in range(levels - 1):
        level = [inner for each in level if isinstance(each, dict | list) for inner in _inside(each)]
        if not level:
            return False
    return any(isinstance(each, dict | list) for each in level)


def _inside(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(cast("dict[str, Any]", value).values())
    return cast("list[Any]", value) if isinstance(value, list) else []
