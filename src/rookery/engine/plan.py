"""What begins now, and why everything else waits: one decision, for the tick and for whoever asks. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rookery.domains.tracker.pipeline import following
from rookery.engine.dispatches import NewDispatch
from rookery.engine.limits import Room, overspent
from rookery.engine.project_settings import ROLES, Role
from rookery.engine.retrying import MAX_LOST, MAX_ROUNDS, Tries, backoff_ms, tries_of
from rookery.engine.standing import Code, Hindrance, Need, at, chosen_agent, needed, skipped_phase, waits_in_vain
from rookery.engine.world_facts import AgentFact, IssueFact, LiveFact, ProjectFact, Wish, World

__all__ = ["Block", "Plan", "Skip", "Start", "Wait", "Wish", "World", "backoff_ms", "plan"]
REST_MS = 3_600_000
"""So long scans and intakes rest after they have failed too often: they have no issue that could be blocked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """A dispatch that is to be queued."""

    tenant: str
    new: NewDispatch
    identifier: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """Why nothing begins for an issue, or for a scan or an intake of a project. `until_ms` is never over already."""

    tenant: str
    project_id: str
    issue_id: str | None
    identifier: str | None
    code: Code
    reason: str
    until_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """An issue that cannot go on without a person."""

    tenant: str
    project_id: str
    issue_id: str
    identifier: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Skip:
    """An issue that leaves a phase in which nobody has to work."""

    tenant: str
    project_id: str
    issue_id: str
    identifier: str
    phase: str
    to: str
    why: str


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be done now. Every issue of the world is in exactly one of the lists."""

    starts: Sequence[Start] = ()
    waits: Sequence[Wait] = ()
    blocks: Sequence[Block] = ()
    skips: Sequence[Skip] = ()

    def about(self, tenant: str, issue_id: str) -> Wait | None:
        """Why the issue waits; what the next tick does to it is a reason too. None if it is not in the world."""
        for wait in self.waits:
            if (wait.tenant, wait.issue_id) == (tenant, issue_id):
                return wait
        for found, project_id, ref, reason in self._next():
            if (found.tenant, ref) == (tenant, issue_id):
                return Wait(
                    tenant=tenant,
                    project_id=project_id,
                    issue_id=issue_id,
                    identifier=found.identifier,
                    code="next",
                    reason=reason,
                )
        return None

    def _next(self) -> Sequence[tuple[Start | Block | Skip, str, str | None, str]]:
        starts = ((s, s.new.project_id, s.new.issue_id, f"a {s.new.role} begins at the next tick") for s in self.starts)
        blocks = ((b, b.project_id, b.issue_id, f"it is blocked at the next tick: {b.why}") for b in self.blocks)
        skips = ((s, s.project_id, s.issue_id, f"it goes on to {s.to} at the next tick: {s.why}") for s in self.skips)
        return [*starts, *blocks, *skips]


def plan(world: World) -> Plan:
    """Decide for every issue and every wish of the world.

    What was tried before comes first, then by role, priority, age and identifier. Scans and intakes come after all
    issues, so why an issue waits never depends on them.
    """
    return _Planner(world).decide()


@dataclass(frozen=True, slots=True)
class _Candidate:
    """Something that could begin if there is room for it."""

    start: Start
    order: tuple[bool, int, int, int, str, str]


class _Planner:
    def __init__(self, world: World) -> None:
        self._world = world
        self._projects: Mapping[tuple[str, str], ProjectFact] = {
            (each.tenant, each.id): each for each in world.projects
        }
        self._chosen: dict[tuple[str, str, Role], AgentFact | str] = {}
        self._room = Room(world.max_agents, world.live)
        self._starts: list[Start] = []
        self._waits: list[Wait] = []
        self._blocks: list[Block] = []
        self._skips: list[Skip] = []

    def decide(self) -> Plan:
        live = {(each.tenant, each.issue_id): each for each in self._world.live if each.issue_id is not None}
        found = (self._issue(issue, live.get((issue.tenant, issue.id))) for issue in self._world.issues)
        for candidate in sorted((each for each in found if each is not None), key=lambda each: each.order):
            self._fit(candidate.start)
        self._background()
        return Plan(self._starts, self._waits, self._blocks, self._skips)

    def _issue(self, issue: IssueFact, live: LiveFact | None) -> _Candidate | None:
        """What could begin for the issue; None if it was put into one of the lists."""
        project = self._projects[issue.tenant, issue.project_id]
        need = needed(issue, project, live, self._world.agents.get(issue.tenant, ()), self._world.now_ms)
        hindered = self._unled() or self._paused(project, None)
        if isinstance(need, Hindrance):
            if need.code == "dependency" and hindered is None and (why := waits_in_vain(issue)) is not None:
                self._blocks.append(Block(**_whose(issue), why=why))
                return None
            return self._wait(issue, need if need.code != "unprocessed" else self._unled() or need)
        if hindered is not None:
            return self._wait(issue, hindered)
        why = skipped_phase(issue, project) if need.work == "phase" else None
        if why is not None:
            self._skips.append(Skip(**_whose(issue), phase=issue.phase, to=_to(issue, project), why=why))
            return None
        return self._prepared(issue, project, need)

    def _prepared(self, issue: IssueFact, project: ProjectFact, need: Need) -> _Candidate | None:
        tries = tries_of(issue.attempts.get((need.work, need.about), ()))
        agent = self._agent(need.role, project)
        if isinstance(agent, Hindrance):
            return self._wait(issue, agent)
        most = project.settings.max_retries
        if tries.used_up(most) or tries.rounds >= MAX_ROUNDS:
            self._blocks.append(Block(**_whose(issue), why=_given_up(issue, need, tries, most)))
            return None
        hindered = self._retry(tries, tries.due_ms) or overspent(self._world, project, issue)
        if hindered is not None:
            return self._wait(issue, hindered)
        new = NewDispatch(
            project_id=issue.project_id,
            work=need.work,
            role=need.role,
            agent=agent.id,
            issue_id=issue.id,
            phase=issue.phase,
            about=need.about,
            attempt=tries.next_attempt,
        )
        order = (new.attempt == 1, ROLES.index(need.role), issue.priority, issue.created_ms, issue.identifier)
        return _Candidate(Start(tenant=issue.tenant, new=new, identifier=issue.identifier), (*order, issue.tenant))

    def _background(self) -> None:
        """Scans and intakes, one of each for a project at most."""
        busy = {(each.tenant, each.project_id, each.work) for each in self._world.live if each.issue_id is None}
        for wish in sorted(self._world.wishes, key=lambda wish: ROLES.index(wish.new.role)):
            project = self._projects.get((wish.tenant, wish.new.project_id))
            key = (wish.tenant, wish.new.project_id, wish.new.work)
            if project is None or not project.enabled or key in busy:
                continue
            busy.add(key)
            start = self._granted(wish, project)
            if isinstance(start, Hindrance):
                self._wait(wish, start)
            else:
                self._fit(start)

    def _granted(self, wish: Wish, project: ProjectFact) -> Start | Hindrance:
        tries = tries_of(project.attempts.get(wish.new.work, ()))
        agent = self._unled() or self._paused(project, None) or self._agent(wish.new.role, project)
        if isinstance(agent, Hindrance):
            return agent
        given_up = tries.used_up(project.settings.max_retries)
        due_ms = tries.ended_ms + REST_MS if given_up else tries.due_ms
        hindered = self._retry(tries, due_ms) or overspent(self._world, project, None)
        attempt = max(wish.new.attempt, tries.next_attempt)
        return hindered or Start(tenant=wish.tenant, new=replace(wish.new, agent=agent.id, attempt=attempt))

    def _agent(self, role: Role, project: ProjectFact) -> AgentFact | Hindrance:
        """Who does it, if anybody can be run there at all."""
        if not self._world.runtime:
            return Hindrance("no_runtime", "nothing is set up that runs agents: the setting runtime says what does")
        if not project.folder:
            return Hindrance("no_folder", f"the project {project.slug} has no folder in which agents could work")
        key = (project.tenant, project.id, role)
        if key not in self._chosen:
            self._chosen[key] = chosen_agent(role, project, self._world.agents.get(project.tenant, ()))
        agent = self._chosen[key]
        if isinstance(agent, str):
            return Hindrance("no_agent", agent)
        return self._paused(project, agent.id) or agent

    def _unled(self) -> Hindrance | None:
        return None if self._world.led else Hindrance("no_leader", "no orchestrator is at work: rookery up starts one")

    def _paused(self, project: ProjectFact, agent_id: str | None) -> Hindrance | None:
        """The widest pause of the tenant, the project, or the agent if one is given."""
        held = {"all": (None,), "project": (project.id,), "agent": (agent_id,) if agent_id is not None else ()}
        for pause in self._world.pauses.get(project.tenant, ()):
            if pause.target in held[pause.scope]:
                return Hindrance("paused", pause.said)
        return None

    def _retry(self, tries: Tries, due_ms: int) -> Hindrance | None:
        if due_ms <= self._world.now_ms:
            return None
        told = f"{tries.told}; the next one begins after {at(due_ms)}"
        return Hindrance("retry", told, due_ms)

    def _fit(self, start: Start) -> None:
        """Let it begin if no cap is in the way."""
        new = start.new
        full = self._room.full(self._projects[start.tenant, new.project_id], new)
        if full is not None:
            self._wait(start, full)
            return
        self._room.take(start.tenant, new.project_id, new.role)
        self._starts.append(start)

    def _wait(self, what: IssueFact | Start | Wish, why: Hindrance) -> None:
        whose = _whose(what) if isinstance(what, IssueFact) else _wanted(what)
        self._waits.append(Wait(**whose, code=why.code, reason=why.reason, until_ms=why.until_ms))


def _whose(issue: IssueFact) -> dict[str, Any]:
    names = {"tenant": issue.tenant, "project_id": issue.project_id}
    return {**names, "issue_id": issue.id, "identifier": issue.identifier}


def _wanted(what: Start | Wish) -> dict[str, Any]:
    identifier = what.identifier if isinstance(what, Start) else None
    names = {"tenant": what.tenant, "project_id": what.new.project_id}
    return {**names, "issue_id": what.new.issue_id, "identifier": identifier}


def _to(issue: IssueFact, project: ProjectFact) -> str:
    return following(issue.phase, project.pipeline, issue.skipped)


def _given_up(issue: IssueFact, need: Need, tries: Tries, max_retries: int) -> str:
    if tries.failures > max_retries:
        often = "once" if tries.failures == 1 else f"{tries.failures} times"
        return f"The {need.role} failed {often} in {issue.phase}; the last attempt ended as {tries.last}."
    if tries.losses > MAX_LOST:
        return f"The worker died {tries.losses} times while the {need.role} was at work in {issue.phase}."
    return f"The {need.role} did the work of {issue.phase} {tries.rounds} times, and each time it was sent back."
