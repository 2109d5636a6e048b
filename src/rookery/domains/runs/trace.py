"""The events of a run as the steps that they are: what was said, which tools were called and for how long. Pure."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, NamedTuple, cast

from rookery.sessions.foreign_tools import OUR_PREFIX

StepKind = Literal[
    "input", "thinking", "text", "tool", "ask", "status", "tasks", "session", "system", "error", "limit", "result"
]
TITLE = 200
_FLOWING: Mapping[tuple[str, str | None], StepKind] = {
    ("assistant", "text"): "text",
    ("assistant", "thinking"): "thinking",
}
_SIMPLE: Mapping[tuple[str, str | None], StepKind] = {
    ("system", "input"): "input",
    ("system", "status"): "status",
    ("system", "init"): "session",
    ("system", "error"): "error",
    ("system", "other"): "system",
    ("rate_limit_event", None): "limit",
    ("result", None): "result",
}
_SESSION_FACTS = (("state", ""), ("model", ""), ("mode", "mode "), ("cost_usd", "$"), ("context_tokens", "context "))


class Happening(NamedTuple):
    """One event: `payload` is what is known of it, which may be less than everything."""

    number: int
    type: str
    subtype: str | None
    payload: Mapping[str, Any]
    at_ms: int


@dataclass(slots=True)
class Step:
    """One thing that took place, from its first event to its last. `end_ms` is None while it goes on.

    `result` is the number of the event that ended it, `status` the last line that a tool said of itself, `outcome` is
    ok, failed, or how an ask was decided. `events` are the numbers of all its events.
    """

    number: int
    kind: StepKind
    title: str
    at_ms: int
    end_ms: int | None
    last: int
    depth: int = 0
    tool: str = ""
    call_id: str = ""
    result: int | None = None
    outcome: str = ""
    status: str = ""
    statuses: int = 0


@dataclass(frozen=True, slots=True)
class ToolUse:
    """How often a tool was called in a run, how often that failed, and the time of all calls that have ended."""

    tool: str
    calls: int
    failed: int
    took_ms: int


def steps_of(events: Iterable[Happening], *, ended_ms: int | None = None) -> list[Step]:
    """The steps in the order in which they began. `ended_ms` is the end of a run: nothing goes on after it."""
    tracing = _Tracing()
    for event in events:
        tracing.add(event)
    if ended_ms is not None:
        for step in tracing.steps:
            step.end_ms = max(step.at_ms, ended_ms) if step.end_ms is None else step.end_ms
    return tracing.steps


def tools_used(steps: Iterable[Step]) -> list[ToolUse]:
    """The tools of these steps, those called most first."""
    calls, failed, took = Counter[str](), Counter[str](), Counter[str]()
    for step in steps:
        if step.kind == "tool":
            calls[step.tool] += 1
            failed[step.tool] += step.outcome == "failed"
            took[step.tool] += (step.end_ms or step.at_ms) - step.at_ms
    return [ToolUse(tool, count, failed[tool], took[tool]) for tool, count in calls.most_common()]


def shown(step: Step) -> dict[str, Any]:
    """The step as plain values, its texts cut to one line."""
    return asdict(replace(step, title=first_words(step.title), status=first_words(step.status)))


def first_words(text: str) -> str:
    """The beginning of a text, on one line."""
    line = " ".join(text[: 4 * TITLE].split())
    return line if len(line) <= TITLE else f"{line[:TITLE]}…"


class _Tracing:
    def __init__(self) -> None:
        self.steps: list[Step] = []
        self._calls: dict[str, Step] = {}
        self._asks: dict[str, Step] = {}

    def add(self, event: Happening) -> None:
        kind = (event.type, event.subtype)
        if kind in _FLOWING:
            self._flow(event, _FLOWING[kind])
        elif kind == ("assistant", "tool_use"):
            self._called(event)
        elif kind == ("user", "tool_result"):
            self._answered(event)
        elif kind == ("system", "ask"):
            self._asked(event)
        elif kind == ("system", "status") and self._belongs(event):
            return
        else:
            self._simple(event, _SIMPLE.get(kind, "system"))

    def _new(self, event: Happening, kind: StepKind, title: str, *, open_ended: bool = False) -> Step:
        end_ms = None if open_ended else event.at_ms
        self.steps.append(Step(event.number, kind, title, event.at_ms, end_ms, event.number))
        return self.steps[-1]

    def _flow(self, event: Happening, kind: StepKind) -> None:
        text = _word(event.payload, "text") or _word(event.payload, "cut")
        last = self.steps[-1] if self.steps else None
        if last is None or last.kind != kind:
            self._new(event, kind, text)
            return
        last.title += text if len(last.title) < TITLE else ""
        last.end_ms, last.last = max(last.at_ms, event.at_ms), event.number

    def _called(self, event: Happening) -> None:
        payload = event.payload
        call_id = _word(payload, "call_id") or _word(payload, "id") or f"#{event.number}"
        tool = (_word(payload, "tool") or _word(payload, "name")).removeprefix(OUR_PREFIX)
        step = self._calls.get(call_id)
        if step is None:
            step = self._calls[call_id] = self._new(event, "tool", tool, open_ended=True)
            parent = self._calls.get(_word(payload, "parent_call_id"))
            step.call_id, step.depth = call_id, 0 if parent is None else parent.depth + 1
        step.tool = tool or step.tool
        step.title = step.tool
        step.last = max(step.last, event.number)

    def _answered(self, event: Happening) -> None:
        payload = event.payload
        step = self._calls.get(_word(payload, "call_id") or _word(payload, "tool_use_id"))
        if step is None:
            step = self._new(event, "tool", _word(payload, "tool").removeprefix(OUR_PREFIX) or "result of a tool")
            step.tool = step.title
        step.end_ms, step.last, step.result = max(step.at_ms, event.at_ms), event.number, event.number
        step.outcome = "failed" if payload.get("is_error") else "ok"

    def _asked(self, event: Happening) -> None:
        payload, ask_id = event.payload, _word(event.payload, "ask_id")
        step = self._asks.get(ask_id)
        if step is None:
            step = self._new(event, "ask", _asks_for(payload), open_ended=True)
            step.call_id = _word(payload, "call_id")
            caller = self._calls.get(step.call_id)
            step.depth = 0 if caller is None else caller.depth + 1
            self._asks[ask_id or f"#{event.number}"] = step
        if _word(payload, "how"):
            step.end_ms, step.last, step.result = max(step.at_ms, event.at_ms), event.number, event.number
            step.outcome = _word(payload, "how")

    def _belongs(self, event: Happening) -> bool:
        """Whether the line is of a tool at work, which then has it."""
        if _word(event.payload, "event") == "task_update":
            self._new(event, "tasks", _tasks(event.payload))
            return True
        step = self._calls.get(_word(event.payload, "call_id")) or self._at_work(_word(event.payload, "tool"))
        if step is None:
            return False
        step.status, step.statuses = _word(event.payload, "text"), step.statuses + 1
        return True

    def _at_work(self, tool: str) -> Step | None:
        """The last call of the tool that has not ended."""
        name = tool.removeprefix(OUR_PREFIX)
        return next(
            (each for each in reversed(self._calls.values()) if each.tool == name and each.end_ms is None), None
        )

    def _simple(self, event: Happening, kind: StepKind) -> None:
        step = self._new(event, kind, _title(kind, event.payload))
        if kind == "error" or (kind == "result" and _word(event.payload, "reason") not in ("", "completed")):
            step.outcome = "failed"
        if kind == "result":
            # With the end of a turn everything in it is over, whether it was told so or not.
            for each in self.steps:
                each.end_ms = max(each.at_ms, event.at_ms) if each.end_ms is None else each.end_ms


def _title(kind: StepKind, payload: Mapping[str, Any]) -> str:
    if kind == "session":
        facts = [f"{before}{payload[name]}" for name, before in _SESSION_FACTS if payload.get(name) not in (None, "")]
        return ", ".join(facts) or "session"
    if kind == "result":
        reason, words = _word(payload, "reason"), _word(payload, "error") or _word(payload, "output")
        return f"{reason or 'ended'}: {words}" if words else reason or "ended"
    said: Sequence[str] = [_word(payload, name) for name in ("text", "message", "line", "cut")]
    return next((words for words in said if words), kind)


def _asks_for(payload: Mapping[str, Any]) -> str:
    questions = _objects(payload, "questions")
    if questions:
        return _word(questions[0], "question") or "a question"
    return _word(payload, "title") or _word(payload, "tool").removeprefix(OUR_PREFIX) or "a decision"


def _tasks(payload: Mapping[str, Any]) -> str:
    tasks = _objects(payload, "tasks")
    done = [each for each in tasks if each.get("status") in ("completed", "done")]
    doing = [_word(each, "text") for each in tasks if each.get("status") == "in_progress"]
    return f"{len(done)} of {len(tasks)} tasks done{': ' if doing else ''}{', '.join(doing[:3])}"


def _objects(payload: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    value: Any = payload.get(name)
    return [each for each in cast("list[Any]", value) if isinstance(each, dict)] if isinstance(value, list) else []


def _word(payload: Mapping[str, Any], name: str) -> str:
    value = payload.get(name)
    return value if isinstance(value, str) else ""
