"""A place to make and run workflows in: a fleet, agents that do as their prompts say, and workers on demand."""

import asyncio
import contextlib
import itertools
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import sqlalchemy as sa

from rookery.core.actor import Actor
from rookery.identity.store import IdentityStore
from rookery.jobs.kinds import Kind
from rookery.lifecycle.sessions import Outcome
from tests.jobs.working import running_worker
from tests.platform_fixtures import Fleet

LIMIT_S = 30.0
START = {"id": "s", "type": "start", "label": "Start", "config": {}}
END = {"id": "e", "type": "end", "label": "End", "config": {}}


def node(node_id: str, kind: str, **config: Any) -> dict[str, Any]:
    return {"id": node_id, "type": kind, "label": f"the {node_id}", "config": config}


def chain(*nodes: dict[str, Any]) -> dict[str, Any]:
    """A graph that goes from a start through these nodes to an end."""
    every = [START, *nodes, END]
    return {"nodes": every, "edges": ways(*(each["id"] for each in every))}


def ways(*names: str, **conditions: str) -> list[dict[str, Any]]:
    """Edges along these nodes; `a="true"` is the condition of the edge out of a."""
    return [
        {
            "id": f"{source}-{target}",
            "sourceNodeId": source,
            "targetNodeId": target,
            **({"condition": conditions[source]} if source in conditions else {}),
        }
        for source, target in itertools.pairwise(names)
    ]


@dataclass
class Talk:
    """A session: says its prompt back, fails at `fail…`, and for `wait…` ends when it is let go."""

    actor: Actor
    prompt: str
    key: str
    max_turns: int | None
    go: asyncio.Event = field(default_factory=asyncio.Event)
    stopped: bool = False

    @property
    def id(self) -> str:
        return f"ses-{self.key}"

    async def wait(self) -> Outcome:
        if self.prompt.startswith("wait"):
            await self.go.wait()
        if self.prompt.startswith("fail"):
            return Outcome("failed", error=f"could not {self.prompt}")
        return Outcome("done", output=f"did {self.prompt}")

    async def stop(self) -> None:
        self.stopped = True
        self.go.set()


class Talks:
    """A runtime that remembers the sessions it was asked for."""

    def __init__(self) -> None:
        self.all: list[Talk] = []

    async def start_session(
        self, actor: Actor, prompt: str, *, key: str, max_turns: int | None = None, **_: Any
    ) -> Talk:
        self.all.append(Talk(actor, prompt, key, max_turns))
        return self.all[-1]

    @property
    def prompts(self) -> list[str]:
        return [each.prompt for each in self.all]


class Workshop:
    """Speaks to the platform as people and agents do."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self.talks = Talks()
        self.facts["runtime"] = self.talks

    @property
    def facts(self) -> dict[str, Any]:
        return cast("dict[str, Any]", self.fleet.platform.calls.facts)

    @property
    def owner(self) -> Actor:
        return self.fleet.owner

    @property
    def stranger(self) -> Actor:
        """The owner of another tenant on the same database."""
        self.fleet.platform.database.direct(lambda tx: IdentityStore(tx, "other").set_up(), write=True)
        return self.fleet.actor(tenant="other", as_owner=True)

    async def agent(self, name: str, **binding: Any) -> Actor:
        """A session of the agent of that name, which is made if need be."""
        database = self.fleet.platform.database
        known = database.direct(lambda tx: {row.name for row in IdentityStore(tx, "default").agents()})
        if name not in known:
            await self.fleet.call(self.owner, "create_agent", name=name)
        return self.fleet.actor(agent=name, **binding)

    async def do(self, actor: Actor, action: str, **arguments: Any) -> Any:
        return await self.fleet.call(actor, "manage_workflow", action=action, **arguments)

    async def workflow(self, actor: Actor, graph: dict[str, Any], *, active: bool = True, **more: Any) -> str:
        """The id of a new workflow."""
        made = (await self.do(actor, "create", **({"name": "a flow"} | graph | more))).workflows[0]
        if active:
            await self.do(actor, "activate", workflow_id=made["id"])
        return made["id"]

    async def start(self, actor: Actor, graph: dict[str, Any], given: dict[str, Any] | None = None, **more: Any) -> str:
        """The id of a run of a new workflow."""
        workflow_id = await self.workflow(actor, graph, **more)
        return (await self.do(actor, "run", workflow_id=workflow_id, input=given or {})).runs[0]["id"]

    async def status(self, run_id: str, actor: Actor | None = None) -> dict[str, Any]:
        return (await self.do(actor or self.owner, "run_status", run_id=run_id)).runs[0]

    async def until(self, wanted: Callable[[], bool] | str, run_id: str = "") -> None:
        """Wait until something is so, or until the run has this status."""
        deadline = time.monotonic() + LIMIT_S
        while not await self._is(wanted, run_id):
            assert time.monotonic() < deadline, await self.status(run_id) if run_id else "never"
            await asyncio.sleep(0.01)

    async def _is(self, wanted: Callable[[], bool] | str, run_id: str) -> bool:
        return wanted() if callable(wanted) else (await self.status(run_id))["status"] == wanted

    async def ended(self, run_id: str, status: str = "completed", **how: Any) -> dict[str, Any]:
        """The run, once a worker has brought it to its end."""
        async with self.working(**how):
            await self.until(status, run_id)
        return await self.status(run_id)

    @contextlib.asynccontextmanager
    async def working(self, **how: Any) -> AsyncGenerator[None]:
        """A worker that does what workflows ask for, and leaves all other work lying."""
        async with running_worker(cast(Any, Ground(self.fleet)), **how):
            yield

    def rows(self, statement: sa.Executable) -> Sequence[sa.Row[Any]]:
        return self.fleet.platform.database.direct(lambda tx: tx.all(statement))

    def change(self, statement: sa.Executable) -> None:
        self.fleet.platform.database.direct(lambda tx: tx.run(statement), write=True)


@dataclass
class Ground:
    """A platform that knows the jobs of workflows alone."""

    fleet: Fleet

    @property
    def kinds(self) -> Mapping[str, Kind]:
        return {name: kind for name, kind in self.fleet.platform.kinds.items() if name.startswith("workflows.")}

    def __getattr__(self, name: str) -> Any:
        return getattr(self.fleet.platform, name)


def statuses(run: dict[str, Any]) -> dict[str, str]:
    """What became of each node."""
    return {each["id"]: each["status"] for each in run["nodes"]}
