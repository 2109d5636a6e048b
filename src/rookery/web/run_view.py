"""What a page says of a run: its times, what it has used, and the inside of one of its steps. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

from rookery.web.showing import as_json

Json = Mapping[str, Any]
_TEXTS = ("text_delta", "thinking_delta")
_CALLED = ("tool_call_start", "tool_call_delta", "tool_call_end")
MICROS = 1_000_000


def duration_ms(run: Json, now_ms: int) -> int | None:
    """How long the run took, or has taken until now; None if it has not begun."""
    if run["started_ms"] is None:
        return None
    return max(0, (run["ended_ms"] or now_ms) - run["started_ms"])


def extension(run: Json) -> dict[str, Any] | None:
    """Its deadline: how long it was given at first, what people's answers took, and by how much it was extended."""
    if run["deadline_ms"] is None or run["started_ms"] is None:
        return None
    waited = run["waited_ms"] or 0
    base = run["base_ms"] or 0
    more = run["deadline_ms"] - run["started_ms"] - base - waited
    return {"deadline_ms": run["deadline_ms"], "base_ms": base, "waited_ms": waited, "extended_ms": max(0, more)}


def usage(view: Json) -> list[dict[str, Any]]:
    """What each turn of the session has used, oldest first, with what had been spent by then."""
    spent = 0
    lines: list[dict[str, Any]] = []
    for at, turn in enumerate(view["turns"], 1):
        spent += turn["cost_micros"]
        lines.append({"turn": at, "run": turn, "here": turn["id"] == view["run"]["id"], "spent_micros": spent})
    return lines


def step_detail(events: Sequence[Json]) -> dict[str, Any]:
    """The parts of a step: a text, the input and the result of a tool, what it said meanwhile, what was asked.

    Events of other steps that came between are left out.
    """
    first = events[0]["payload"]
    call_id, ask_id, name = first.get("call_id"), first.get("ask_id"), first.get("event")
    own = [each for each in events if _belongs(each, first, name, call_id, ask_id)]
    payloads = [each["payload"] for each in own]
    result = next((each for each in payloads if each.get("event") == "tool_result" or "is_error" in each), None)
    return {
        "name": name or first.get("name") or f"{events[0]['type']} {events[0]['subtype'] or ''}".strip(),
        "tool": first.get("tool") or first.get("name"),
        "text": "".join(str(each.get("text") or "") for each in payloads) if name in _TEXTS else "",
        "input": _input(payloads) if name in _CALLED or first.get("event") == "approval_required" else None,
        "result": None if result is None else _result(result),
        "statuses": [(each["at_ms"], each["payload"].get("text", "")) for each in own if _says(each)],
        "plain": name not in _TEXTS and name not in _CALLED and result is None,
        "events": [(each["number"], each["at_ms"], as_json(each["payload"])) for each in own],
    }


def _belongs(event: Json, first: Json, name: Any, call_id: Any, ask_id: Any) -> bool:
    payload = event["payload"]
    if payload is first:
        return True
    if ask_id:
        return payload.get("ask_id") == ask_id
    if call_id:
        return payload.get("call_id") == call_id
    return name is not None and payload.get("event") == name


def _says(event: Json) -> bool:
    return event["payload"].get("event") == "tool_status"


def _input(payloads: Sequence[Json]) -> str:
    whole = next((each["input"] for each in payloads if "input" in each), None)
    if whole is not None:
        return as_json(whole)
    pieces = "".join(str(each.get("text") or "") for each in payloads if each.get("event") == "tool_call_delta")
    return pieces or next((str(each["cut"]) for each in payloads if "cut" in each), "")


def _result(payload: Json) -> dict[str, Any]:
    structured = payload.get("structured")
    return {
        "failed": bool(payload.get("is_error")),
        "text": str(payload.get("text") or payload.get("cut") or ""),
        "structured": None if structured is None else as_json(structured),
        "images": payload.get("images") or [],
        "bytes": payload.get("bytes"),
    }
