"""A server that is measured at work: `-m benchmarks.orchestrator_probe HOME DATABASE SAMPLES AGENTS SECONDS`.

It is `rookery up` with scripted agents, and prints what was found as JSON: how long after an issue became ready its
agent called its first tool, how long after a person started the same session directly it did, and what so many agents
at once called in so many seconds.
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from benchmarks.machine import memory_kb
from rookery.app import Platform, make_platform
from rookery.around.audit import audit_log
from rookery.core.actor import Actor
from rookery.db.tx import Tx
from rookery.engine.owner_commands import configure_orchestrator
from rookery.engine.tables import dispatches
from rookery.identity.resolve import Binding
from rookery.lifecycle.run_tables import agent_runs, run_events
from rookery.server.run import serve
from rookery.settings import Settings

LIMIT_S = 120.0
LOOK_S = 0.02
WARM_S = 1.0
STEPS = ("planned", "taken by a worker", "workspace and prompt", "session")
WELL = ("allowed", "done", "intent")
PROJECT = "shop"
ONCE = """- call: {tool: get_issue}
- call: {tool: update_issue_status, arguments: {status: blocked, reason: measured, fence: $(fence)}}
"""
CALLS = """- call: {{tool: get_issue}}
- until: go
- each:
    of: {numbers}
    as: round
    do:
      - each:
          of: {numbers}
          do:
            - call: {{tool: get_issue_status}}
            - call: {{tool: list_issues, arguments: {{limit: 20}}}}
            - call: {{tool: add_comment, arguments: {{content: step $(round) $(each)}}}}
            - call: {{tool: search_learnings, arguments: {{query: a pattern of steps}}}}
            - call: {{tool: get_issue}}
