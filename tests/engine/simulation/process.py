"""Simulated processes: each has a platform of its own on the common disk, and ends as processes do, between two steps.

A process that crashes is not cancelled: nothing of it ever takes another step, so no clean-up of its reaches anything.
One that is put to sleep goes on later from where it was, with whatever it believes by then.
"""

import asyncio
import contextlib
import os
from collections.abc import Callable, Coroutine
from contextvars import Context, copy_context
from typing import Any, Literal, TypeVar
from weakref import WeakSet

import rookery.app
from rookery.app import Platform, make_platform
from rookery.engine.orchestrator import Orchestrator
from rookery.server.work import Work
from rookery.sessions.port import AgentRuntime
from rookery.settings import Settings
from tests.engine.simulation.clock import HOST, VirtualLoop
from tests.engine.simulation.disk import Disk, SimulatedDatabase
from tests.engine.simulation.log import Log

T = TypeVar("T")
State = Literal["up", "asleep", "dead"]
RUNTIME = "scripted"
"""The name under which the simulated agents are started: any will do that the settings know."""


class Gone(Exception):
    """The process has crashed while somebody was talking to it."""


class Process:
    """One incarnation. `orchestrates`: as `rookery up` does; else as `rookery worker`."""

    def __init__(
        self,
        name: str,
        disk: Disk,
        settings: Settings,
        takes_s: Callable[[], float],
        log: Log,
        *,
        works: bool = True,
        orchestrates: bool = True,
        prepare: bool = False,
    ) -> None:
        self.name = name
        self.state: State = "up"
        self.log = log
        self.orchestrator: Orchestrator | None = None
        self.work: Work | None = None
        self.gone: asyncio.Future[None] = disk.loop.create_future()
        self.tasks: WeakSet[asyncio.Task[Any]] = WeakSet()
        self._remains: list[asyncio.Task[Any]] = []
        self._loop: VirtualLoop = disk.loop
        self._held: list[asyncio.Handle] = []
        self._orchestrates, self._works = orchestrates, works
        self.database = SimulatedDatabase(disk, name, takes_s)
        self.database.crash = self.crash
        self.database.nap = self.nap
        self._context = copy_context()
        self._context.run(HOST.set, self)
        self.platform = _platform_on(self.database, settings, prepare=prepare)

    @property
    def up(self) -> bool:
        return self.state == "up"

    def hold(self, handle: asyncio.Handle) -> None:
        if self.state == "asleep":
            self._held.append(handle)

    def use(self, runtime: AgentRuntime) -> None:
        """Let agents be started by this runtime."""
        self.platform.calls.facts["sessions"].runtimes = {RUNTIME: runtime}

    def start(self) -> None:
        """Do what a server does, or a worker."""
        self.spawn(self._serve(), "serve")

    async def _serve(self) -> None:
        if self._works:
            self.work = Work(self.platform)
        if self._orchestrates:
            self.orchestrator = Orchestrator(self.platform)

    async def stop(self) -> None:
        """End it as a signal does: what it is at is given back."""
        self.log(self.name, "is told to stop")

        async def ending() -> None:
            if self.orchestrator is not None:
                await self.orchestrator.stop()
            if self.work is not None:
                await self.work.end()

        with contextlib.suppress(Gone):
            await self.ask(ending())
            self.crash("stopped")

    def spawn(self, work: Coroutine[Any, Any, T], name: str = "") -> "asyncio.Task[T]":
        """A task that is a part of this process."""
        return self._loop.create_task(work, name=name or None, context=self._context.copy())

    async def ask(self, work: Coroutine[Any, Any, T]) -> T:
        """What the process answers to somebody outside; Gone if it crashes before it does."""
        if self.state == "dead":
            work.close()
            raise Gone(self.name)
        task = self.spawn(work)
        await asyncio.wait([task, self.gone], return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise Gone(self.name)
        return task.result()

    def crash(self, where: str) -> None:
        """From here on nothing of it happens any more."""
        if self.state == "dead":
            return
        self.log(self.name, f"ends {where}")
        self.state = "dead"
        self.database.close()
        self._held.clear()
        # Kept, or they would be collected, and with that cleaned up.
        self._remains = list(self.tasks)
        self.gone.set_result(None)

    def sleep(self) -> None:
        """Stand still, as a machine does that is suspended."""
        if self.state == "up":
            self.log(self.name, "falls asleep")
            self.state = "asleep"

    def nap(self, seconds: float) -> None:
        """Stand still for so long."""
        self.sleep()
        # Not in our own context, in which nothing happens until then.
        self._loop.call_later(seconds, self.wake_up, context=Context())

    def wake_up(self) -> None:
        """Go on from where it was."""
        if self.state == "asleep":
            self.log(self.name, "wakes up")
            self.state = "up"
            held, self._held = self._held, []
            self._loop.again(held)


def _platform_on(database: SimulatedDatabase, settings: Settings, *, prepare: bool) -> Platform:
    opened = rookery.app.open_database
    rookery.app.open_database = lambda url, *, reads="normal": database
    try:
        os.makedirs(settings.home, exist_ok=True)
        return make_platform(settings, prepare=prepare)
    finally:
        rookery.app.open_database = opened
