"""What a person reads who is to approve a call. Written by us, from the exact input, without its secrets."""

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any, cast
from urllib.parse import urlsplit

from rookery.core.context import Call
from rookery.core.errors import ValidationFailed
from rookery.core.tool import ToolInput

MAX_SHOWN = 200_000
"""Nobody reads more; what nobody can read nobody can approve."""
HIDDEN = "(hidden)"
_SECRET = re.compile(r"pass(word|wd|phrase)?$|secret|token|api_?key|authorization|credential|private_?key|cookie", re.I)
_PLAIN = frozenset({"repo", "chat_id", "to", "from", "host", "server", "user", "user_id", "login", "security", "port"})
"""Parts of a hidden setting that say where something goes, and open nothing."""


def canonical(args: ToolInput) -> str:
    """The input as one text, the same for the same call. What was left out is not what was given as null."""
    given = args.model_dump(mode="json", exclude_unset=True)
    return json.dumps(given, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def digest_of_call(call: Call, args: ToolInput) -> str:
    """SHA-256 of what is to be done, and where: the tool, its canonical input, the project and the issue."""
    actor = call.actor
    place = json.dumps([call.tool.name, actor.project, actor.issue, actor.profile])
    return hashlib.sha256(f"{place}\n{canonical(args)}".encode(errors="surrogatepass")).hexdigest()


def question(call: Call) -> str:
    """What is asked, in one line."""
    who = call.actor.agent_name or call.actor.subject
    return printable(f"May {who} run {call.tool.name} ({call.tool.tier})?").replace("\n", " ")


def card(call: Call, args: ToolInput, digest: str) -> str:
    """What is to be run, on what, and by whom: all of it. Who cannot be shown everything is not asked."""
    actor, tool = call.actor, call.tool
    given = redacted(tool.input, args.model_dump(mode="json", exclude_unset=True))
    shown = json.dumps(given, ensure_ascii=False, indent=1)
    if len(shown) > MAX_SHOWN:
        raise ValidationFailed(
            f"{tool.name} needs a person's approval, and nobody reads {len(shown)} characters",
            hint=f"keep its input below {MAX_SHOWN}",
            layer="gate",
        )
    place = [("project", actor.project_slug), ("issue", actor.issue_identifier), ("profile", actor.profile)]
    lines = [
        f"{tool.title}: {tool.description.strip().splitlines()[0]}",
        *(f"{name}: {value}" for name, value in place if value),
        f"input (sha256 {digest[:12]}):",
        shown,
    ]
    return printable("\n".join(lines))


def printable(text: str) -> str:
    """The text with whatever would not be seen, or would be seen elsewhere, spelled out."""
    if text.isprintable():
        return text
    return "".join(each if each == "\n" or each.isprintable() else f"\\u{ord(each):04x}" for each in text)


def redacted(model: type[ToolInput], values: Mapping[str, Any]) -> dict[str, Any]:
    """The values without secrets. Only the tool says what is one: an agent could hide what it does behind a name."""
    return {name: _masked(name, value, model.secrets) for name, value in values.items()}


def _masked(name: str, value: Any, secrets: frozenset[str]) -> Any:
    if name in secrets and isinstance(value, dict):
        # Where something goes is what a person has to see.
        return {key: _place(str(key), part) for key, part in cast("dict[Any, Any]", value).items()}
    return HIDDEN if name in secrets or (isinstance(value, str) and _SECRET.search(name)) else value


def _place(name: str, value: Any) -> Any:
    if name in _PLAIN:
        return value
    parts = urlsplit(value) if isinstance(value, str) and "://" in value else None
    return HIDDEN if parts is None or not parts.hostname else f"{parts.scheme}://{parts.hostname}/{HIDDEN}"
