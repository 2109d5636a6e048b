"""One history: a fleet, its agents and its people, from a seed to the moment at which everything has come to rest."""

import asyncio
import contextlib
import gc
import logging
import os
import random
import shutil
import sys
import tempfile
import warnings
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from rookery.engine.cleaning import clean_later
from rookery.engine.project_settings import OrchestratorProjects
from rookery.engine.tables import ENDED, dispatches
from rookery.identity.binding import Binding
from rookery.identity.store import DEFAULT_TENANT
from rookery.lifecycle.issue_tables import issues
from rookery.lifecycle.session_store import SessionRuns
from rookery.lifecycle.states import FINISHED
from rookery.settings import Settings
from tests.databases import roomy_folder
from tests.engine.simulation.agents import Runtime, SimulatedAgent
from tests.engine.simulation.chaos import Chaos
from tests.engine.simulation.clock import START_S, Stuck, VirtualLoop, virtual_time
from tests.engine.simulation.disk import Disk, Moment, Patience
from tests.engine.simulation.invariants import wrong_at_rest
from tests.engine.simulation.log import Log
from tests.engine.simulation.outside import Ground, Repositories
from tests.engine.simulation.parts import act
from tests.engine.simulation.people import People
from tests.engine.simulation.process import Process
from tests.engine.simulation.scenario import Scenario
from tests.engine.simulation.temper import Temper
from tests.engine.simulation.template import template
from tests.engine.simulation.truth import Truth
from tests.engine.simulation.watching import PEOPLE, Watch

REST_S = 5.0
"""So often people look while everything comes to rest."""
LARGE = 50
"""One history of so many is a large one."""
LONGEST_REST_S = 2 * 3600.0


@dataclass(frozen=True, slots=True)
class Crash:
    """One crash at a named point, instead of chaos: which process, at which of its commits, and on which side of it."""

    process: int
    commit: int
    moment: Moment


@dataclass(slots=True)
class Ended:
    """What came of a history."""

    seed: int
    violations: list[str]
    lasted_s: float = 0.0
    commits: int = 0
    commits_of: list[int] = field(default_factory=list[int])
    counts: dict[str, int] = field(default_factory=dict[str, int])
    log: list[str] = field(default_factory=list[str])


