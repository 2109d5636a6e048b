"""What the orchestrator decides from: projects, agents, pauses, issues, and what was dispatched. Plain values."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rookery.domains.tracker.pipeline import AWAITING
from rookery.engine.dispatches import NewDispatch, Outcome, Work
from rookery.engine.project_settings import OrchestratorSettings, Role
from rookery.lifecycle.pauses import Pause
from rookery.lifecycle.states import PHASES

SKIP = "skip:"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """A scan or an intake that could start. Who does it is chosen by the plan, whatever `new.agent` says."""

    tenant: str
    new: NewDispatch


@dataclass(frozen=True, slots=True)
class AgentFact:
    """An agent of a tenant."""

    id: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveFact:
    """A dispatch that has not ended."""

    tenant: str
    project_id: str
    issue_id: str | None
    work: Work
    role: Role
    agent: str
    attempt: int
    running: bool
    since_ms: int


@dataclass(frozen=True, slots=True)
class AttemptFact:
    """How one attempt ended, and when."""

    outcome: Outcome
    ended_ms: int


@dataclass(frozen=True, slots=True)
class FindingFact:
    """A claim or a verdict that was not acted on. `phase` is a claim's, `gates` whether its gates are being run."""

    id: str
    phase: str | None
    outcome: str | None
    gates: bool = False

    @property
    def awaits_verdict(self) -> bool:
        return self.phase is not None and self.outcome == AWAITING


@dataclass(frozen=True, slots=True)
class PrFact:
    """The newest revision of an issue's pull request."""

    id: str
    status: str


Tried = tuple[Work, str | None]
"""What was tried in the issue's phase: the kind of work, and what it was about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IssueFact:
    """An issue with all that decides whether somebody can work on it.

    `waits_for` are dependencies that are not done, with their status. `attempts` are those of the issue's phase, the
    oldest first, without those that a person's unblocking has made good.
    """

    tenant: str
    project_id: str
    id: str
    identifier: str
    status: str
    phase: str
    priority: int
    created_ms: int
    blocked_on: str | None = None
    holder: str | None = None
    held_until_ms: int | None = None
    labels: frozenset[str] = frozenset()
    waits_for: Sequence[tuple[str, str]] = ()
    findings: Sequence[FindingFact] = ()
    pr: PrFact | None = None
    attempts: Mapping[Tried, Sequence[AttemptFact]] = field(default_factory=dict[Tried, Sequence[AttemptFact]])
    spent_micros: int = 0

    @property
    def skipped(self) -> frozenset[str]:
        """The phases that its labels skip."""
        return frozenset(label.removeprefix(SKIP) for label in self.labels if label.startswith(SKIP))


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectFact:
    """A project. `members` are the ids of the agents that have a role in it, None for all of the tenant's.

    `fault` is why what is set for it cannot be read; then it is not worked on.
    """

    tenant: str
    id: str
    slug: str
    folder: str | None
    settings: OrchestratorSettings = field(default_factory=OrchestratorSettings)
    enabled: bool = True
    fault: str | None = None
    pipeline: Sequence[str] = PHASES
    members: frozenset[str] | None = None
    spent_today_micros: int = 0
    attempts: Mapping[Work, Sequence[AttemptFact]] = field(default_factory=dict[Work, Sequence[AttemptFact]])
    """Of scans and intakes, the oldest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """Everything at one moment. `runtime`: there is something that runs agents. `led`: somebody acts on the plan."""

    now_ms: int
    max_agents: int
    daily_budget_usd: float = 0
    spent_today_micros: int = 0
    runtime: bool = True
    led: bool = True
    projects: Sequence[ProjectFact] = ()
    agents: Mapping[str, Sequence[AgentFact]] = field(default_factory=dict[str, Sequence[AgentFact]])
    """By tenant."""
    pauses: Mapping[str, Sequence[Pause]] = field(default_factory=dict[str, Sequence[Pause]])
    """By tenant, the widest first."""
    issues: Sequence[IssueFact] = ()
    live: Sequence[LiveFact] = ()
    wishes: Sequence[Wish] = ()
