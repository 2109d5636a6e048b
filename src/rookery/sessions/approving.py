"""What is put to a person when an agent wants to use a tool: one of ours, or one that its runtime brought along."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from rookery.asks.approvals import Wanted
from rookery.asks.cards import MAX_SHOWN, card, digest_of_call, printable, question
from rookery.asks.store import asker_of
from rookery.core.actor import Actor
from rookery.core.admission import validate
from rookery.core.call import new_call
from rookery.core.context import SilentDoor
from rookery.core.errors import ValidationFailed
from rookery.core.registry import Registry
from rookery.core.tool import Tool
from rookery.sessions.port import ToolUse


def wanted_of_ours(actor: Actor, tool: Tool, given: dict[str, Any], follow: Mapping[str, Any]) -> Wanted:
    """The approval that the gate will look for when the call comes. InvalidParams if it could not be made at all."""
    args = validate(tool, given)
    call = new_call(actor, tool, given, SilentDoor(), None, None)
    digest = digest_of_call(call, args)
    return Wanted(
        asker=asker_of(actor),
        tool=tool.name,
        digest=digest,
        question=question(call),
        card=card(call, args, digest),
        project_id=actor.project,
        session=actor.session,
        unattended=actor.unattended,
        follow=follow,
    )


def foreign_subject(registry: Registry, tool: str) -> str:
    """What a person agrees to, once or for a while. A foreign tool that is called as one of ours is not that one."""
    return f"foreign:{tool}" if tool in registry else tool


def wanted_of_others(actor: Actor, subject: str, use: ToolUse, follow: Mapping[str, Any]) -> Wanted:
    """The same for a tool that is not ours. Nobody else asks for it, and nobody else uses the answer."""
    given = json.dumps(dict(use.input), sort_keys=True, ensure_ascii=False, default=str)
    place = json.dumps([subject, actor.project, actor.issue, actor.profile])
    digest = hashlib.sha256(f"{place}\n{given}".encode(errors="surrogatepass")).hexdigest()
    who = actor.agent_name or actor.subject
    return Wanted(
        asker=asker_of(actor),
        tool=subject,
        digest=digest,
        question=_line(f"May {who} use {use.tool}?"),
        card=_card(actor, use, digest),
        project_id=actor.project,
        session=actor.session,
        unattended=actor.unattended,
        follow=follow,
    )


def _card(actor: Actor, use: ToolUse, digest: str) -> str:
    shown = json.dumps(dict(use.input), ensure_ascii=False, indent=1, default=str)
    if len(shown) > MAX_SHOWN:
        raise ValidationFailed(
            f"{use.tool} needs a person's approval, and nobody reads {len(shown)} characters",
            hint=f"keep its input below {MAX_SHOWN}",
        )
    said = [("why", use.reason), ("project", actor.project_slug), ("issue", actor.issue_identifier)]
    lines = [
        use.title or use.tool,
        *(f"{name}: {value}" for name, value in said if value),
        f"input (sha256 {digest[:12]}):",
        shown,
    ]
    return printable("\n".join(lines))


def _line(text: str) -> str:
    return printable(text).replace("\n", " ")[:500]