class History:
    """Runs once. With `keep_log` every step is written down; with `real_git` worktrees are those of git itself."""

    def __init__(
        self, seed: int, *, keep_log: bool = False, real_git: bool = False, crash: Crash | None = None
    ) -> None:
        self.seed = seed
        self._rng = random.Random(f"history {seed}")
        self._loop = VirtualLoop(random.Random(f"loop {seed}"))
        self.log = Log(lambda: self._loop.now_s - START_S, keep=keep_log)
        self.truth = Truth()
        self.scenario = Scenario.drawn(self._rng, large=seed % LARGE == 0)
        self.temper = Temper.drawn(random.Random(f"temper {seed}"))
        self._crash = crash
        if crash is not None:
            self.temper.trouble = 0.0
        self._real_git = real_git
        self._patience = Patience(random.Random(f"patience {seed}"))
        self._slots: list[Process] = []
        self._everyone: list[Process] = []
        self._outside: set[asyncio.Task[None]] = set()
        self._agents = 0
        self._over = False

    def run(self) -> Ended:
        folder = tempfile.mkdtemp(prefix="rookery-simulation-", dir=roomy_folder())
        copied = template()
        try:
            with (
                virtual_time(self._loop),
                self.log.instead_of_logging(),
                Ground(self._loop, self.temper, real_git=self._real_git) as ground,
            ):
                return self._run(copied, folder, ground.repositories)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _run(self, copied: bytes, folder: str, repositories: Repositories) -> Ended:
        disk = Disk(copied, self._loop, self.log)
        watch = Watch(disk, self.truth, self._candidate)
        self._disk, self._folder, self._repositories = disk, folder, repositories
        try:
            try:
                self._loop.run_until_complete(self._live())
            except Stuck as stuck:
                watch.wrong(str(stuck))
            wrong = disk.read(lambda tx: wrong_at_rest(tx, self.truth, repositories.reachable()))
            return Ended(
                self.seed,
                [*watch.violations, *wrong, *repositories.unknown(), *self.log.unexpected],
                self._loop.now_s - START_S,
                disk.commits,
                [process.database.commits for process in self._everyone],
                watch.counts,
                self.log.lines,
            )
        finally:
            self._bury()
            disk.close()

    async def _live(self) -> None:
        desk = self._process(PEOPLE, works=False, orchestrates=False)
        project_ids = await self._set_up(desk)
        rng = random.Random(f"people {self.seed}")
        people = People(desk, rng, self.temper, project_ids, self.scenario.slugs)
        for number, orchestrates in enumerate(self.scenario.processes):
            self._slots.append(self._begin(number, orchestrates))
        if self._crash is not None:
            self._slots[self._crash.process].database.crash_at = (self._crash.commit, self._crash.moment)
        until_s = self._loop.now_s + self.scenario.troubled_s
        if self._crash is None:
            chaos = Chaos(random.Random(f"chaos {self.seed}"), self.temper, self.live)
            await asyncio.gather(chaos.rage(until_s), people.interfere(until_s))
        self._calm()
        await self._come_to_rest(people)

    def _calm(self) -> None:
        self.log("everybody", "does their best from here on")
        self.temper.calm = True
        for process in self._slots:
            if self._crash is None:
                process.database.crash_at = process.database.nap_at = None
            process.wake_up()

    async def _come_to_rest(self, people: People) -> None:
        until_s = self._loop.now_s + LONGEST_REST_S
        while self._loop.now_s < until_s:
            await asyncio.sleep(REST_S)
            await people.answer()
            if self._disk.read(_at_rest):
                break
        desk = self._everyone[0]
        await desk.database.change(clean_later)
        await asyncio.sleep(2 * REST_S)
        # What the hourly look would find: runs that were begun by a worker that is no more.
        self._over = True
        for process in self._slots:
            process.crash("with the history")
        await asyncio.sleep(60)
        await desk.database.change(lambda tx: SessionRuns(tx, DEFAULT_TENANT).end_lost())

    async def _set_up(self, desk: Process) -> list[str]:
        calls, ids = desk.platform.calls, list[str]()
        for slug in self.scenario.slugs:
            path = self._repositories.make(os.path.join(self._folder, "repositories", slug))
            owner = await self._owner(desk)
            ids.append((await calls.call(owner, "create_project", {"slug": slug, "path": path})).value.id)
            person = await self._owner(desk, slug)
            await calls.call(person, "configure_project", dict(self.scenario.settings))
            await desk.database.change(
                lambda tx: OrchestratorProjects(tx, DEFAULT_TENANT).update(
                    ids[-1], enabled=True, **self.scenario.orchestration
                )
            )
            for arguments in self.scenario.issues:
                await calls.call(person, "create_issue", dict(arguments))
        return ids

    async def _owner(self, desk: Process, project: str | None = None) -> Any:
        bound = Binding(as_owner=True, project=project)
        return (await desk.database.read(lambda tx: desk.platform.resolver.resolve(tx, bound))).actor

    def _process(self, name: str, *, works: bool, orchestrates: bool) -> Process:
        settings = Settings(home=os.path.join(self._folder, "home"), plugins=False, **self.scenario.installed)
        process = Process(name, self._disk, settings, self._patience, self.log, works=works, orchestrates=orchestrates)
        self._everyone.append(process)
        return process

    def _begin(self, slot: int, orchestrates: bool, incarnation: int = 0) -> Process:
        kind = "server" if orchestrates else "worker"
        name = f"{kind}{slot}" + (f".{incarnation}" if incarnation else "")
        process = self._process(name, works=True, orchestrates=orchestrates)
        process.use(Runtime(self, process, self.part))
        process.start()
        self.outside(self._replace(process, slot, orchestrates, incarnation), f"keeper of {name}")
        return process

    async def _replace(self, process: Process, slot: int, orchestrates: bool, incarnation: int) -> None:
        await process.gone
        await asyncio.sleep(self._loop.rng.uniform(1, 15))
        if self._over:
            return
        self._slots[slot] = self._begin(slot, orchestrates, incarnation + 1)

    def _candidate(self, name: str) -> str | None:
        found = next((each for each in self._everyone if each.name == name), None)
        return found.orchestrator.lead.me if found is not None and found.orchestrator is not None else None

    async def part(self, agent: SimulatedAgent) -> None:
        """What an agent does in its turn."""
        await act(agent)

    def live(self) -> Sequence[Process]:
        return [process for process in self._slots if process.up]

    def outside(self, work: Coroutine[Any, Any, None], name: str) -> "asyncio.Task[None]":
        task = self._loop.create_task(work, name=name, context=self._repositories.context())
        self._outside.add(task)
        task.add_done_callback(self._outside.discard)
        return task

    def new_rng(self) -> random.Random:
        self._agents += 1
        return random.Random(f"agent {self.seed} {self._agents}")

    def _bury(self) -> None:
        """Let go of everything that never ended. What its clean-ups would do no longer matters to anybody."""
        report, sys.unraisablehook = sys.unraisablehook, lambda found: None
        logging.disable(logging.CRITICAL)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                for process in self._everyone:
                    process.crash("with the history")
                self._let_all_go()
                self._loop.close()
                gc.collect(0)
        finally:
            sys.unraisablehook = report

    def _let_all_go(self) -> None:
        """What is let go may begin something on its way out. That goes too, and is on no loop but this one."""
        gone: set[asyncio.Task[Any]] = set()
        asyncio._set_running_loop(self._loop)
        try:
            while left := asyncio.all_tasks(self._loop) - gone:
                for task in left:
                    _let_go(task)
                gone |= left
        finally:
            asyncio._set_running_loop(None)


def _let_go(task: "asyncio.Task[Any]") -> None:
    task._log_destroy_pending = False  # type: ignore[attr-defined]
    coroutine: Any = task.get_coro()
    # Whatever it does on its way out, nobody is there to hear of it.
    with contextlib.suppress(Exception):
        coroutine.close()


def _at_rest(tx: Any) -> bool:
    open_issues = sa.select(issues.c.id).where(issues.c.status.not_in(FINISHED), issues.c.status != "blocked")
    live = sa.select(dispatches.c.id).where(dispatches.c.state != ENDED)
    return all(tx.one(each.limit(1)) is None for each in (open_issues, live))
