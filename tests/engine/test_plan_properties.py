"""What holds for every plan, whatever the world looks like."""

import random
from collections import Counter
from dataclasses import replace
from typing import Any

from hypothesis import event, given, settings
from hypothesis import strategies as st

from rookery.engine.dispatches import Outcome
from rookery.engine.plan import Plan, Start, backoff_ms, plan
from rookery.engine.project_settings import ROLES
from rookery.engine.world_facts import AgentFact, AttemptFact, FindingFact, IssueFact, PrFact, ProjectFact, Tried, World
from rookery.lifecycle.pauses import Pause, Scope
from rookery.lifecycle.states import PHASES
from tests.engine.worlds import DEFAULT, NOW, a_project, a_wish, a_world, an_issue, live

MANY = settings(max_examples=500, deadline=None)
PROJECTS = ("p", "q")
AGENTS = [DEFAULT, AgentFact("agt-w", "worker"), AgentFact("agt-j", "judge")]
FAILURES: tuple[Outcome, ...] = ("failed", "timed_out", "stalled", "idle")
OUTCOMES: tuple[Outcome, ...] = ("succeeded", "lost", "cancelled", *FAILURES)
LABELS = ("needs-planning", *(f"skip:{phase}" for phase in PHASES))
STATUSES = ("todo", "todo", "todo", "todo", "review", "review", "in_progress", "backlog", "blocked", "done")
TRIED: tuple[Tried, ...] = (("phase", None), ("judge_phase", "pc-1"), ("judge_pr", "pr-1"))
PAUSES: tuple[tuple[Scope, str | None], ...] = (
    ("all", None),
    ("project", "p"),
    ("agent", DEFAULT.id),
    ("agent", "agt-j"),
)


class Chance:
    """Draws a world. One number stands for all of it: to draw each value by itself took a hundred times as long."""

    def __init__(self, seed: int) -> None:
        self.luck = random.Random(seed)

    def one_in(self, times: int) -> bool:
        return self.luck.randrange(times) == 0

    def attempts(self) -> list[AttemptFact]:
        if not self.one_in(3):
            return []
        times = sorted(NOW - self.luck.randrange(400_000) for _ in range(self.luck.randint(1, 6)))
        return [AttemptFact(self.luck.choice(OUTCOMES), at_ms) for at_ms in times]

    def micros(self) -> int:
        return self.luck.choice([0, 0, 999_999, 1_000_000, 5_000_000])

    def budget(self) -> float | None:
        return self.luck.choice([None, None, None, 1.0, 3.0])

    def project(self, name: str) -> ProjectFact:
        luck = self.luck
        return a_project(
            id=name,
            slug=name,
            enabled=not self.one_in(10),
            folder=None if self.one_in(10) else "/srv/shop",
            pipeline=("research", "ready") if self.one_in(4) else PHASES,
            members=frozenset({DEFAULT.id, "agt-w"}) if self.one_in(4) else None,
            max_agents=luck.randint(0, 6),
            role_caps={role: luck.randint(0, 2) for role in ROLES if self.one_in(5)},
            max_retries=luck.randint(0, 3),
            issue_budget_usd=self.budget(),
            daily_budget_usd=self.budget(),
            spent_today_micros=self.micros(),
            attempts={"scan": self.attempts()},
        )

    def issue(self, number: int) -> IssueFact:
        luck = self.luck
        phase = luck.choice(PHASES)
        claim = FindingFact("pc-1", "research" if self.one_in(4) else phase, "awaiting_verdict")
        verdict = FindingFact("pv-1", None, None)
        return an_issue(
            number,
            project_id=luck.choice(PROJECTS),
            status=luck.choice(STATUSES),
            phase=phase,
            priority=luck.randint(1, 4),
            created_ms=NOW - luck.randrange(3),
            held_until_ms=luck.choice([None, NOW - 1, NOW, NOW + 1]),
            labels=frozenset(label for label in LABELS if self.one_in(10)),
            waits_for=[("P-900", "todo")] if self.one_in(8) else (),
            findings=luck.choice([[], [], [], [], [claim], [claim], [claim, verdict], [verdict]]),
            pr=luck.choice([None, PrFact("pr-1", "open"), PrFact("pr-1", "approved")]),
            attempts={each: self.attempts() for each in TRIED},
            spent_micros=self.micros(),
        )

    def world(self) -> World:
        luck = self.luck
        found = [self.issue(number) for number in range(1, luck.randint(2, 14))]
        told: dict[str, Any] = {"name": None, "reason": "", "by": "per-1", "by_name": "owner", "at_ms": NOW}
        stopped = [luck.choice(PAUSES)] if self.one_in(4) else []
        return a_world(
            *found,
            projects=[self.project(name) for name in PROJECTS],
            agents={"t": AGENTS},
            max_agents=luck.randint(0, 10),
            daily_budget_usd=3.0 if self.one_in(4) else 0,
            spent_today_micros=self.micros(),
            runtime=not self.one_in(20),
            led=not self.one_in(20),
            pauses={"t": [Pause(scope=scope, target=target, **told) for scope, target in stopped]},
            live=[live(each, project_id=each.project_id, role=luck.choice(ROLES)) for each in found if self.one_in(6)],
            wishes=[a_wish(luck.choice(["scan", "intake"]), project_id=luck.choice(PROJECTS)) for _ in range(3)],
        )


