"""An agent of the runtime under test, the person whom it asks, and a look at what it has left behind."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from rookery.core.actor import Actor, Mode
from rookery.core.ids import new_id
from rookery.runtimes.claude import ClaudeRuntime
from rookery.runtimes.claude_agent import ClaudeAgent
from rookery.runtimes.claude_launch import ClaudeConfig
from rookery.sessions.events import SessionEvent
from rookery.sessions.port import Asked, Launch, Permission, ToolUse
from tests.platform_fixtures import Fleet

PATIENCE_S = 60.0
PING = "mcp__rookery__ping"
# Otherwise the model is told of no tool until it has searched for it.
CONFIG = ClaudeConfig(environment={"ENABLE_TOOL_SEARCH": "0"})
Decision = Callable[[ToolUse], Awaitable[Permission]]


async def yes(use: ToolUse) -> Permission:
    return Permission(True)


class Person:
    """Decides and answers as it was told to, and remembers what it was asked."""

    def __init__(self, decision: Decision = yes, *said: str) -> None:
        self.decision = decision
        self.said: Sequence[str] | None = said or None
        self.uses: list[ToolUse] = []
        self.questions: list[Asked] = []
        self.asked = asyncio.Event()
        self.given_up = asyncio.Event()

    @property
    def tools(self) -> list[str]:
        return [use.tool for use in self.uses]

    async def may_use(self, use: ToolUse) -> Permission:
        self.uses.append(use)
        self.asked.set()
        try:
            return await self.decision(use)
        except asyncio.CancelledError:
            self.given_up.set()
            raise

    async def answers(self, call_id: str, questions: Sequence[Asked]) -> Sequence[str] | None:
        self.questions += questions
        self.asked.set()
        return self.said


class Played:
    """The events of one turn."""

    def __init__(self, events: list[SessionEvent]) -> None:
        self.events = events

    @property
    def names(self) -> list[str]:
        return [event.name for event in self.events]

    def all(self, name: str) -> list[dict[str, Any]]:
        return [dict(event.data) for event in self.events if event.name == name]

    def one(self, name: str) -> dict[str, Any]:
        found = self.all(name)
        assert len(found) == 1, (name, found, self.names)
        return found[0]

    @property
    def done(self) -> dict[str, Any]:
        """The end, of which there is one, and after which nothing comes."""
        assert self.names[-1] == "done"
        return self.one("done")

    @property
    def text(self) -> str:
        return "".join(event["text"] for event in self.all("text_delta"))


class Stage:
    """Starts agents on one platform; all of them are stopped after the test."""

    def __init__(self, fleet: Fleet, folder: Path) -> None:
        self.fleet = fleet
        self.folder = folder
        # Of its own: by it is known what the agents of this test have left behind.
        self.session = new_id("ses")
        self.agents: list[ClaudeAgent] = []

    def actor(self, session: str | None = None, **binding: Any) -> Actor:
        return self.fleet.actor(session=session or self.session, **binding)

    async def agent(
        self,
        person: Person | None = None,
        mode: Mode = "ask",
        *,
        actor: Actor | None = None,
        resumed: str | None = None,
        config: ClaudeConfig = CONFIG,
        **launch: Any,
    ) -> ClaudeAgent:
        who = actor or self.actor()
        runtime = ClaudeRuntime(self.fleet.platform, config)
        told = {"session": who.session, "actor": who, "mode": mode, "cwd": str(self.folder), **launch}
        host = person or Person()
        if resumed is None:
            agent = await runtime.start(Launch(**told), host)
        else:
            agent = await runtime.resume(Launch(**told), host, resumed)
        self.agents.append(agent)
        return agent

    async def close(self) -> None:
        for agent in self.agents:
            await agent.stop()


async def turn(agent: ClaudeAgent, text: str = "go on") -> Played:
    """One turn from its message to its end."""
    async with asyncio.timeout(PATIENCE_S):
        await agent.send(text)
        return Played([event async for event in agent.events()])


def processes(session: str) -> list[int]:
    """Those that carry the mark of the session."""
    wanted = f"ROOKERY_SESSION={session}".encode()
    found: list[int] = []
    for folder in Path("/proc").iterdir():
        try:
            if folder.name.isdecimal() and wanted in (folder / "environ").read_bytes().split(b"\0"):
                found.append(int(folder.name))
        except OSError:
            continue
    return found
