"""Worlds for the tests of what is decided: one project, one agent for everything, and what a test adds to it."""

from typing import Any

from rookery.engine.dispatches import NewDispatch, Outcome
from rookery.engine.plan import Plan, Start, Wait, plan
from rookery.engine.project_settings import OrchestratorSettings
from rookery.engine.world_facts import (
    AgentFact,
    AttemptFact,
    FindingFact,
    IssueFact,
    LiveFact,
    ProjectFact,
    Wish,
    World,
)
from rookery.lifecycle.pauses import Pause, Scope

NOW = 1_800_000_000_000
DAY_MS = 86_400_000
DEFAULT = AgentFact("agt-default", "default")


def an_issue(number: int = 1, **values: Any) -> IssueFact:
    """An issue that a worker could begin with."""
    first: dict[str, Any] = {
        "tenant": "t",
        "project_id": "p",
        "id": f"iss-{number}",
        "identifier": f"P-{number:03}",
        "status": "todo",
        "phase": "ready",
        "priority": 3,
        "created_ms": NOW - DAY_MS + number,
    }
    return IssueFact(**{**first, **values})


def a_project(**values: Any) -> ProjectFact:
    """A project in which work can go on; what is no fact of it is a setting."""
    facts = {name: values.pop(name) for name in list(values) if name in ProjectFact.__slots__}
    first: dict[str, Any] = {"tenant": "t", "id": "p", "slug": "shop", "folder": "/srv/shop"}
    return ProjectFact(**{**first, "settings": OrchestratorSettings(**values), **facts})


def a_world(*issues: IssueFact, project: ProjectFact | None = None, **values: Any) -> World:
    first: dict[str, Any] = {"now_ms": NOW, "max_agents": 10, "agents": {"t": [DEFAULT]}}
    return World(**{**first, "projects": [project or a_project()], "issues": issues, **values})


def live(issue: IssueFact | None = None, **values: Any) -> LiveFact:
    """An agent at work: on the issue, or on another that nobody asks about."""
    first: dict[str, Any] = {"work": "phase", "role": "worker", "agent": DEFAULT.id, "attempt": 1, "running": True}
    place = {"tenant": "t", "project_id": "p", "issue_id": issue.id if issue is not None else "iss-elsewhere"}
    return LiveFact(**{**first, **place, "since_ms": NOW - 1, **values})


def ended(*outcomes: Outcome, at_ms: int = NOW) -> list[AttemptFact]:
    """Attempts that ended so, one after the other, the last one at this time."""
    return [AttemptFact(outcome, at_ms - len(outcomes) + 1 + number) for number, outcome in enumerate(outcomes)]


def claimed(
    finding: str = "pc-1", phase: str | None = "research", outcome: str | None = "awaiting_verdict"
) -> FindingFact:
    return FindingFact(finding, phase, outcome)


def paused(scope: Scope, target: str | None = None) -> dict[str, list[Pause]]:
    pause = Pause(scope=scope, target=target, name=None, reason="a fire", by="per-1", by_name="owner", at_ms=NOW)
    return {"t": [pause]}


def a_wish(work: str = "scan", **values: Any) -> Wish:
    role = "scanner" if work == "scan" else work
    return Wish(tenant="t", new=NewDispatch(**{"project_id": "p", "work": work, "role": role, "agent": "", **values}))


def started(world: World) -> list[str | None]:
    """Which issues begin, in order."""
    return [start.identifier for start in plan(world).starts]


def the_start(world: World) -> Start:
    decided = plan(world)
    (start,) = decided.starts
    assert not decided.waits
    return start


def the_wait(world: World) -> Wait:
    """Why the only issue, or the only wish, waits. Nothing begins."""
    decided = plan(world)
    assert (decided.starts, decided.blocks, decided.skips) == ([], [], [])
    (wait,) = decided.waits
    return wait


def nothing_begins(decided: Plan) -> bool:
    return not decided.starts and not decided.skips and not decided.blocks
