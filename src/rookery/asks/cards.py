"""What a person reads who is to approve a call. Written by us, from the exact input, without its secrets."""

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any, cast

from rookery.core.actor import Actor
from rookery.core.context import Call
from rookery.core.tool import ToolInput

MAX_SHOWN = 12_000
HIDDEN = "(hidden)"
_SECRET = re.compile(r"pass(word|wd|phrase)?$|secret|token|api_?key|authorization|credential|private_?key|cookie", re.I)


def canonical(args: ToolInput) -> str:
    """The input as one text, the same for the same call however it was spelled."""
    return json.dumps(args.model_dump(mode="json"), sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def digest_of_call(call: Call, args: ToolInput) -> str:
    """SHA-256 of what is to be done, and where: the tool, its canonical input, the project and the issue."""
    actor = call.actor
    place = json.dumps([call.tool.name, actor.project, actor.issue, actor.profile])
    return hashlib.sha256(f"{place}\n{canonical(args)}".encode(errors="surrogatepass")).hexdigest()


def question(call: Call) -> str:
    """What is asked, in one line."""
    return f"May {who(call.actor)} run {call.tool.name} ({call.tool.tier})?"


def who(actor: Actor) -> str:
    return actor.agent_name or actor.subject


def card(call: Call, args: ToolInput, digest: str) -> str:
    """What is to be run, on what, and by whom."""
    actor, tool = call.actor, call.tool
    given = redacted(tool.input, args.model_dump(mode="json", exclude_unset=True))
    shown = json.dumps(given, ensure_ascii=False, indent=1)
    if len(shown) > MAX_SHOWN:
        shown = f"{shown[:MAX_SHOWN]}\n… {len(shown) - MAX_SHOWN} characters more"
    place = [("project", actor.project_slug), ("issue", actor.issue_identifier), ("profile", actor.profile)]
    lines = [
        f"{tool.title}: {tool.description.strip().splitlines()[0]}",
        *(f"{name}: {value}" for name, value in place if value),
        f"input (sha256 {digest[:12]}):",
        shown,
    ]
    return "\n".join(lines)


def redacted(model: type[ToolInput], values: Mapping[str, Any]) -> dict[str, Any]:
    """The values without those that the tool calls secret, and without what is named like a secret at any depth."""
    return {name: _mask(value) if name in model.secrets else _clean(name, value) for name, value in values.items()}


def _clean(name: str, value: Any) -> Any:
    if _SECRET.search(name) and isinstance(value, str) and value:
        return HIDDEN
    if isinstance(value, dict):
        return {key: _clean(str(key), member) for key, member in cast("dict[Any, Any]", value).items()}
    if isinstance(value, list):
        return [_clean(name, member) for member in cast("list[Any]", value)]
    return value


def _mask(value: Any) -> Any:
    """Which parts there are, but not what is in them."""
    return dict.fromkeys(cast("dict[str, Any]", value), HIDDEN) if isinstance(value, dict) else HIDDEN
