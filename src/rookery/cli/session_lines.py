"""What happens in a session, as a person reads it in a terminal: text as it comes, everything else line by line."""

import json
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import click

from rookery.cli.show import cell

if TYPE_CHECKING:
    from rookery.sessions.writing import Kept

SHORT = 200
RESULT_LINES = 6
SHORT_ID = 8
ALWAYS = "approve for 30 days"
"""The longest that somebody can agree in advance."""
_WORDS = {"y": "approve", "a": ALWAYS, "always": ALWAYS, "n": "deny", "l": "later"}
_MARKS = {"completed": "✓", "pending": "·", "in_progress": "→"}


def plain(text: str) -> str:
    """The text without what a terminal would take for a command; lines stay lines."""
    return "".join(letter if letter in "\n\t" or letter.isprintable() else "?" for letter in text)


def decision(typed: str) -> str:
    """What was typed at an approval, in the words of `rookery answer`: y, a, n and l are short for something."""
    word, colon, why = typed.partition(":")
    return _WORDS.get(typed.strip().lower(), f"deny:{why}" if colon and word.strip().lower() == "n" else typed)


class Lines:
    """Writes events. `write` takes text as it is; without `styled` no colours are used."""

    def __init__(self, write: Callable[[str], None], *, styled: bool) -> None:
        self._write = write
        self._styled = styled
        self._flowing: str | None = None
        self._status: dict[str, Any] = {}

    def tell(self, event: "Kept") -> None:
        """Write one event; what says nothing to a person is left out."""
        data = event.data
        match event.name:
            case "text_delta":
                self._flow("text", plain(str(data.get("text", ""))))
            case "thinking_delta":
                self._flow("thinking", plain(str(data.get("text", ""))), dim=True)
            case "turn_input":
                self.line(f"\n> {plain(str(data.get('text', '')))}", bold=True)
            case "tool_call_end":
                self.line(f"* {cell(data.get('tool'))} {_brief(data.get('input'))}", fg="cyan")
            case "tool_result":
                self._result(data)
            case "tool_status":
                self.line(f"  … {cell(data.get('text'))}", dim=True)
            case "approval_required" | "question_prompt":
                for line in asked(event):
                    self.line(line, fg="yellow")
            case "interaction_resolved":
                self.line(f"  {cell(data.get('how'))}{_because(data.get('reason'))}", fg="yellow")
            case "session_status":
                self._tell_status(data)
            case "task_update":
                for task in data.get("tasks") or ():
                    self.line(f"  {_MARKS.get(str(task.get('status')), '·')} {cell(task.get('text'))}", dim=True)
            case "system":
                self.line(f"  {cell(data.get('text') or data.get('line'))}", dim=True)
            case "error":
                self.line(f"! {cell(data.get('message'))}", fg="red")
            case "done":
                self._done(data)
            case _:
                return

    def line(self, text: str, **style: Any) -> None:
        """Write one line, below whatever was being said."""
        self.end_text()
        self._write(f"{self._as(text, style)}\n")

    def end_text(self) -> None:
        """End the line of what was being said."""
        if self._flowing is not None:
            self._write("\n")
            self._flowing = None

    def _flow(self, kind: str, text: str, **style: Any) -> None:
        if self._flowing not in (None, kind):
            self.end_text()
        self._flowing = kind
        self._write(self._as(text, style))

    def _as(self, text: str, style: Mapping[str, Any]) -> str:
        return click.style(text, **style) if self._styled and style else text

    def _result(self, data: Mapping[str, Any]) -> None:
        lines = plain(str(data.get("text", ""))).strip().split("\n")
        shown = [line[:SHORT] for line in lines[:RESULT_LINES]]
        more = [f"… {len(lines) - RESULT_LINES} more lines"] if len(lines) > RESULT_LINES else []
        for line in [*shown, *more]:
            self.line(f"  {line}", **({"fg": "red"} if data.get("is_error") else {"dim": True}))

    def _tell_status(self, data: Mapping[str, Any]) -> None:
        news = {name: value for name, value in data.items() if value is not None and self._status.get(name) != value}
        self._status |= news
        said = [f"{name} {cell(news[name])}" for name in ("model", "mode") if name in news]
        for server in news.get("servers") or ():
            if server.get("status") not in (None, "connected", "pending"):
                said.append(f"server {cell(server.get('name'))}: {cell(server.get('error') or server.get('status'))}")
        if said:
            self.line(f"  [{', '.join(said)}]", dim=True)

    def _done(self, data: Mapping[str, Any]) -> None:
        cost = data.get("cost_usd")
        used = [f"${cost:.4f}"] if isinstance(cost, int | float) and cost else []
        tokens = sum(int(data.get(name) or 0) for name in ("input_tokens", "output_tokens"))
        used += [f"{tokens} tokens"] if tokens else []
        reason = cell(data.get("reason"))
        ended = f"({', '.join([reason, *used])})"
        self.line(
            f"{ended}{_because(data.get('error'))}", **({"dim": True} if reason == "completed" else {"fg": "red"})
        )


def asked(event: "Kept") -> Iterable[str]:
    """What is asked, whole: nobody should agree to what they have not seen."""
    data = event.data
    short = cell(data.get("ask_id"))[:SHORT_ID]
    if event.name == "approval_required":
        yield f"? {cell(data.get('title') or data.get('tool'))}{_because(data.get('reason'))}"
        yield f"  {cell(data.get('tool'))}"
        for line in json.dumps(data.get("input"), indent=1, ensure_ascii=False).split("\n"):
            yield f"  {plain(line)}"
        yield f"  ask {short}: y approve, a always (30 days), n deny, n: why, l later"
        return
    for question in data.get("questions") or ():
        header = f"{cell(question['header'])}: " if question.get("header") else ""
        yield f"? {header}{plain(str(question.get('question', '')))}"
        for number, option in enumerate(question.get("options") or (), 1):
            about = f" - {cell(option['description'])}" if option.get("description") else ""
            yield f"  {number}. {cell(option.get('label'))}{about}"
        several = ", or several with commas between them" if question.get("multi_select") else ""
        yield f"  ask {short}: a number or your own words{several}"


def _brief(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False) if value else ""
    return cell(text if len(text) <= SHORT else f"{text[: SHORT - 1]}…")


def _because(reason: Any) -> str:
    return f": {cell(reason)}" if reason else ""
