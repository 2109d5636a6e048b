"""Small real programs in place of client programs, and agents that are run by them."""

import asyncio
import os
import select
import sys
from ast import literal_eval
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rookery.core.actor import Actor
from rookery.runtimes.command import CLIENTS, CommandRuntime
from rookery.runtimes.command_agent import CommandAgent
from rookery.runtimes.command_client import Client
from rookery.runtimes.command_own import OwnCommand
from rookery.sessions.events import SessionEvent
from rookery.sessions.port import Asked, Launch, Permission, ToolUse

PATIENCE_S = 30.0
KEY = "the-key-of-the-session"
ACTOR = Actor(kind="agent", tenant="default", subject="agt-1", agent="agt-1")
FIXTURES = Path(__file__).parent / "fixtures"
ASKING = """
import json, os, subprocess, sys
entry = json.load(open(sys.argv[1]))["mcpServers"]["rookery"]
server = subprocess.Popen(
    [entry["command"], *entry["args"]], env={**os.environ, **entry["env"]}, text=True, bufsize=1,
    stdin=subprocess.PIPE, stdout=subprocess.PIPE,
)
def ask(number, method, **params):
    server.stdin.write(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}) + "\\n")
    while (answer := json.loads(server.stdout.readline())).get("id") != number: pass
    return answer["result"]
ask(1, "initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo={"name": "test", "version": "1"})
"""
"""The beginning of a program that speaks to the MCP server of its configuration: `ask` gives what that answers."""


class Person:
    """Decides about tools and answers questions, as the test says. What it was asked is kept."""

    def __init__(self, allow: bool = True, answers: Sequence[str] | None = ()) -> None:
        self.allow = allow
        self.given = answers
        self.asked: list[Any] = []

    async def may_use(self, use: ToolUse) -> Permission:
        self.asked.append(use)
        return Permission(self.allow, "" if self.allow else "the owner said no")

    async def answers(self, call_id: str, questions: Sequence[Asked]) -> Sequence[str] | None:
        self.asked.append((call_id, list(questions)))
        return self.given


class Stage:
    """A home for the platform, and a folder of programs that stands before all others on the PATH."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.bin = folder / "bin"
        self.work = folder / "work"
        for each in (self.bin, self.work):
            each.mkdir()
        self.environ = {"PATH": f"{self.bin}:/usr/bin:/bin", "HOME": str(folder), "LANG": "C.UTF-8"}
        self.agents: list[CommandAgent] = []

    def program(self, name: str, script: str) -> Path:
        """A program of this name that runs a Python script."""
        path = self.bin / name
        path.write_text(f"#!{sys.executable}\n{script}")
        path.chmod(0o755)
        return path

    def prints(self, name: str, fixture: str, before: str = "", after: str = "") -> Path:
        """One that prints what the real one was recorded with."""
        recorded = FIXTURES / f"{fixture}.jsonl"
        return self.program(name, f"{before}\nprint(open({str(recorded)!r}).read(), end='', flush=True)\n{after}")

    @property
    def notes_words(self) -> str:
        """The beginning of a script that notes with which words it was started: see `words`."""
        return f"import sys\nopen({str(self.work / 'words')!r}, 'a').write(repr(sys.argv) + '\\n')"

    @property
    def words(self) -> list[list[str]]:
        return [literal_eval(line) for line in (self.work / "words").read_text().splitlines()]

    def runtime(self, client: str | Client) -> CommandRuntime:
        chosen = CLIENTS[client]() if isinstance(client, str) else client
        return CommandRuntime(chosen, str(self.home), self.environ)

    def launch(self, **more: Any) -> Launch:
        given = {"session": "ses-1", "actor": ACTOR, "mode": "ask", "cwd": str(self.work), "pass_key": KEY, **more}
        return Launch(**given)

    async def agent(self, client: str | Client, host: Any = None, resumed: str | None = None, **more: Any) -> Any:
        """An agent of this client; the test's end is its end."""
        runtime, launch = self.runtime(client), self.launch(**more)
        host = host or Person()
        agent = await (runtime.resume(launch, host, resumed) if resumed else runtime.start(launch, host))
        self.agents.append(agent)
        return agent

    async def own(self, script: str, *words: str, **more: Any) -> Any:
        """An agent of an own command line: a Python script, and further words."""
        program = self.program("own", script)
        return await self.agent(OwnCommand(" ".join([str(program), *words])), **more)

    async def close(self) -> None:
        for agent in self.agents:
            await agent.stop()

    @property
    def left(self) -> list[str]:
        """What is left in the folder where turns have their files."""
        return sorted(os.listdir(self.home / "sessions"))


async def turn(agent: Any, text: str = "go on") -> list[SessionEvent]:
    """One whole turn. Its last event is its only `done`."""
    async with asyncio.timeout(PATIENCE_S):
        await agent.send(text)
        return await events_of(agent)


async def events_of(agent: Any) -> list[SessionEvent]:
    async with asyncio.timeout(PATIENCE_S):
        events = [event async for event in agent.events()]
    assert [event.name for event in events].count("done") == 1
    assert events[-1].name == "done"
    return events


def said(events: Sequence[SessionEvent]) -> str:
    return "".join(event.data["text"] for event in events if event.name == "text_delta")


def told(events: Sequence[SessionEvent], name: str) -> list[Mapping[str, Any]]:
    return [event.data for event in events if event.name == name]


def gone(pid: int) -> bool:
    """Whether the process ends within the test's patience."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([handle], [], [], PATIENCE_S)[0])
    finally:
        os.close(handle)
