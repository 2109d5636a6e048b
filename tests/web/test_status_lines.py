"""What tools say while they work."""

from typing import Any

from rookery.web.status_lines import status_lines


def told(event: str, at_ms: int = 0, **data: Any) -> dict[str, Any]:
    return {"event": event, "data": data, "at_ms": at_ms}


def test_a_tool_at_work_has_its_last_line() -> None:
    events = [
        told("tool_call_start", 5, call_id="c1", tool="mcp__rookery__web_search"),
        told("tool_status", 6, call_id="c1", tool="mcp__rookery__web_search", text="searching"),
        told("tool_status", 7, call_id="c1", tool="mcp__rookery__web_search", text="3 results found"),
    ]
    (line,) = status_lines(events)
    assert (line.tool, line.text, line.since_ms, line.at_ms) == ("web_search", "3 results found", 5, 7)


def test_what_has_ended_has_no_line() -> None:
    started = told("tool_call_start", call_id="c1", tool="Bash")
    assert status_lines([started, told("tool_result", call_id="c1")]) == []
    assert status_lines([started, told("done", reason="interrupted")]) == []


def test_a_line_without_a_call_is_of_the_last_call_of_its_tool() -> None:
    events = [told("tool_call_start", call_id=each, tool="Bash") for each in ("c1", "c2")]
    events.append(told("tool_status", tool="Bash", text="half"))
    assert [line.text for line in status_lines(events)] == ["", "half"]
    assert status_lines([told("tool_status", tool="Bash", text="of nobody")]) == []


def test_events_as_runs_keep_them_are_read_too() -> None:
    payload = {"event": "tool_call_start", "call_id": "c1", "tool": "Bash"}
    assert [line.tool for line in status_lines([{"payload": payload, "at_ms": 1}])] == ["Bash"]
