"""Agents that Claude Code runs, through the Claude Agent SDK, with our tools in process."""

import asyncio
import importlib.util
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from rookery.core.errors import ConfigurationError, ServiceUnavailable
from rookery.runtimes.claude_launch import ClaudeConfig
from rookery.sessions.port import Host, Launch

if TYPE_CHECKING:
    from rookery.app import Platform
    from rookery.runtimes.claude_agent import ClaudeAgent

SDK = "claude_agent_sdk"
EXTRA = "pip install 'rookery[claude]'"


class ClaudeRuntime:
    """Starts them. Without the extra `claude` it says what is missing, and nothing of the SDK is imported."""

    name = "claude"

    def __init__(self, platform: "Platform", config: ClaudeConfig | None = None) -> None:
        self._platform = platform
        self._config = config or ClaudeConfig()

    @property
    def missing(self) -> str | None:
        if importlib.util.find_spec(SDK) is None:
            return f"the Claude Agent SDK is not installed: {EXTRA}"
        if self._program() is None:
            wanted = self._config.program or "claude"
            return f"there is no Claude Code at {wanted}: install it, or the SDK with the one it brings: {EXTRA}"
        return None

    def _program(self) -> str | None:
        if self._config.program is not None:
            return shutil.which(self._config.program)
        found = importlib.util.find_spec(SDK)
        brought = Path(found.origin).parent / "_bundled" / "claude" if found is not None and found.origin else None
        return str(brought) if brought is not None and brought.is_file() else shutil.which("claude")

    async def start(self, launch: Launch, host: Host) -> "ClaudeAgent":
        return await self._open(launch, host, None)

    async def resume(self, launch: Launch, host: Host, native_id: str) -> "ClaudeAgent":
        return await self._open(launch, host, native_id)

    async def _open(self, launch: Launch, host: Host, resumed: str | None) -> "ClaudeAgent":
        missing, program = self.missing, self._program()
        if missing is not None or program is None:
            raise ConfigurationError(missing or "there is no Claude Code", hint=EXTRA)
        from rookery.runtimes.claude_agent import ClaudeAgent

        try:
            folder = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="rookery-claude-"))
        except OSError as error:
            raise ServiceUnavailable(
                f"no folder can be made for the agent: {error.strerror}", hint="make room, or set TMPDIR"
            ) from error
        agent = ClaudeAgent(self._platform, self._config, program, folder, launch, host, resumed)
        await agent.connect()
        return agent
