"""A place where schedules are kept and come due when a test says so."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, cast

import sqlalchemy as sa

from rookery.core.actor import Actor
from rookery.core.events import Event
from rookery.db.clock import now_ms
from rookery.db.tx import Tx
from rookery.domains.schedules.planning import plan
from rookery.domains.schedules.tables import executions, schedules
from rookery.identity.store import IdentityStore
from rookery.lifecycle.sessions import Outcome
from tests.domains.schedules.deeds import DEEDS
from tests.jobs.working import running_worker, settled
from tests.platform_fixtures import Fleet

SELDOM = "0 0 29 2 *"
"""So that nothing comes due by itself in the middle of a test."""


class Deeds:
    """What the stand-ins did, and which of them are to fail."""

    def __init__(self) -> None:
        self.done: list[tuple[str, Actor, dict[str, Any]]] = []
        self.broken: set[str] = set()
        self.health: dict[str, int] = {}

    def of(self, tool: str) -> list[dict[str, Any]]:
        return [given for name, _, given in self.done if name == tool]


class StandInSession:
    def __init__(self, runtime: "StandInRuntime", key: str) -> None:
        self.id = f"ses-{key}"
        self._runtime = runtime

    async def wait(self) -> Outcome:
        await self._runtime.gate.wait()
        return self._runtime.outcome

    async def stop(self) -> None:
        self._runtime.stopped.append(self.id)


class StandInRuntime:
    """Runs no agent: notes what it was asked for, and ends every session as the test says, once the gate is open."""

    def __init__(self) -> None:
        self.asked: list[tuple[Actor, str, str, float | None]] = []
        self.outcome = Outcome("done", output="all fine", cost_usd=0.25)
        self.stopped: list[str] = []
        self.gate = asyncio.Event()
        self.gate.set()

    async def start_session(
        self,
        actor: Actor,
        prompt: str,
        *,
        key: str,
        cwd: str | None = None,
        max_turns: int | None = None,
        budget_usd: float | None = None,
        model: str | None = None,
    ) -> StandInSession:
        self.asked.append((actor, prompt, key, budget_usd))
        return StandInSession(self, key)


class Almanac:
    """Speaks to the platform as agents and people do, and makes schedules due."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self.platform = fleet.platform
        self.deeds = Deeds()
        self.runtime = StandInRuntime()
        self.events: list[Event] = []
        self.platform.events.subscribe(self.events.append)
        facts = cast("dict[str, Any]", self.platform.calls.facts)
        facts |= {"deeds": self.deeds, "runtime": self.runtime}
        for name, deed in DEEDS.items():
            # In place of the product's own tool of that name, if it has one.
            self.platform.registry._tools[name] = replace(deed, domain="deeds")

    @property
    def owner(self) -> Actor:
        return self.fleet.owner

    @property
    def ada(self) -> Actor:
        """The default agent."""
        return self.fleet.actor()

    async def agent(self, name: str) -> Actor:
        await self.fleet.call(self.owner, "create_agent", name=name)
        return self.fleet.actor(agent=name)

    def stranger(self, **binding: Any) -> Actor:
        """Somebody of another tenant on the same database."""
        self.platform.database.direct(lambda tx: IdentityStore(tx, "other").set_up(), write=True)
        return self.fleet.actor(tenant="other", **binding)

    async def call(self, actor: Actor, action: str, /, **arguments: Any) -> Any:
        return await self.fleet.call(actor, "manage_schedule", action=action, **arguments)

    async def make(self, actor: Actor | None = None, /, **given: Any) -> str:
        """The id of a schedule with one action, which nobody has to agree to."""
        whole = {
            "name": "nightly",
            "cron_expression": None if "interval_minutes" in given else SELDOM,
            "schedule_actions": [{"type": "custom", "prompt": "look around"}],
            "approval_policy": "auto",
        }
        return (await self.call(actor or self.ada, "create", **(whole | given))).schedules[0]["id"]

    def row(self, schedule_id: str) -> Any:
        return self.rows(sa.select(schedules).where(schedules.c.id == schedule_id))[0]

    def executions(self, schedule_id: str | None = None) -> Sequence[Any]:
        wanted = sa.select(executions).order_by(executions.c.due_ms, executions.c.id)
        return self.rows(wanted if schedule_id is None else wanted.where(executions.c.schedule_id == schedule_id))

    def rows(self, statement: sa.Executable) -> Sequence[Any]:
        return self.platform.database.direct(lambda tx: tx.all(statement))

    def change(self, work: Callable[[Tx], Any]) -> Any:
        return self.platform.database.direct(work, write=True)

    def due(self, schedule_id: str, *, ago_ms: int = 0) -> int:
        """Make the schedule due now, or since a while ago; when that was."""

        def work(tx: Tx) -> int:
            row = tx.one(sa.select(schedules).where(schedules.c.id == schedule_id))
            assert row is not None
            due_ms = now_ms(tx) - ago_ms
            plan(tx, row, due_ms)
            return due_ms

        return self.change(work)

    async def work(self) -> None:
        """Let a worker do everything that is due."""
        async with running_worker(self.platform):
            await settled(self.platform)

    async def happen(self, schedule_id: str, *, ago_ms: int = 0) -> Any:
        """The execution of a due time that comes now."""
        due_ms = self.due(schedule_id, ago_ms=ago_ms)
        await self.work()
        return next(row for row in self.executions(schedule_id) if row.due_ms >= due_ms)

    async def do(self, **action: Any) -> Any:
        """The step of an action that is done once, by itself."""
        schedule_id = await self.make(self.owner, schedule_actions=[action])
        execution = await self.happen(schedule_id)
        (step,) = execution.steps
        assert execution.status == step["status"]
        return step