def worlds() -> st.SearchStrategy[World]:
    return st.integers(0, 2**48).map(lambda seed: Chance(seed).world())


def project_of(world: World, start: Start) -> ProjectFact:
    return next(each for each in world.projects if each.id == start.new.project_id)


def issue_of(world: World, start: Start) -> IssueFact:
    return next(each for each in world.issues if each.id == start.new.issue_id)


def of_issues(decided: Plan) -> list[Start]:
    return [start for start in decided.starts if start.new.issue_id is not None]


def counted(attempts: Any) -> tuple[int, int, int]:
    """Failures, losses and when the next attempt is due, told from the end of the row backwards."""
    bad: list[AttemptFact] = []
    for attempt in reversed(attempts):
        if attempt.outcome == "succeeded":
            break
        bad += [attempt] if attempt.outcome != "cancelled" else []
    losses = sum(each.outcome == "lost" for each in bad)
    if not bad:
        return 0, 0, 0
    delay = 1_000 if bad[0].outcome == "lost" else backoff_ms(len(bad) - losses)
    return len(bad) - losses, losses, bad[0].ended_ms + delay


@MANY
@given(worlds())
def test_every_issue_is_decided_once_and_can_be_asked_about(world: World) -> None:
    decided = plan(world)
    named = [start.new.issue_id for start in of_issues(decided)]
    named += [each.issue_id for each in (*decided.waits, *decided.blocks, *decided.skips) if each.issue_id]
    assert Counter(named) == Counter(each.id for each in world.issues)
    for issue in world.issues:
        told = decided.about("t", issue.id)
        assert told is not None
        assert told.reason
        event(told.code)
    assert all(wait.until_ms is None or wait.until_ms > world.now_ms for wait in decided.waits)


@MANY
@given(worlds())
def test_no_cap_is_ever_exceeded_and_no_room_is_left_unused(world: World) -> None:
    decided = plan(world)
    everybody = [*((each.project_id, each.role) for each in world.live)]
    everybody += [(start.new.project_id, start.new.role) for start in decided.starts]
    in_project, in_role = Counter(place for place, _ in everybody), Counter(everybody)
    for start in decided.starts:
        most = project_of(world, start).settings
        assert len(everybody) <= world.max_agents
        assert in_project[start.new.project_id] <= most.max_agents
        assert in_role[start.new.project_id, start.new.role] <= most.role_caps.get(start.new.role, 99)
    for wait in decided.waits:
        if wait.code == "cap_global":
            assert len(everybody) >= world.max_agents
        elif wait.code == "cap_project":
            assert in_project[wait.project_id] >= next(
                each.settings.max_agents for each in world.projects if each.id == wait.project_id
            )


