"""Claude Code as the program of an agent: whole turns with our tools, through `rookery stdio --attach`."""

import asyncio
import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from rookery.app import make_platform
from rookery.identity.resolve import Binding
from rookery.lifecycle.session_mark import SESSION_MARK
from rookery.runtimes.command import CommandRuntime
from rookery.runtimes.command_claude import ClaudeCode
from rookery.sessions.events import SessionEvent
from rookery.sessions.port import Asked, Launch, Permission, ToolUse
from rookery.sessions.store import NewSession, SessionRows
from rookery.settings import load_settings
from tests.clients.programs import LIMIT_S, claude_environment
from tests.clients.running import Home
from tests.clients.scripted_model import ScriptedModel, Use

PING = Use("mcp__rookery__ping", {})
INFO = Use("mcp__rookery__get_server_info", {"include_uptime": 7})
WRITE = Use("Bash", {"command": "echo hi > made.txt", "description": "write a file"})


class Owner:
    """Allows our tools and refuses the others; waits before that, if it is told to."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.waiting = asyncio.Event()
        self.answering = asyncio.Event()
        self.answering.set()

    async def may_use(self, use: ToolUse) -> Permission:
        self.asked.append(use.tool)
        self.waiting.set()
        await self.answering.wait()
        return Permission(use.tool.startswith("mcp__rookery__"), "the owner said no")

    async def answers(self, call_id: str, questions: Sequence[Asked]) -> Sequence[str] | None:
        return None


@pytest.fixture
def home() -> Iterator[Home]:
    home = Home()
    try:
        home.up("--port", "0")
        yield home
    finally:
        home.close()


def opened(home: Home, user: Path, **binding: Any) -> Launch:
    """A session of the running server, in the run `run-1`."""
    platform = make_platform(load_settings(str(home.folder), plugins=False))

    def work(tx: Any) -> Launch:
        actor = platform.resolver.resolve(tx, Binding(**binding)).actor
        sessions = SessionRows(tx, "default")
        row = sessions.create(NewSession(actor=actor, runtime="claude-cli", mode="ask", opened_by="me", cwd=str(user)))
        sessions.began(row, "run-1")
        key = sessions.new_pass(row.id)
        return Launch(session=row.id, actor=actor, mode="ask", cwd=str(user), pass_key=key, instructions="You are Ada.")

    try:
        return platform.database.direct(work, write=True)
    finally:
        platform.close()


def runtime(home: Home, user: Path, model: ScriptedModel) -> CommandRuntime:
    environ = {**claude_environment(user, model), "PYTHONPATH": home.env["PYTHONPATH"]}
    return CommandRuntime(ClaudeCode(), str(home.folder), environ)


async def turn(agent: Any, text: str) -> list[SessionEvent]:
    async with asyncio.timeout(LIMIT_S):
        await agent.send(text)
        return [event async for event in agent.events()]


def results(events: Sequence[SessionEvent]) -> list[tuple[str, bool]]:
    return [(event.data["tool"], event.data["is_error"]) for event in events if event.name == "tool_result"]


def processes_of(session: str) -> list[int]:
    """The processes that carry the mark of the session."""
    wanted = os.fsencode(f"{SESSION_MARK}={session}")
    found: list[int] = []
    for name in filter(str.isdecimal, os.listdir("/proc")):
        try:
            if wanted in Path(f"/proc/{name}/environ").read_bytes().split(b"\0"):
                found.append(int(name))
        except OSError:
            continue
    return found


async def test_a_tool_that_the_session_may_not_use_is_not_there(home: Home, user: Path) -> None:
    launch = opened(home, user, within=frozenset({"ping"}))
    with ScriptedModel(INFO, PING) as model:
        agent = await runtime(home, user, model).start(launch, Owner())
        events = await turn(agent, "look whether the server answers")
        assert {name for name in set().union(*model.offered) if "rookery" in name} == {"mcp__rookery__ping"}
    assert results(events) == [("mcp__rookery__get_server_info", True), ("mcp__rookery__ping", False)]


async def test_a_whole_turn_and_the_next_one(home: Home, user: Path) -> None:
    launch, owner = opened(home, user), Owner()
    with ScriptedModel(PING, INFO, WRITE) as model:
        claude = runtime(home, user, model)
        assert claude.missing is None
        agent = await claude.start(launch, owner)
        events = await turn(agent, "look whether the server answers")
        assert results(events) == [(PING.tool, False), (INFO.tool, True), (WRITE.tool, True)]
        assert owner.asked == [PING.tool, INFO.tool, WRITE.tool]
        assert not (user / "made.txt").exists()
        first = events[-1].data
        assert (first["reason"], first["output"]) == ("completed", "the owner said no")
        assert (first["cost_usd"] > 0, first["turns"], first["input_tokens"]) == (True, 4, 4)
        servers = [
            event.data["servers"] for event in events if event.name == "session_status" if "servers" in event.data
        ]
        assert servers == [[{"name": "rookery", "status": "connected"}]]

        resumed = await claude.resume(launch, owner, str(agent.native_id))
        events = await turn(resumed, "and again")
        assert results(events) == []
        assert (events[-1].data["reason"], resumed.native_id) == ("completed", agent.native_id)
        assert 0 < events[-1].data["cost_usd"] < first["cost_usd"], "what was paid before is not paid again"
    assert processes_of(launch.session) == []
    assert os.listdir(home.folder / "sessions") == []
    with closing(sqlite3.connect(f"file:{home.folder / 'rookery.db'}?mode=ro", uri=True)) as database:
        calls = database.execute("SELECT DISTINCT session FROM audit_log WHERE tool = 'ping'").fetchall()
    assert calls == [(launch.session,)]


async def test_a_session_that_claude_does_not_have_is_told(home: Home, user: Path) -> None:
    launch = opened(home, user)
    with ScriptedModel() as model:
        agent = await runtime(home, user, model).resume(launch, Owner(), "11111111-2222-4333-8444-555555555555")
        events = await turn(agent, "go on")
        assert [event.data["code"] for event in events if event.name == "error"] == ["lost"]
        assert (await turn(agent, "go on"))[-1].data["reason"] == "completed"


@pytest.mark.parametrize("how", ["killed", "interrupted", "stopped"])
async def test_a_turn_that_is_cut_off_leaves_no_process(home: Home, user: Path, how: str) -> None:
    launch, owner = opened(home, user), Owner()
    owner.answering.clear()
    with ScriptedModel(PING) as model:
        agent = await runtime(home, user, model).start(launch, owner)
        going = asyncio.create_task(turn(agent, "look whether the server answers"))
        async with asyncio.timeout(LIMIT_S):
            await owner.waiting.wait()
            started = processes_of(launch.session)
            assert len(started) >= 2, "Claude Code and our server"
            if how == "killed":
                os.kill(next(pid for pid in started if _is_claude(pid)), 9)
            else:
                await (agent.interrupt() if how == "interrupted" else agent.stop())
            events = await going
    assert [event.name for event in events].count("done") == 1
    assert events[-1].data["reason"] == ("failed" if how == "killed" else how)
    errors = [event.data["message"] for event in events if event.name == "error"]
    assert errors == (["Claude Code was ended by SIGKILL in the middle of the turn."] if how == "killed" else [])
    assert processes_of(launch.session) == []
    assert os.listdir(home.folder / "sessions") == []


def _is_claude(pid: int) -> bool:
    return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0].endswith(b"claude")
