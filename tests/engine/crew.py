"""A project with a real repository that agents are dispatched to, and agents that play the scripts they are given."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import sqlalchemy as sa

from rookery.app import Platform
from rookery.core.actor import Actor
from rookery.db.tx import Tx
from rookery.domains.tracker.advance import Advanced, advance
from rookery.domains.tracker.tables import comments, issue_changes
from rookery.engine.dispatches import Dispatches, NewDispatch
from rookery.engine.project_settings import OrchestratorProjects
from rookery.engine.tables import dispatches
from rookery.lifecycle.issue_tables import issues
from rookery.lifecycle.run_tables import agent_runs, run_events
from tests.domains.tracker.claimant import good_text
from tests.domains.tracker.desk import Desk
from tests.jobs.working import running_worker, settled
from tests.platform_fixtures import Fleet
from tests.sessions.stage import use_sessions

ROLES = {"research": "researcher", "architecture": "architect", "grooming": "planner", "ready": "worker"}
ARTIFACTS = {"research": "research.md", "architecture": "design.md", "grooming": "grooming.md"}
Script = Callable[["Started"], Sequence[str]]


@dataclass(frozen=True)
class Started:
    """A session that was asked for."""

    actor: Actor
    prompt: str
    how: dict[str, Any]

    @property
    def folder(self) -> Path:
        return Path(self.how["cwd"])


def call(tool: str, **arguments: Any) -> str:
    """The line of a script that calls a tool of the platform."""
    return f"!call {tool} {json.dumps(arguments)}"


def claim_ready(started: Started, **changes: Any) -> str:
    given = {"completed_phase": "ready", "summary": "done", "project_path": str(started.folder), **changes}
    return call("complete_phase", **given)


def build(started: Started) -> list[str]:
    """What a worker does that is in order: a commit, and its claim."""
    return ["!write a.txt one", "!commit add a.txt", claim_ready(started)]


def write_artifact(started: Started) -> list[str]:
    """What those do who work before ready: the artifact, and its claim."""
    import hashlib

    phase = started.actor.phase or ""
    path = f"docs/tickets/{started.actor.issue_identifier}/{ARTIFACTS[phase]}"
    text = good_text(phase).rstrip("\n")
    claim = call(
        "complete_phase",
        completed_phase=phase,
        summary="done",
        project_path=str(started.folder),
        contract_version=1,
        artifact_path=path,
        artifact_hash=hashlib.sha256(f"{text}\n".encode()).hexdigest(),
        recommended_next_phase="ready",
    )
    return [f"!write {path} {text.replace(chr(10), chr(92) + 'n')}", claim]


@dataclass
class Playing:
    """The scripted runtime, which keeps what it was asked for and plays what `script` says instead of the prompt."""

    platform: Platform
    script: Script
    started: list[Started] = field(default_factory=list[Started])

    def __post_init__(self) -> None:
        self.inner = use_sessions(self.platform)
        cast("dict[str, Any]", self.platform.calls.facts)["runtime"] = self

    async def start_session(self, actor: Actor, prompt: str, **how: Any) -> Any:
        self.started.append(Started(actor, prompt, how))
        return await self.inner.start_session(actor, "\n".join(self.script(self.started[-1])), **how)

    @property
    def prompts(self) -> list[str]:
        return [each.prompt for each in self.started]


class Crew(Desk):
    """The project `shop` is worked on; its agents play `script`."""

    def __init__(self, fleet: Fleet, folder: Path, *, plays: bool = True) -> None:
        super().__init__(fleet, folder)
        self.platform = fleet.platform
        self.repository = folder / "shop"
        if plays:
            self.runtime = Playing(fleet.platform, build)

    async def open(self, *script: Script, **settings: Any) -> None:
        """Make the project, and let it be worked on with these settings."""
        if not self.repository.exists():
            await self.git_project("shop")
        self.set(**settings)
        for each in script:
            self.runtime.script = each

    def set(self, *, enabled: bool = True, **settings: Any) -> None:
        project = self.person("shop").project
        assert project is not None
        self.write(lambda tx: OrchestratorProjects(tx, "default").update(project, enabled=enabled, **settings))

    def play(self, *script: str) -> None:
        """From now on every agent does this."""
        self.runtime.script = lambda started: script

    async def todo(self, title: str = "login fails", *, phase: str = "ready", **fields: Any) -> sa.Row[Any]:
        return await self.issue(title, phase=phase, status="todo", project="shop", **fields)

    def queue(self, issue: sa.Row[Any] | None, **more: Any) -> sa.Row[Any]:
        """Dispatch an agent as the plan would: at the issue's phase, unless something else is said."""
        agent = self.fleet.actor(project="shop").agent
        given: dict[str, Any] = {"work": "phase", "agent": agent, "project_id": self.person("shop").project}
        if issue is not None:
            given |= {"issue_id": issue.id, "phase": issue.phase, "role": ROLES[issue.phase]}
        row = self.write(lambda tx: Dispatches(tx, "default").queue(NewDispatch(**{**given, **more})))
        assert row is not None
        return row

    async def work(self, **how: Any) -> None:
        """Let a worker do everything that is due."""
        async with running_worker(self.platform, **how):
            await settled(self.platform, within_s=60)

    async def dispatched(self, issue: sa.Row[Any] | None, **more: Any) -> sa.Row[Any]:
        """An attempt from its queue to its end."""
        queued = self.queue(issue, **more)
        await self.work()
        return self.row(queued)

    async def advance(self) -> list[Advanced]:
        return await advance(self.platform.calls, "default", "shop")

    def row(self, dispatch: sa.Row[Any]) -> sa.Row[Any]:
        return self.rows(sa.select(dispatches).where(dispatches.c.id == dispatch.id))[0]

    def came_to(self, dispatch: sa.Row[Any]) -> tuple[str, str, str | None]:
        row = self.row(dispatch)
        return row.state, row.outcome, row.error

    def standing(self, issue: sa.Row[Any]) -> tuple[str, str | None]:
        """The issue's status, and who holds it."""
        row = self.reload(issue)
        return row.status, row.lease_session

    def said(self, issue: sa.Row[Any]) -> list[str]:
        """What the orchestrator commented."""
        mine = (comments.c.issue_id == issue.id, comments.c.subject == "orchestrator")
        return [row.content for row in self.rows(sa.select(comments).where(*mine).order_by(comments.c.seq))]

    def reasons(self, issue: sa.Row[Any]) -> list[str | None]:
        """Why its status changed, each time."""
        mine = (issue_changes.c.issue_id == issue.id, issue_changes.c.field == "status")
        return [row.why for row in self.rows(sa.select(issue_changes).where(*mine).order_by(issue_changes.c.seq))]

    def runs(self) -> Sequence[sa.Row[Any]]:
        return self.rows(sa.select(agent_runs).order_by(agent_runs.c.created_ms, agent_runs.c.id))

    def events(self, run_id: str) -> Sequence[sa.Row[Any]]:
        return self.rows(sa.select(run_events).where(run_events.c.run_id == run_id).order_by(run_events.c.number))

    def lease_until(self, issue: sa.Row[Any]) -> int:
        return self.rows(sa.select(issues.c.lease_until_ms).where(issues.c.id == issue.id))[0][0]

    def write(self, work: Callable[[Tx], Any]) -> Any:
        return self.platform.database.direct(work, write=True)
