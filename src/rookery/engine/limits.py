"""How much may go on at once, and how much may be spent. Pure."""

from collections import Counter
from collections.abc import Iterable

from rookery.engine.dispatches import NewDispatch
from rookery.engine.standing import Hindrance
from rookery.engine.world_facts import IssueFact, LiveFact, ProjectFact, World

DAY_MS = 86_400_000
MICROS = 1_000_000


class Room:
    """How many agents are at work: in all, in each project, and in each role of a project."""

    def __init__(self, max_agents: int, live: Iterable[LiveFact]) -> None:
        self._most = max_agents
        self._taken: Counter[tuple[str, ...]] = Counter()
        for each in live:
            self.take(each.tenant, each.project_id, each.role)

    def take(self, tenant: str, project_id: str, role: str) -> None:
        """One more is at work."""
        self._taken.update([(), (tenant, project_id), (tenant, project_id, role)])

    def full(self, project: ProjectFact, new: NewDispatch) -> Hindrance | None:
        """Which cap keeps it from beginning; None if there is room."""
        settings, here = project.settings, (project.tenant, project.id)
        if (busy := self._taken[()]) >= self._most:
            told = f"{busy} of at most {self._most} agents are at work in this installation"
            return Hindrance("cap_global", told)
        if (busy := self._taken[here]) >= settings.max_agents:
            return Hindrance(
                "cap_project", f"{busy} of at most {settings.max_agents} agents are at work in {project.slug}"
            )
        most = settings.role_caps.get(new.role)
        if most is not None and (busy := self._taken[*here, new.role]) >= most:
            told = f"{busy} of at most {most} agents are at work in {project.slug} as {new.role}"
            return Hindrance("cap_role", told)
        return None


def overspent(world: World, project: ProjectFact, issue: IssueFact | None) -> Hindrance | None:
    """Which budget is used up; None if there is something left of each. Days are those of UTC."""
    settings = project.settings
    if issue is not None and (told := _used(issue.spent_micros, settings.issue_budget_usd)) is not None:
        return Hindrance("budget_issue", f"it has cost {told}; rookery orchestrator configure can allow more")
    midnight = (world.now_ms // DAY_MS + 1) * DAY_MS
    if (told := _used(project.spent_today_micros, settings.daily_budget_usd)) is not None:
        return Hindrance("budget_project", f"{project.slug} has spent {told} of today (UTC)", midnight)
    # The installation's setting has no other way to say that there is no limit.
    if (told := _used(world.spent_today_micros, world.daily_budget_usd or None)) is not None:
        return Hindrance("budget_global", f"this installation has spent {told} of today (UTC)", midnight)
    return None


def _used(spent_micros: int, budget_usd: float | None) -> str | None:
    if budget_usd is None or spent_micros < round(budget_usd * MICROS):
        return None
    return f"{spent_micros / MICROS:.2f} of {budget_usd:.2f} dollars"
