"""Scripts that an agent can play: lines with `!`, or a YAML or JSON list of steps. Pure.

    !say TEXT             !write PATH TEXT     !wait SECONDS     !call TOOL {"argument": 1}
    !think TEXT           !append PATH TEXT    !spend DOLLARS    !use TOOL {"argument": 1}
    !fail TEXT            !commit MESSAGE      !task TEXT        !ask QUESTION | ONE | ANOTHER

    - say: hello
    - call: {tool: ping, arguments: {}}
    - use: {tool: Bash, input: {command: ls}}
    - ask: {question: Which one?, options: [this, that]}

`call` is a tool of the platform, `use` one that the agent would have brought along: it is asked for and does nothing.
A call that is refused is said, and the script goes on; with `must: true` it ends there. `\\n` in the TEXT of a line is
a new line. In a file of the owner's (see `runtimes.scripts_folder`) a list may have these as well:

    - run: python -m unittest                       in the session's folder; ends the script unless it succeeds
    - until: go                                     waits for a file of that name beside the scripts
    - each: {of: $(payload.files), as: file, do: [{call: {tool: ping}}]}
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

LONGEST_YAML = 100_000
TEXT_OF: Mapping[str, str] = {
    "say": "text",
    "think": "text",
    "fail": "text",
    "wait": "seconds",
    "write": "path",
    "append": "path",
    "commit": "message",
    "spend": "dollars",
    "call": "tool",
    "use": "tool",
    "ask": "question",
    "task": "text",
    "run": "command",
    "until": "name",
    "each": "of",
}
"""The words, and what a text after one stands for."""


class BadScript(ValueError):
    """A script that cannot be played on."""


@dataclass(frozen=True, slots=True)
class Step:
    """One thing to do. What it is about is looked at when its turn has come, as a model's words would be."""

    word: str
    given: Mapping[str, Any]

    def text(self, name: str) -> str:
        return str(self.given.get(name, ""))

    def amount(self, name: str) -> float:
        """A number that a clock and a purse can take: a wait of NaN would be the end of the event loop."""
        text = self.text(name)
        number = float(text)
        if not (math.isfinite(number) and number >= 0):
            raise BadScript(f"{text} is no number from 0 on")
        return number

    def texts(self, name: str) -> list[str]:
        given: Any = self.given.get(name)
        return [str(each) for each in cast("list[Any]", given)] if isinstance(given, list) else []

    def object(self, name: str) -> dict[str, Any]:
        """A JSON object, as such or as its text."""
        given: Any = self.given.get(name) or {}
        if isinstance(given, str):
            try:
                given = json.loads(given)
            except ValueError:
                given = None
        if not isinstance(given, dict):
            raise BadScript(f"!{self.word} {self.text('tool')}: the arguments are no JSON object")
        return cast("dict[str, Any]", given)


def read_script(prompt: str) -> list[Step]:
    """The steps in a prompt; none if there is no script in it."""
    lines = [line[1:].rstrip("\r") for line in prompt.split("\n") if line.startswith("!")]
    return [_of_line(line) for line in lines] if lines else _of_list(prompt)


def read_file(text: str) -> list[Step]:
    """The steps of a file, which is a script and nothing else; none if it is empty. BadScript if it is none."""
    if text.startswith("!"):
        return read_script(text)
    import yaml as untyped

    yaml: Any = untyped
    try:
        found: Any = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise BadScript(f"no YAML: {error}") from None
    steps = steps_of(found)
    if not steps and found is not None and found != []:
        raise BadScript("no list of steps, each with one word")
    return steps


def _of_line(line: str) -> Step:
    word, _, rest = line.partition(" ")
    if word in ("write", "append"):
        path, _, text = rest.partition(" ")
        return Step(word, {"path": path, "text": text.replace("\\n", "\n")})
    if word in ("call", "use"):
        tool, _, given = rest.partition(" ")
        return Step(word, {"tool": tool, ("arguments" if word == "call" else "input"): given})
    if word == "ask":
        question, *options = (part.strip() for part in rest.split("|"))
        return Step(word, {"question": question, "options": options})
    return Step(word, {TEXT_OF.get(word, "text"): rest})


def _of_list(prompt: str) -> list[Step]:
    text = prompt.strip()
    if len(text) > LONGEST_YAML or not text.startswith(("[", "- ")):
        return []
    import yaml as untyped

    yaml: Any = untyped
    try:
        found: Any = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError):
        return []
    return steps_of(found)


def steps_of(found: Any) -> list[Step]:
    """The steps of a list; none if it is no list of steps."""
    items: list[Any] = cast("list[Any]", found) if isinstance(found, list) else []
    if not items or not all(isinstance(item, dict) and len(cast("dict[Any, Any]", item)) == 1 for item in items):
        return []
    return [_of_item(*next(iter(item.items()))) for item in items]


def _of_item(word: Any, value: Any) -> Step:
    if isinstance(value, dict):
        return Step(str(word), cast("dict[str, Any]", value))
    return Step(str(word), {TEXT_OF.get(str(word), "text"): "" if value is None else value})
