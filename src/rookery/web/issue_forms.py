"""What the forms of an issue's page bring back: only what somebody has changed there. Pure."""

from collections.abc import Mapping
from typing import Any

from rookery.core.errors import ValidationFailed

_TEXTS = ("title", "description", "size", "phase")
_LISTS = ("labels", "depends_on")


def edited(given: Mapping[str, str]) -> dict[str, Any]:
    """The fields whose value is another than the form showed, as edit_issue takes them.

    What others have changed meanwhile stays, unless the same field was changed here too.
    """
    new = {name: value for name, value in given.items() if f"was_{name}" in given and _same(value) != _was(given, name)}
    fields: dict[str, Any] = {name: new[name] for name in _TEXTS if new.get(name)}
    if "title" in new and not new["title"]:
        raise ValidationFailed("an issue needs a title", hint="say what is to be done")
    if "description" in new:
        fields["description"] = new["description"]
    if "priority" in new:
        fields["priority"] = _priority(new["priority"])
    return fields | {name: listed(new[name]) for name in _LISTS if name in new}


def listed(text: str) -> list[str]:
    """The parts of a text between commas or at ends of lines, without empty ones."""
    return [part for piece in text.replace("\n", ",").split(",") if (part := piece.strip())]


def _was(given: Mapping[str, str], name: str) -> str:
    return _same(given[f"was_{name}"])


def _same(text: str) -> str:
    """Browsers send ends of lines of their own."""
    return text.replace("\r\n", "\n").strip()


def _priority(text: str) -> int:
    if text not in ("1", "2", "3", "4"):
        raise ValidationFailed("a priority is 1, 2, 3 or 4", hint="1 is urgent, 4 is low")
    return int(text)