"""
ROUNDS = 200
"""The square of it is more than an agent gets through: it is stopped when the time is over."""


@dataclass
class Probe:
    """Does things as the owner and looks at what was recorded of them."""

    platform: Platform
    scripts: str
    repository: str
    project: str = ""
    made: int = 0
    found: dict[str, Any] = field(default_factory=dict[str, Any])

    async def measure(self, samples: int, agents: int, seconds: float) -> None:
        await self.set_up(agents)
        self.write("worker.yaml", ONCE)
        # The first of each loads what later ones use.
        await self.ready()
        await self.direct()
        ways = [await self.ready() for _ in range(samples)]
        self.found["ready_ms"] = [sum(way.values()) for way in ways]
        self.found["steps_ms"] = {step: [way[step] for way in ways] for step in ways[0]}
        self.found["direct_ms"] = [await self.direct() for _ in range(samples)]
        self.write("worker.yaml", CALLS.format(numbers=list(range(ROUNDS))))
        await self.load(agents, seconds)

    def write(self, name: str, text: str) -> None:
        with open(os.path.join(self.scripts, name), "w", encoding="utf-8") as file:
            file.write(text)

    async def set_up(self, agents: int) -> None:
        self.project = (await self.call("create_project", slug=PROJECT, path=self.repository))["id"]
        wanted = {"enabled": True, "max_agents": agents}
        await self.platform.calls.run(await self.owner(), configure_orchestrator, wanted)

    async def ready(self) -> dict[str, float]:
        """Milliseconds from an issue's becoming ready to its agent's first call of a tool, step by step."""
        began = time.time() * 1000
        issue = await self.issue()
        called = began + await self.first_call(issue, began)
        run = sa.select(dispatches.c.created_ms, dispatches.c.started_ms, agent_runs.c.created_ms.label("run_ms"))
        of = run.join(agent_runs, agent_runs.c.id == dispatches.c.run_id).where(dispatches.c.issue_id == issue)
        row = await self.platform.database.read(lambda tx: tx.one(of))
        moments = [began, row.created_ms, row.started_ms, row.run_ms, called]
        took = {step: then - before for step, before, then in zip(STEPS, moments[:-1], moments[1:], strict=True)}
        # The next one is not to wait for this one's end.
        live = sa.select(dispatches.c.id).where(dispatches.c.state != "ended")
        await self.until(lambda tx: True if tx.one(live) is None else None)
        return took

    async def direct(self) -> float:
        """The same for a session that a person starts."""
        issue = await self.issue("needs-planning")
        began = time.time() * 1000
        await self.call("start_session", message="go", issue=issue, profile="worker", cwd=self.repository)
        return await self.first_call(issue, began)

    async def issue(self, *labels: str) -> str:
        """An issue in its last phase; without a label it is ready for a worker at once."""
        self.made += 1
        made = await self.call("create_issue", title=f"issue {self.made}", labels=["phase:ready", *labels])
        return made["id"]

    async def first_call(self, issue: str, began: float) -> float:
        calls = sa.select(sa.func.min(run_events.c.at_ms)).where(
            run_events.c.issue_id == issue, run_events.c.subtype == "tool_use"
        )
        return await self.until(lambda tx: tx.scalar(calls)) - began

    async def load(self, agents: int, seconds: float) -> None:
        """So many agents at once for so long. They wait for each other before they begin."""
        before = memory_kb(os.getpid())["rss"]
        issues = [await self.issue() for _ in range(agents)]
        at_work = sa.select(sa.func.count(sa.distinct(run_events.c.issue_id))).where(
            run_events.c.issue_id.in_(issues), run_events.c.subtype == "tool_result"
        )
        await self.until(lambda tx: True if tx.scalar(at_work) == agents else None)
        self.write("go", "")
        await asyncio.sleep(WARM_S)
        began, cpu = time.time_ns() // 1_000_000, time.process_time()
        await asyncio.sleep(seconds)
        ended, used = time.time_ns() // 1_000_000, time.process_time() - cpu
        memory = memory_kb(os.getpid())["rss"]
        rows = await self.platform.database.read(lambda tx: self.calls(tx, began, ended, issues), timeout_s=LIMIT_S)
        failed = [f"{row.tool}: {row.code or row.outcome}" for row in rows if row.code or row.outcome not in WELL]
        over = sa.select(dispatches.c.error).where(dispatches.c.issue_id.in_(issues), dispatches.c.state == "ended")
        stopped = await self.platform.database.read(lambda tx: tx.all(over))
        self.found["load"] = {
            "calls": len(rows),
            "seconds": (ended - began) / 1000,
            "errors": [*failed, *(str(row.error) for row in stopped)][:100],
            "took_ms": await self.platform.database.read(lambda tx: waits(tx, began, ended, issues), timeout_s=LIMIT_S),
            "cpu_s": used,
            "mb_before": before / 1024,
            "mb": memory / 1024,
        }

    def calls(self, tx: Tx, began: int, ended: int, issues: Sequence[str]) -> Sequence[sa.Row[Any]]:
        meanwhile = audit_log.c.at_ms.between(began, ended)
        return tx.all(
            sa.select(audit_log).where(meanwhile, audit_log.c.issue.in_(issues), audit_log.c.agent.is_not(None))
        )

    async def until(self, look: Any) -> Any:
        async with asyncio.timeout(LIMIT_S):
            while (found := await self.platform.database.read(look)) is None:
                await asyncio.sleep(LOOK_S)
            return found

    async def call(self, tool: str, /, **arguments: Any) -> Any:
        return (await self.platform.calls.call(await self.owner(), tool, arguments)).structured

    async def owner(self) -> Actor:
        bound = Binding(as_owner=True, project=self.project or None, source="cli")
        return (await self.platform.database.read(lambda tx: self.platform.resolver.resolve(tx, bound))).actor


def waits(tx: Tx, began: int, ended: int, issues: Sequence[str]) -> list[float]:
    """How long agents have waited for each call of theirs, as they saw it, in milliseconds."""
    e = run_events.c
    meanwhile = (e.issue_id.in_(issues), e.at_ms.between(began, ended), e.subtype.in_(("tool_use", "tool_result")))
    since: dict[str, int] = {}
    took: list[float] = []
    for row in tx.all(sa.select(e.subtype, e.payload, e.at_ms).where(*meanwhile).order_by(e.seq)):
        call: str = row.payload["call_id"]
        if row.subtype == "tool_use":
            since.setdefault(call, row.at_ms)
        elif call in since:
            took.append(row.at_ms - since[call])
    return took


def repository(folder: str) -> str:
    os.makedirs(folder)
    with open(os.path.join(folder, "README.md"), "w", encoding="utf-8") as file:
        file.write("# shop\n")
    who = ("-c", "user.name=Ada", "-c", "user.email=ada@rookery.invalid", "-c", "commit.gpgsign=false")
    for words in (("init", "-q", "-b", "main"), ("add", "."), (*who, "commit", "-q", "-m", "first")):
        subprocess.run(("git", *words), cwd=folder, check=True)
    return folder


def main() -> None:
    home, database, samples, agents, seconds = sys.argv[1:]
    scripts = os.path.join(home, "scripts")
    os.makedirs(scripts)
    settings = Settings(
        home=os.path.join(home, "home"),
        database=database,
        port=0,
        plugins=False,
        runtime="scripted",
        scripts=scripts,
        session_roots=(home,),
        max_agents=int(agents),
        worker_concurrency=int(agents) + 8,
        log_level="error",
    )
    platforms: list[Platform] = []
    tasks: list[asyncio.Task[None]] = []
    probe: list[Probe] = []

    def made(settings: Settings) -> Platform:
        platforms.append(make_platform(settings))
        return platforms[-1]

    async def measure() -> None:
        try:
            probe.append(Probe(platforms[0], scripts, repository(os.path.join(home, PROJECT))))
            await probe[0].measure(int(samples), int(agents), float(seconds))
        finally:
            signal.raise_signal(signal.SIGINT)

    def begin(port: int) -> None:
        tasks.append(asyncio.get_running_loop().create_task(measure()))

    serve(settings, made, begin)
    if (error := tasks[0].exception()) is not None:
        raise error
    print(json.dumps(probe[0].found))


if __name__ == "__main__":
    main()