@MANY
@given(worlds())
def test_nothing_begins_twice_or_beside_what_lives(world: World) -> None:
    decided = plan(world)
    begun = [start.new.issue_id for start in of_issues(decided)]
    assert len(set(begun)) == len(begun)
    assert not set(begun) & {each.issue_id for each in world.live}
    background = [(start.new.project_id, start.new.work) for start in decided.starts if start.new.issue_id is None]
    assert len(set(background)) == len(background)


@MANY
@given(worlds(), st.integers(0, 2**48))
def test_the_order_is_by_role_priority_age_and_identifier_whatever_the_order_of_reading(
    world: World, seed: int
) -> None:
    decided = plan(world)
    keys = [
        (
            start.new.attempt == 1,
            ROLES.index(start.new.role),
            issue_of(world, start).priority,
            issue_of(world, start).created_ms,
            start.identifier,
        )
        for start in of_issues(decided)
    ]
    assert keys == sorted(keys)
    shuffled = random.Random(seed).sample(list(world.issues), len(world.issues))
    assert plan(replace(world, issues=shuffled)).starts == decided.starts


@MANY
@given(worlds())
def test_what_is_paused_over_budget_or_cannot_run_never_begins(world: World) -> None:
    for start in plan(world).starts:
        project = project_of(world, start)
        limits = project.settings
        assert world.runtime
        assert world.led
        assert project.enabled
        assert project.folder
        assert project.members is None or start.new.agent in project.members
        for pause in world.pauses["t"]:
            assert pause.target not in (None, project.id, start.new.agent)
        assert limits.daily_budget_usd is None or project.spent_today_micros < limits.daily_budget_usd * 1e6
        assert not world.daily_budget_usd or world.spent_today_micros < world.daily_budget_usd * 1e6
        if start.new.issue_id is not None and limits.issue_budget_usd is not None:
            assert issue_of(world, start).spent_micros < limits.issue_budget_usd * 1e6


@MANY
@given(worlds())
def test_nothing_is_tried_too_early_or_too_often_and_given_up_only_then(world: World) -> None:
    decided = plan(world)
    for start in of_issues(decided):
        failures, losses, due_ms = counted(issue_of(world, start).attempts[start.new.work, start.new.about])
        assert due_ms <= world.now_ms
        assert failures <= project_of(world, start).settings.max_retries
        assert losses <= 10
        assert start.new.attempt == failures + losses + 1
    for block in decided.blocks:
        issue = next(each for each in world.issues if each.id == block.issue_id)
        most = next(each.settings.max_retries for each in world.projects if each.id == block.project_id)
        assert any(counted(attempts)[0] > most for attempts in issue.attempts.values())


@MANY
@given(worlds())
def test_no_phase_is_left_or_worked_in_against_its_labels(world: World) -> None:
    decided = plan(world)
    for skip in decided.skips:
        issue = next(each for each in world.issues if each.id == skip.issue_id)
        pipeline = next(each.pipeline for each in world.projects if each.id == skip.project_id)
        assert skip.phase == issue.phase != "ready"
        assert f"skip:{issue.phase}" in issue.labels or issue.phase not in pipeline
        passed = PHASES[PHASES.index(skip.phase) + 1 : PHASES.index(skip.to)]
        assert all(f"skip:{phase}" in issue.labels or phase not in pipeline for phase in passed)
        assert PHASES.index(skip.to) > PHASES.index(skip.phase)
    for start in of_issues(decided):
        issue = issue_of(world, start)
        assert start.new.phase == issue.phase
        if start.new.work == "phase":
            assert issue.status in ("todo", "in_progress")
            assert not issue.waits_for
            assert not issue.findings
            assert issue.phase != "ready" or "needs-planning" not in issue.labels
        elif start.new.work == "judge_phase":
            assert [start.new.about] == [each.id for each in issue.findings]
        else:
            assert issue.pr == PrFact(start.new.about or "", "open")
            assert issue.status == "review"


@MANY
@given(worlds())
def test_why_an_issue_waits_does_not_depend_on_scans_and_intakes(world: World) -> None:
    with_wishes, without = plan(world), plan(replace(world, wishes=()))
    for issue in world.issues:
        assert with_wishes.about("t", issue.id) == without.about("t", issue.id)
