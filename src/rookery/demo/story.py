"""What the person of the demo does, and when: everything else is done by the orchestrator and its agents."""

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from rookery.core.errors import RookeryError
from rookery.db.tx import Tx
from rookery.demo.happenings import YOU, Happening, happenings
from rookery.demo.repository import CHECK, failing_tests, git
from rookery.domains.tracker.tables import coverage, prs
from rookery.engine.owner_commands import configure_orchestrator
from rookery.engine.project_settings import ROLES
from rookery.engine.tables import ENDED, dispatches, intake_requests
from rookery.identity.resolve import Binding
from rookery.lifecycle.issue_tables import issues
from rookery.lifecycle.run_tables import agent_runs

if TYPE_CHECKING:
    from rookery.app import Platform
    from rookery.core.actor import Actor

PROJECT = "till"
CONCEPT = "error_handling"
REQUESTS = (
    "I paid 10.00 for three of us and the till made 3 x 3.33 of it. Where did the cent go?",
    "Please let me type 12,50 with a comma, as it is written here.",
    "Splitting a bill by three loses money!!",
)
LOOK_S = 0.1
Say = Callable[[float, str, str], None]
"""Told the seconds since the beginning, who, and what."""


class StoryFailed(Exception):
    """The issue did not get to its end."""


@dataclass(slots=True)
class Scene:
    """How far things are."""

    told: list[Happening]
    issue: sa.Row[Any] | None
    approved: bool
    settled: bool
    """Whether everything that runs beside the issue is done: requests taken in, files looked through."""


@dataclass(slots=True)
class Story:
    """Plays from an empty project to a merged change, and tells it."""

    platform: "Platform"
    repository: str
    say: Say
    issue: str = ""
    started: float = field(default_factory=time.time)
    _told: set[tuple[str, ...]] = field(default_factory=set[tuple[str, ...]])
    _project: str = ""

    async def play(self, limit_s: float) -> None:
        """StoryFailed if the change is not merged in time."""
        try:
            async with asyncio.timeout(limit_s):
                await self._set_up()
                await self._until(lambda scene: scene.issue is not None)
                await self._call("set_issue_status", issue_id=self.issue, status="todo")
                await self._until(lambda scene: scene.approved)
                merged = await self._call("merge_pr", issue_id=self.issue)
                self._say(YOU, f"merge revision {merged['revision']} of {self.issue}")
                await self._until(lambda scene: _is(scene.issue, "done") and scene.settled)
        except TimeoutError:
            raise StoryFailed(f"not merged within {limit_s:g} s: {await self._why()}") from None
        await self._sum_up()

    async def _set_up(self) -> None:
        tests, failing = await asyncio.to_thread(failing_tests, self.repository)
        self._say(YOU, f"have a repository, {PROJECT}; {failing} of its {tests} tests fails")
        project = await self._call("create_project", slug=PROJECT, path=self.repository)
        self._project = project["id"]
        for role in ROLES:
            await self._call("create_agent", name=role)
        gate = {"command": f"./{CHECK}", "label": "tests", "required": True}
        await self._call("configure_project", gates=[gate])
        self._say(YOU, f"make an agent for each role: {', '.join(ROLES)}")
        wanted = {"enabled": True, "scan_concepts": [CONCEPT], "scan_paths": ["till/**"]}
        await self.platform.calls.run(await self._owner(), configure_orchestrator, wanted)
        self._say(YOU, f"switch the orchestrator on for {PROJECT}")
        await self._call("submit_requests", requests=list(REQUESTS))
        self._say(YOU, f"submit {len(REQUESTS)} requests of people")

    async def _until(self, reached: Callable[[Scene], bool]) -> None:
        """Tell what happens until something is so."""
        while True:
            scene = await self.platform.database.read(self._look)
            for each in scene.told:
                if each.key not in self._told:
                    self._told.add(each.key)
                    self.say(each.at_ms / 1000 - self.started, each.who, each.what)
            if _is(scene.issue, "blocked"):
                raise StoryFailed(await self._why())
            if reached(scene):
                return
            await asyncio.sleep(LOOK_S)

    def _look(self, tx: Tx) -> Scene:
        mine = issues.c.project_id == self._project
        first = tx.one(sa.select(issues).where(mine).order_by(issues.c.number).limit(1))
        self.issue = first.identifier if first is not None else ""
        approved = sa.select(prs.c.id).where(prs.c.project_id == self._project, prs.c.status == "approved")
        return Scene(
            told=happenings(tx, self._project),
            issue=first,
            approved=tx.one(approved) is not None,
            settled=self._settled(tx),
        )

    def _settled(self, tx: Tx) -> bool:
        open_requests = sa.select(intake_requests.c.id).where(
            intake_requests.c.project_id == self._project, intake_requests.c.done_ms.is_(None)
        )
        live = sa.select(dispatches.c.id).where(dispatches.c.project_id == self._project, dispatches.c.state != ENDED)
        seen = sa.select(coverage.c.file_path).where(coverage.c.project_id == self._project)
        return tx.one(open_requests) is None and tx.one(live) is None and tx.one(seen) is not None

    async def _why(self) -> str:
        if not self.issue:
            return "no request became an issue"
        try:
            return str((await self._call("why_waiting", issue_id=self.issue)).get("reason"))
        except RookeryError as error:
            return error.message

    async def _sum_up(self) -> None:
        tests, failing = await asyncio.to_thread(failing_tests, self.repository)
        spent = sa.select(sa.func.count(), sa.func.sum(agent_runs.c.cost_micros)).where(
            agent_runs.c.project_id == self._project
        )
        row = await self.platform.database.read(lambda tx: tx.one(spent))
        assert row is not None
        newest = (await asyncio.to_thread(git, self.repository, "log", "-1", "--format=%h %s")).strip()
        self._say(YOU, f"have on main: {newest}; {tests} tests, {failing} of them fail")
        self._say(YOU, f"paid for {row[0]} runs of agents ${(row[1] or 0) / 1e6:.2f} of play money")

    def _say(self, who: str, what: str) -> None:
        self.say(time.time() - self.started, who, what)

    async def _call(self, tool: str, /, **arguments: Any) -> Mapping[str, Any]:
        return (await self.platform.calls.call(await self._owner(), tool, arguments)).structured

    async def _owner(self) -> "Actor":
        bound = Binding(as_owner=True, project=self._project or None, source="cli")
        return (await self.platform.database.read(lambda tx: self.platform.resolver.resolve(tx, bound))).actor


def _is(issue: sa.Row[Any] | None, status: str) -> bool:
    return issue is not None and issue.status == status
