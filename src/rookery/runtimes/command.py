"""Agents that client programs run: Claude Code, Codex, Gemini CLI, opencode, or any command line."""

import os
import shutil
from collections.abc import Mapping

from rookery.runtimes.command_agent import CommandAgent
from rookery.runtimes.command_claude import ClaudeCode
from rookery.runtimes.command_client import Client
from rookery.runtimes.command_codex import Codex
from rookery.runtimes.command_gemini import GeminiCli
from rookery.runtimes.command_opencode import Opencode
from rookery.runtimes.command_own import OwnCommand
from rookery.sessions.port import Host, Launch

CLIENTS: Mapping[str, type[ClaudeCode | Codex | GeminiCli | Opencode]] = {
    each.name: each for each in (ClaudeCode, Codex, GeminiCli, Opencode)
}


class CommandRuntime:
    """Starts agents of one client. `home` is the platform's; `environ` what the client is looked for and run in."""

    def __init__(self, client: Client, home: str, environ: Mapping[str, str] | None = None) -> None:
        self._client = client
        self._home = os.path.abspath(home)
        self._environ = os.environ if environ is None else environ

    @property
    def name(self) -> str:
        return self._client.name

    @property
    def missing(self) -> str | None:
        if shutil.which(self._client.program, path=self._environ.get("PATH")) is None:
            return f"there is no {self._client.program} on this machine: {self._client.install}"
        return None

    async def start(self, launch: Launch, host: Host) -> CommandAgent:
        return CommandAgent(self._client, self._home, self._environ, launch, host)

    async def resume(self, launch: Launch, host: Host, native_id: str) -> CommandAgent:
        """Whether the client still has the session is known with the next turn, which fails with the code `lost`."""
        return CommandAgent(self._client, self._home, self._environ, launch, host, native_id)


def command_runtime(name: str, home: str, command: str = "") -> CommandRuntime:
    """The runtime of this name: claude-cli, codex, gemini, opencode, or command, which runs `command`."""
    return CommandRuntime(OwnCommand(command) if name == OwnCommand.name else CLIENTS[name](), home)
