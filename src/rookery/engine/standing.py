"""Where an issue stands by itself: what has to be done for it next, or what of its own it waits for. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from rookery.domains.tracker.lease_store import NEEDS_PLANNING
from rookery.engine.dispatches import Work
from rookery.engine.project_settings import Role
from rookery.engine.world_facts import SKIP, AgentFact, IssueFact, LiveFact, ProjectFact
from rookery.identity.store import DEFAULT_AGENT
from rookery.lifecycle.states import FINISHED

Code = Literal[
    "not_enabled",
    "no_runtime",
    "paused",
    "status",
    "dependency",
    "label",
    "held",
    "running",
    "unprocessed",
    "gates",
    "cap_global",
    "cap_project",
    "cap_role",
    "budget_issue",
    "budget_project",
    "budget_global",
    "retry",
    "no_agent",
    "no_folder",
    "no_leader",
    "next",
]
SHOWN_DEPENDENCIES = 5
_PHASE_ROLES: dict[str, Role] = {
    "research": "researcher",
    "architecture": "architect",
    "grooming": "planner",
    "ready": "worker",
}
_STATUS = {
    "backlog": "it is in the backlog; it can begin when somebody moves it to todo",
    "done": "it is done",
    "cancelled": "it is cancelled",
}


@dataclass(frozen=True, slots=True)
class Hindrance:
    """Why nothing begins, as a sentence, and until when if a time ends it."""

    code: Code
    reason: str
    until_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Need:
    """What has to be done for an issue, and by which role."""

    work: Work
    role: Role
    about: str | None = None


def needed(
    issue: IssueFact, project: ProjectFact, live: LiveFact | None, agents: Sequence[AgentFact], now_ms: int
) -> Need | Hindrance:
    """What the issue needs next, or what of its own keeps it waiting."""
    if issue.status in (*FINISHED, "backlog", "blocked"):
        return Hindrance("status", _STATUS.get(issue.status) or _blocked(issue))
    if live is not None:
        return Hindrance("running", _running(live))
    if not project.enabled:
        why = project.fault or "rookery orchestrator enable starts it"
        return Hindrance("not_enabled", f"the orchestrator does not work on {project.slug}: {why}")
    if (waiting := _unprocessed(issue)) is not None:
        return waiting
    if (held := _held(issue, now_ms)) is not None:
        return held
    if issue.findings:
        return Need("judge_phase", "judge", issue.findings[-1].id)
    if issue.status == "review":
        return _reviewed(issue)
    return _hindered(issue, project) or Need("phase", phase_role(issue.phase, project, agents))


def phase_role(phase: str, project: ProjectFact, agents: Sequence[AgentFact]) -> Role:
    """Who works in a phase. Without an architect a researcher makes the design."""
    role = _PHASE_ROLES[phase]
    if role != "architect" or role in project.settings.agents or any(agent.name.lower() == role for agent in agents):
        return role
    return "researcher"


def chosen_agent(role: Role, project: ProjectFact, agents: Sequence[AgentFact]) -> AgentFact | str:
    """The agent that does the work of a role in the project, or why there is none.

    It is the one that the project has set, else the one that is called like the role, else the tenant's default one.
    """
    wanted = project.settings.agents.get(role)
    for name in (wanted,) if wanted is not None else (role, DEFAULT_AGENT):
        found = next((agent for agent in agents if name in (agent.id, agent.name)), None)
        found = found or next((agent for agent in agents if agent.name.lower() == name.lower()), None)
        if found is None:
            continue
        if project.members is not None and found.id not in project.members:
            return f"the agent {found.name}, the {role}, has no role in the project {project.slug}"
        return found
    if wanted is not None:
        return f"there is no agent {wanted}, which is set as the {role} of {project.slug}"
    return f"there is no agent for the {role}: none is set for it, and none is called {role} or {DEFAULT_AGENT}"


def skipped_phase(issue: IssueFact, project: ProjectFact) -> str | None:
    """Why the issue leaves its phase without anybody working in it; None if it does not. `ready` is never left so."""
    if issue.phase == "ready" or issue.status != "todo":
        return None
    if issue.phase in issue.skipped:
        return f"it is labelled {SKIP}{issue.phase}"
    return None if issue.phase in project.pipeline else f"the project has no {issue.phase}"


def waits_in_vain(issue: IssueFact) -> str | None:
    """Why what the issue waits for will never be done; None if it may be."""
    gone = [identifier for identifier, status in issue.waits_for if status == "cancelled"]
    if not gone:
        return None
    named = f"{', '.join(gone[:SHOWN_DEPENDENCIES])}, which {'was' if len(gone) == 1 else 'were'} cancelled"
    return f"It depends on {named}: let it depend on others or on none and move it to todo, or cancel it as well."


def at(ms: int) -> str:
    """A moment as people read it."""
    return datetime.fromtimestamp(ms // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _blocked(issue: IssueFact) -> str:
    return f"it is blocked and waits for {'its subtasks' if issue.blocked_on == 'subtasks' else 'a person'}"


def _running(live: LiveFact) -> str:
    attempt = f", attempt {live.attempt}" if live.attempt > 1 else ""
    return f"the {live.role} {'works' if live.running else 'is to begin'} since {at(live.since_ms)}{attempt}"


def _unprocessed(issue: IssueFact) -> Hindrance | None:
    *before, last = issue.findings or (None,)
    if last is None or (not before and last.awaits_verdict and last.phase == issue.phase):
        return None
    if any(finding.gates for finding in issue.findings):
        return Hindrance("gates", "the gates of the project are run on what was claimed")
    return Hindrance("unprocessed", "what was claimed or judged is acted on at the next tick")


def _held(issue: IssueFact, now_ms: int) -> Hindrance | None:
    until = issue.held_until_ms
    if issue.status != "in_progress" or (until is not None and until <= now_ms):
        return None
    if until is None:
        return Hindrance("held", "it is in progress without a lease, with whom it was given to")
    return Hindrance("held", f"{issue.holder or 'somebody'} holds it until {at(until)}", until)


def _reviewed(issue: IssueFact) -> Need | Hindrance:
    if issue.pr is not None and issue.pr.status == "open":
        return Need("judge_pr", "judge", issue.pr.id)
    if issue.pr is not None and issue.pr.status == "approved":
        return Hindrance("status", "its pull request is approved and waits to be merged: rookery merge does it")
    return Hindrance("status", "it is in review, and nothing of it waits for a judge: a person has to move it on")


def _hindered(issue: IssueFact, project: ProjectFact) -> Hindrance | None:
    if issue.waits_for:
        shown = [f"{identifier} ({status})" for identifier, status in issue.waits_for[:SHOWN_DEPENDENCIES]]
        more = len(issue.waits_for) - len(shown)
        return Hindrance("dependency", f"it waits for {', '.join(shown)}{f' and {more} more' if more else ''}")
    if issue.phase == "ready" and NEEDS_PLANNING in issue.labels:
        groomed = "grooming" in project.pipeline and "grooming" not in issue.skipped
        way = "move it to the phase grooming, or take the label away" if groomed else "take the label away"
        return Hindrance("label", f"it is labelled {NEEDS_PLANNING}, which keeps workers away: plan it, then {way}")
    return None
