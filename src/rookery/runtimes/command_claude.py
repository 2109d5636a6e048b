"""Claude Code from its command line. It asks on its output whether it may use a tool, and is answered on its input."""

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any

from rookery.runtimes.claude_launch import ClaudeConfig, command_line, write_files
from rookery.runtimes.command_claude_reading import ClaudeReader
from rookery.runtimes.command_client import Invocation, Turn
from rookery.runtimes.command_reading import Json, Wanted, rows, table, text
from rookery.sessions.port import Asked, Choice, Host

QUESTION = "AskUserQuestion"
NOBODY = "Nobody will answer: decide without asking, or stop and say what you would have to know."
_SWITCHES = {
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_TELEMETRY": "1",
    "DISABLE_ERROR_REPORTING": "1",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    # A turn that is over has nothing going on any more.
    "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1",
}
log = logging.getLogger("rookery.command")


class ClaudeCode:
    """Every tool that is not free in its strictest mode is asked for, so that a change of mode counts at once."""

    name = "claude-cli"
    title = "Claude Code"
    program = "claude"
    install = "npm install -g @anthropic-ai/claude-code"
    variables = (
        "ANTHROPIC_", "CLAUDE_CONFIG_DIR", "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CODE_USE_", "CLAUDE_CODE_MAX_",
        "ENABLE_TOOL_SEARCH",
    )  # fmt: skip

    def invocation(self, turn: Turn) -> Invocation:
        write_files(turn.folder, turn.launch, turn.servers)
        launch = replace(turn.launch, mode="ask")
        first, *rest = command_line(self.program, ClaudeConfig(), launch, turn.folder, (), turn.native_id)
        # What the message says is for the model alone: no command in it is run.
        message = {"type": "user", "message": {"role": "user", "content": turn.prompt}, "client_composed": True}
        return Invocation(
            words=[first, "-p", *rest],
            input=json.dumps(message).encode() + b"\n",
            environment=_SWITCHES,
            asks=True,
        )

    def reader(self, turn: Turn) -> ClaudeReader:
        return ClaudeReader(list(turn.servers), turn.native_id)

    async def reply(self, wanted: Wanted, host: Host, allowed: Sequence[str]) -> bytes:
        try:
            answer = await _decided(wanted, host, allowed)
        except Exception:
            log.exception("nobody could be asked about %s", wanted.use.tool)
            answer = _no("The server failed to ask; the tool may not be used now.")
        told = {"subtype": "success", "request_id": wanted.request, "response": answer}
        return json.dumps({"type": "control_response", "response": told}).encode() + b"\n"


async def _decided(wanted: Wanted, host: Host, allowed: Sequence[str]) -> Json:
    use = wanted.use
    if use.tool == QUESTION:
        asked = [_asked(table(each)) for each in rows(use.input.get("questions"))]
        answers = await host.answers(use.call_id, asked)
        if answers is None:
            return _no(NOBODY)
        given = {each.question: answer for each, answer in zip(asked, answers, strict=False)}
        return _yes({**use.input, "answers": given})
    if any(fnmatchcase(use.tool, pattern) for pattern in allowed):
        return _yes(use.input)
    permission = await host.may_use(use)
    return _yes(use.input) if permission.allow else _no(permission.reason or f"{use.tool} may not be used.")


def _yes(given: Mapping[str, Any]) -> Json:
    return {"behavior": "allow", "updatedInput": dict(given)}


def _no(reason: str) -> Json:
    return {"behavior": "deny", "message": reason}


def _asked(question: Json) -> Asked:
    options = [table(each) for each in rows(question.get("options"))]
    return Asked(
        text(question.get("question")),
        text(question.get("header")),
        [Choice(text(each.get("label")), text(each.get("description"))) for each in options],
        question.get("multiSelect") is True,
    )
