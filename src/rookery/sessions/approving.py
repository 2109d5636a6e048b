"""What is put to a person when an agent wants to use a tool: one of ours, or one that its runtime brought along."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
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
from rookery.sessions.foreign_tools import EDITING, Ground, is_told_by_name
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
    """What a person is asked about. A foreign tool that is called as one of ours is not that one."""
    return f"foreign:{tool}" if tool in registry else tool


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignUse:
    """A use of a tool that is not ours, in one session. Nobody else asks for it, and nobody else uses the answer."""

    use: ToolUse
    subject: str
    session: str
    ground: Ground

    def lasting_right(self, actor: Actor) -> str:
        """What a yes for a while is a yes to; empty where nobody attends, since there it counts once."""
        if actor.unattended:
            return ""
        right = f"{self.subject} in {self.session}"
        return right if self._is_told_by_name else f"{right} (sha256 {self._digest(actor)})"

    def wanted(self, actor: Actor, follow: Mapping[str, Any]) -> Wanted:
        """How it is put to a person. ValidationFailed if nobody could read it."""
        who = actor.agent_name or actor.subject
        return Wanted(
            asker=asker_of(actor),
            tool=self.subject,
            digest=self._digest(actor),
            question=_line(f"May {who} use {self.use.tool}?"),
            card=self._card(actor),
            project_id=actor.project,
            session=self.session,
            unattended=actor.unattended,
            follow=follow,
            lasting_right=self.lasting_right(actor),
        )

    @property
    def _is_told_by_name(self) -> bool:
        return is_told_by_name(self.use.tool, self.use.input, self.ground)

    def _digest(self, actor: Actor) -> str:
        """SHA-256 of what is to be done, and where. The call's own id is no part of it: a restart gives it another."""
        given = json.dumps(dict(self.use.input), sort_keys=True, ensure_ascii=False, default=str)
        where = (actor.project, actor.issue, actor.profile, self.session, self.ground.folder)
        place = json.dumps([self.subject, *where])
        return hashlib.sha256(f"{place}\n{given}".encode(errors="surrogatepass")).hexdigest()

    def _card(self, actor: Actor) -> str:
        use = self.use
        shown = json.dumps(dict(use.input), ensure_ascii=False, indent=1, default=str)
        if len(shown) > MAX_SHOWN:
            raise ValidationFailed(
                f"{use.tool} needs a person's approval, and nobody reads {len(shown)} characters",
                hint=f"keep its input below {MAX_SHOWN}",
            )
        said = [
            ("folder", self.ground.folder),
            ("project", actor.project_slug),
            ("issue", actor.issue_identifier),
            ("why", use.reason),
        ]
        lines = [
            _line(use.title or use.tool),
            *(_line(f"{name}: {value}") for name, value in said if value),
            _line(self._covered(actor)),
            f"input (sha256 {self._digest(actor)[:12]}):",
            shown,
        ]
        return printable("\n".join(lines))

    def _covered(self, actor: Actor) -> str:
        """What a person agrees to who says for how long."""
        if actor.unattended:
            return "a yes counts once: nobody attends this session"
        tool = self.use.tool
        if not self._is_told_by_name:
            return f"a yes for a while covers: {tool} with exactly this input, in this session"
        where = "inside the folder, in this session" if tool in EDITING else "in this session"
        return f"a yes for a while covers: every use of {tool} {where}"


def _line(text: str) -> str:
    return printable(text).replace("\n", " ")[:500]
