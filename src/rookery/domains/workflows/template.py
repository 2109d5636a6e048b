"""Texts with `{{path.to.value}}` in them, filled from a node's input.

A path goes down through objects by key and through lists by number. Text is put in as it stands, null as nothing,
everything else as JSON.
"""

import json
import re
from collections.abc import Mapping
from typing import Any, Final, cast

DEFAULT_TEMPLATE = "{{prev}}"
MAX_TEMPLATE = 50_000
MAX_FILLED = 500_000
"""Templates can name one value many times, and each node the result of the last: a few would fill the memory."""
PATH = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*")
SLOT = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)
SHOWN = 60

MISSING: Final = object()
"""What `look_up` gives for a path that leads nowhere: null is a value."""


class TemplateError(ValueError):
    """The template cannot be read."""


class MissingPath(LookupError):
    """A path of the template leads nowhere in the node's input."""

    def __init__(self, path: str) -> None:
        super().__init__(f"the template asks for {path}, which the node's input does not have")
        self.path = path


class TooLong(ValueError):
    """The text would be too long."""

    def __init__(self) -> None:
        super().__init__(f"the template, filled in, is longer than {MAX_FILLED} characters")


def paths_of(template: str) -> list[str]:
    """The paths that the template asks for, in order. TemplateError says what cannot be read."""
    if len(template) > MAX_TEMPLATE:
        raise TemplateError(f"the template is longer than {MAX_TEMPLATE} characters")
    end = template.rfind("}}") + 1
    if (opened := template.find("{{", end)) >= 0:
        # Before the pattern is asked: from each beginning without an end it would look through all the rest.
        raise TemplateError(f"the template opens {{{{ without closing it: {cut(template[opened:])}")
    found = [_path(slot) for slot in cast("list[str]", SLOT.findall(template))]
    left = SLOT.sub("", template)
    if "{{" in left:
        raise TemplateError(f"the template opens {{{{ without closing it: {cut(left[left.index('{{') :])}")
    return found


def render(template: str, values: Mapping[str, Any]) -> str:
    """The template with every path filled in. MissingPath names the first one that leads nowhere.

    TooLong, before it is put together, if there is more to fill in than MAX_FILLED.
    """
    filled = 0

    def fill(slot: re.Match[str]) -> str:
        nonlocal filled
        path = _path(slot.group(1))
        value = look_up(values, path)
        if value is MISSING:
            raise MissingPath(path)
        text = as_text(value)
        filled += len(text)
        if filled > MAX_FILLED:
            raise TooLong
        return text

    return SLOT.sub(fill, template)


def look_up(values: Any, path: str) -> Any:
    """What stands at the dotted `path`, or MISSING. Only keys and positions are followed, never attributes."""
    for step in path.split("."):
        if isinstance(values, Mapping):
            values = cast("Mapping[str, Any]", values).get(step, MISSING)
        elif isinstance(values, list) and step.isdecimal() and step.isascii():
            items = cast("list[Any]", values)
            # A number of thousands of digits costs time to read, and no list is that long.
            values = items[int(step)] if len(step) < 10 and int(step) < len(items) else MISSING
        else:
            return MISSING
    return values


def as_text(value: Any) -> str:
    """A value as it is put into a text."""
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def cut(text: str) -> str:
    """The text as a message shows it: not longer than a glance takes."""
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"


def _path(slot: str) -> str:
    path = slot.strip()
    if not PATH.fullmatch(path):
        raise TemplateError(f"the template has {{{{{cut(slot)}}}}}, which is not a path such as prev.output")
    return path
