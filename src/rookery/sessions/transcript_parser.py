"""The conversation in the lines of a transcript of Claude Code: messages, calls with their results, tasks. Pure."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, cast

from rookery.sessions.transcript_tasks import Tasks

Json = dict[str, Any]
Kind = Literal["text", "command", "compaction"]
CONTINUED = "This session is being continued"
INTERRUPTED = "[Request interrupted by user"
NOTIFICATION = "<task-notification>"
COMMANDS = ("<command-name>", "<command-message>")
OUTPUTS = ("<local-command", "<bash-stdout>", "<bash-stderr>")
SHELL = "<bash-input>"
REMINDER, REMINDER_END = "<system-reminder>", "</system-reminder>"
_ANSWER = re.compile(r'"([^"\n]{1,2000})"="([^"]{0,10000})"')
_COLOURS = re.compile(r"\x1b\[[0-9;]{0,20}m")


@dataclass(slots=True)
class Message:
    """One message. Its parts are JSON: text, thinking, image, tool (a call with its result) or output (of a command).

    A command has what was typed as its text.
    """

    id: str
    role: Literal["user", "assistant"]
    kind: Kind = "text"
    at_ms: int | None = None
    model: str | None = None
    parts: list[Json] = field(default_factory=list[Json])

    @property
    def text(self) -> str:
        """What was said in it."""
        return "\n".join(part["text"] for part in self.parts if part["type"] == "text")


class Conversation:
    """What is said and done in lines that are added one by one, in their order."""

    def __init__(self, lines: Iterable[Json] = ()) -> None:
        self.messages: list[Message] = []
        self.late_results: list[Json] = []
        """Results of calls that stand in lines before the first that was added."""
        self.tasks = Tasks()
        self._calls: dict[str, Json] = {}
        self._command: Message | None = None
        for line in lines:
            self.add(line)

    def add(self, line: Json) -> None:
        """Take one more line. What is no part of the conversation is passed over, and so is what subagents say."""
        said = line.get("message")
        if not isinstance(said, dict) or line.get("isSidechain") is True:
            return
        message = cast(Json, said)
        if line.get("type") == "assistant":
            self._command = None
            self._answered(line, message)
        elif line.get("type") == "user":
            self._heard(line, message)

    def _answered(self, line: Json, message: Json) -> None:
        spoken = text_in(message.get("id")) or text_in(line.get("uuid"))
        last = self.messages[-1] if self.messages else None
        if last is None or last.role != "assistant" or last.id != spoken:
            # Each block of an answer has a line of its own.
            last = Message(spoken, "assistant", at_ms=moment_of(line), model=model_of(message))
            self.messages.append(last)
        for block in blocks_of(message):
            last.parts += self._spoken(block)
        if not last.parts:
            self.messages.pop()

    def _spoken(self, block: Json) -> list[Json]:
        kind = block.get("type")
        if kind == "text" and text_in(block.get("text")).strip():
            return [{"type": "text", "text": text_in(block["text"])}]
        if kind == "thinking" and text_in(block.get("thinking")).strip():
            return [{"type": "thinking", "text": text_in(block["thinking"])}]
        call_id = text_in(block.get("id"))
        if kind != "tool_use" or call_id in self._calls:
            return []
        given = block.get("input")
        call: Json = {
            "type": "tool",
            "call_id": call_id,
            "tool": text_in(block.get("name")),
            "input": given if isinstance(given, dict) else {},
            "result": None,
            "is_error": False,
        }
        self._calls[call_id] = call
        self.tasks.called(call_id, call["tool"], call["input"])
        return [call]

    def _heard(self, line: Json, message: Json) -> None:
        blocks = blocks_of(message)
        results = [block for block in blocks if block.get("type") == "tool_result"]
        for block in results:
            self._returned(block, line.get("toolUseResult"))
        text = without_reminders("\n".join(text_in(block.get("text")) for block in blocks if block.get("text")))
        images = [{"type": "image"} for block in blocks if block.get("type") == "image"]
        if line.get("isCompactSummary") is True or text.startswith(CONTINUED):
            self._said(line, text, "compaction")
        elif text.startswith((*COMMANDS, SHELL)):
            self._command = self._said(line, typed_command(text), "command")
        elif text.startswith(OUTPUTS):
            self._printed(text)
        elif not (line.get("isMeta") is True or text.startswith(NOTIFICATION) or self._is_expanded(message, results)):
            self._said(line, text, "text", images)

    def _is_expanded(self, message: Json, results: list[Json]) -> bool:
        """Whether it is what the command before it stands for, which nobody has typed."""
        expanded = self._command is not None and not results and isinstance(message.get("content"), list)
        self._command = None
        return expanded

    def _said(self, line: Json, text: str, kind: Kind, more: Iterable[Json] = ()) -> Message | None:
        parts = [*([{"type": "text", "text": text}] if text else []), *more]
        if not parts:
            return None
        self.messages.append(Message(text_in(line.get("uuid")), "user", kind, moment_of(line), parts=parts))
        return self.messages[-1]

    def _printed(self, text: str) -> None:
        """What a command has printed belongs to it; without the command nobody asked for it."""
        printed = _COLOURS.sub("", without_tags(text)).strip()
        if self._command is not None and printed:
            self._command.parts.append({"type": "output", "text": printed})

    def _returned(self, block: Json, structured: Any) -> None:
        call_id = text_in(block.get("tool_use_id"))
        text = result_text(block.get("content"))
        result = {"result": text, "is_error": block.get("is_error") is True}
        call = self._calls.get(call_id)
        if call is None:
            self.late_results.append({"call_id": call_id, **result})
            return
        call |= result
        self.tasks.returned(call_id, text, structured)
        if call["tool"] == "AskUserQuestion":
            call["answers"] = answers_in(text, structured)


def blocks_of(message: Json) -> list[Json]:
    """The content of a message as blocks; plain text is one."""
    content: Any = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    if not isinstance(content, list):
        return []
    return [cast(Json, block) for block in cast("list[Any]", content) if isinstance(block, dict)]


def text_in(value: Any) -> str:
    return value if isinstance(value, str) else ""


def model_of(message: Json) -> str | None:
    """The model that answered. What the client says in its place has a name in brackets."""
    model = text_in(message.get("model"))
    return None if not model or model.startswith("<") else model[:100]


def moment_of(line: Json) -> int | None:
    """When the line was written, in milliseconds."""
    try:
        return int(datetime.fromisoformat(text_in(line.get("timestamp"))).timestamp() * 1000)
    except (ValueError, OverflowError, OSError):
        return None


def without_reminders(text: str) -> str:
    """The text without what the client has put in for the model alone. One that has no end stays."""
    kept: list[str] = []
    at = 0
    while (start := text.find(REMINDER, at)) >= 0:
        end = text.find(REMINDER_END, start)
        if end < 0:
            break
        kept.append(text[at:start])
        at = end + len(REMINDER_END)
    return "".join([*kept, text[at:]]).strip()


def typed_command(text: str) -> str:
    """What was typed: `/name arguments`, or `! command` for one of the shell."""
    shell = _tagged(text, "bash-input")
    if shell:
        return f"! {shell}"
    name = _tagged(text, "command-name") or _tagged(text, "command-message")
    return f"/{name.removeprefix('/')} {_tagged(text, 'command-args')}".strip()


def _tagged(text: str, tag: str) -> str:
    inner = text.partition(f"<{tag}>")[2]
    return inner.partition(f"</{tag}>")[0].strip() if f"</{tag}>" in inner else ""


def without_tags(text: str) -> str:
    """What a command has printed, without the tags around it."""
    tags = ("local-command-stdout", "local-command-stderr", "bash-stdout", "bash-stderr")
    return "\n".join(inner for tag in tags if (inner := _tagged(text, tag)))


def result_text(content: Any) -> str:
    """The result of a tool as text; what is none is named."""
    if isinstance(content, str):
        return content
    found = [cast(Json, block) for block in cast("list[Any]", content)] if isinstance(content, list) else []
    return "\n".join(
        text_in(block.get("text")) if block.get("type") == "text" else f"[{text_in(block.get('type'))}]"
        for block in found
        if isinstance(cast(Any, block), dict)
    )


def answers_in(text: str, structured: Any) -> dict[str, str]:
    """What a person answered, by question: as the client kept it, or else as its text tells it."""
    kept: Any = cast("Mapping[str, Any]", structured).get("answers") if isinstance(structured, dict) else None
    if isinstance(kept, dict):
        return {str(asked): str(given) for asked, given in cast("dict[Any, Any]", kept).items()}
    return dict(_ANSWER.findall(text))
