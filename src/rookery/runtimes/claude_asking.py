"""What Claude Code asks while its agent waits: whether a tool may be used, and questions to the person."""

import logging
import os
from collections.abc import Mapping, Sequence
from typing import Any, cast

from claude_agent_sdk import PermissionResultAllow, PermissionResultDeny, ToolPermissionContext

from rookery.core.actor import Mode
from rookery.sessions.foreign_tools import outside_worktree
from rookery.sessions.port import OURS, Asked, Choice, Host, ToolUse

Json = dict[str, Any]
QUESTION = "AskUserQuestion"
_FILES = ("Edit", "Write", "MultiEdit", "NotebookEdit", "Read", "Grep", "Glob", "LS", "NotebookRead")
_NAMED = frozenset({"Bash", *_FILES, "WebFetch"})
WATCHED = "|".join((*sorted(_NAMED), "mcp__.*"))
"""What touches the machine, the web or a server: a pattern of names of tools. Names that contain one match it too."""
_OF_SERVERS = "mcp__"
NOBODY = "Nobody will answer: decide without asking, or stop and say what you would have to know."
log = logging.getLogger("rookery.claude")


class Asking:
    """Passes it on to the host of the session. Whatever goes wrong there is a refusal."""

    def __init__(self, host: Host, mode: Mode, worktree: str | None = None) -> None:
        self.mode: Mode = mode
        self._worktree = worktree
        self._host = host

    async def may_use(
        self, tool: str, given: Json, context: ToolPermissionContext
    ) -> PermissionResultAllow | PermissionResultDeny:
        """What the SDK's `can_use_tool` wants to know."""
        call_id = context.tool_use_id or ""
        try:
            if tool == QUESTION:
                return await self._answered(call_id, given)
            use = ToolUse(
                tool=tool,
                input=given,
                call_id=call_id,
                title=context.title or context.display_name or "",
                reason=context.decision_reason or context.description or "",
            )
            permission = await self._host.may_use(use)
        except Exception:
            log.exception("nobody could be asked about %s", tool)
            return PermissionResultDeny(message="The server failed to ask; the tool may not be used now.")
        if permission.allow:
            return PermissionResultAllow(updated_input=given)
        return PermissionResultDeny(message=permission.reason or f"{tool} may not be used.")

    async def _answered(self, call_id: str, given: Json) -> PermissionResultAllow | PermissionResultDeny:
        """The answers come back in the tool's own input, each under the text of its question."""
        asked = [_asked(question) for question in cast("list[Json]", given.get("questions") or [])]
        answers = await self._host.answers(call_id, asked)
        if answers is None:
            return PermissionResultDeny(message=NOBODY)
        told = {each.question: answer for each, answer in zip(asked, answers, strict=False)}
        return PermissionResultAllow(updated_input={**given, "answers": told})

    async def before_use(self, given: Any, tool_use_id: str | None, context: Any) -> Json:
        """Before each use of a tool of `WATCHED`: whether it has to be asked for, whatever Claude Code thinks of it.

        It runs commands that it takes for harmless unasked, reads and edits in its folder, and uses tools that were
        free when the session began; and it may not have heard yet that the mode is another. So the host is asked, which
        knows what is free. In the mode act our own tools need no question: they are held at the call. An edit outside
        of the worktree is refused in every mode.
        """
        tool = str(given.get("tool_name"))
        if (outside := outside_worktree(tool, given.get("tool_input") or {}, self._worktree)) is not None:
            return _decided("deny", outside)
        ours = tool.startswith(f"{_OF_SERVERS}{OURS}__")
        if self.mode == "autonomy" or (self.mode == "act" and ours):
            return {}
        if not (tool in _NAMED or tool.startswith(_OF_SERVERS)) or _is_own_output(tool, given):
            return {}
        return _decided("ask", f"the session's mode is {self.mode}")


def _decided(decision: str, reason: str) -> Json:
    said = {"hookEventName": "PreToolUse", "permissionDecision": decision, "permissionDecisionReason": reason}
    return {"hookSpecificOutput": said}


def _is_own_output(tool: str, given: Mapping[str, Any]) -> bool:
    """Whether it reads what the session's own tools have put out, which Claude Code keeps beside its transcript."""
    path, transcript = _text(given.get("tool_input"), "file_path"), given.get("transcript_path")
    if tool != "Read" or not path or not isinstance(transcript, str) or not transcript:
        return False
    kept = os.path.join(os.path.realpath(os.path.splitext(transcript)[0]), "tool-results")
    return os.path.commonpath([kept, os.path.realpath(path)]) == kept


def _text(table: Any, name: str) -> str:
    found: Any = cast("Json", table).get(name) if isinstance(table, dict) else None
    return found if isinstance(found, str) and os.path.isabs(found) else ""


def _asked(question: Mapping[str, Any]) -> Asked:
    options: Sequence[Json] = question.get("options") or ()
    return Asked(
        question=question.get("question") or "",
        header=question.get("header") or "",
        options=[Choice(option.get("label") or "", option.get("description") or "") for option in options],
        several=bool(question.get("multiSelect")),
    )
