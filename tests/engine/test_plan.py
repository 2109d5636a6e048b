"""What begins for an issue, and the one reason why it does not."""

from dataclasses import replace
from typing import Any

import pytest

from rookery.engine.plan import Skip, plan
from rookery.engine.world_facts import AgentFact, FindingFact, IssueFact, PrFact
from rookery.lifecycle.pauses import Scope
from rookery.lifecycle.states import PHASES
from tests.engine.worlds import (
    DEFAULT,
    NOW,
    a_project,
    a_world,
    an_issue,
    claimed,
    live,
    nothing_begins,
    paused,
    started,
    the_start,
    the_wait,
)


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"status": "backlog"}, "in the backlog"),
        ({"status": "blocked"}, "waits for a person"),
        ({"status": "blocked", "blocked_on": "subtasks"}, "waits for its subtasks"),
        ({"status": "done"}, "it is done"),
        ({"status": "cancelled"}, "it is cancelled"),
        ({"status": "review"}, "nothing of it waits for a judge"),
        ({"status": "review", "pr": PrFact("pr-1", "approved")}, "rookery merge"),
        ({"status": "review", "pr": PrFact("pr-1", "rejected")}, "nothing of it waits for a judge"),
    ],
)
def test_what_is_not_open_for_work_waits_for_its_status(values: dict[str, Any], says: str) -> None:
    wait = the_wait(a_world(an_issue(**values)))
    assert (wait.code, wait.identifier, wait.until_ms) == ("status", "P-001", None)
    assert says in wait.reason


def test_a_project_that_is_not_enabled_has_nothing_begun() -> None:
    wait = the_wait(a_world(an_issue(), project=a_project(enabled=False)))
    assert wait.code == "not_enabled"
    assert "rookery orchestrator enable" in wait.reason


def test_of_what_is_finished_nobody_is_told_that_its_project_is_off() -> None:
    assert the_wait(a_world(an_issue(status="done"), project=a_project(enabled=False))).code == "status"


def test_nothing_begins_beside_what_lives() -> None:
    issue = an_issue()
    wait = the_wait(a_world(issue, live=[live(issue, attempt=2)]))
    assert wait.code == "running"
    assert "works since" in wait.reason
    assert "attempt 2" in wait.reason
    assert "is to begin" in the_wait(a_world(issue, live=[live(issue, running=False)])).reason


def test_an_issue_of_another_tenant_with_the_same_id_is_another() -> None:
    issue = an_issue()
    assert started(a_world(issue, live=[live(issue, tenant="other", project_id="theirs")])) == ["P-001"]


@pytest.mark.parametrize(
    "findings",
    [
        [claimed(outcome=None)],
        [FindingFact("pv-1", None, None)],
        [claimed(), FindingFact("pv-1", None, None)],
        [claimed("pc-1"), claimed("pc-2")],
        [claimed(phase="grooming")],
    ],
)
def test_what_was_claimed_or_judged_is_acted_on_first(findings: list[FindingFact]) -> None:
    wait = the_wait(a_world(an_issue(status="review", phase="research", findings=findings)))
    assert wait.code == "unprocessed"


def test_a_claim_whose_gates_run_waits_for_them() -> None:
    claim = FindingFact("pc-1", "ready", None, gates=True)
    assert the_wait(a_world(an_issue(status="in_progress", findings=[claim]))).code == "gates"


def test_what_somebody_holds_is_left_alone_until_the_lease_is_over() -> None:
    held = an_issue(status="in_progress", holder="ada (worker)", held_until_ms=NOW + 60_000)
    wait = the_wait(a_world(held))
    assert (wait.code, wait.until_ms) == ("held", NOW + 60_000)
    assert "ada (worker) holds it until" in wait.reason
    given = the_wait(a_world(replace(held, held_until_ms=None)))
    assert (given.code, given.until_ms) == ("held", None)
    assert started(a_world(replace(held, held_until_ms=NOW))) == ["P-001"]


def test_dependencies_that_are_not_done_are_named() -> None:
    needs = [(f"P-{number:03}", "todo") for number in range(2, 10)]
    wait = the_wait(a_world(an_issue(waits_for=needs)))
    assert wait.code == "dependency"
    assert "P-002 (todo)" in wait.reason
    assert wait.reason.endswith("and 3 more")
    assert "more" not in the_wait(a_world(an_issue(waits_for=needs[:1]))).reason


def test_who_depends_on_what_was_cancelled_is_brought_to_a_person() -> None:
    issue = an_issue(waits_for=[("P-002", "todo"), ("P-003", "cancelled")])
    decided = plan(a_world(issue))
    assert (decided.starts, decided.waits) == ([], [])
    (block,) = decided.blocks
    assert block.why.startswith("It depends on P-003, which was cancelled: let it depend on others")
    assert the_wait(a_world(issue, led=False)).code == "dependency"
    assert the_wait(a_world(issue, pauses=paused("project", "p"))).code == "dependency"


def test_needs_planning_keeps_workers_away_and_nobody_else() -> None:
    labels = frozenset({"needs-planning"})
    wait = the_wait(a_world(an_issue(labels=labels)))
    assert wait.code == "label"
    assert "move it to the phase grooming" in wait.reason
    skipped = the_wait(a_world(an_issue(labels=labels | {"skip:grooming"})))
    assert "move it" not in skipped.reason
    ungroomed = a_project(pipeline=("research", "ready"))
    assert "move it" not in the_wait(a_world(an_issue(labels=labels), project=ungroomed)).reason
    assert started(a_world(an_issue(labels=labels, phase="grooming"))) == ["P-001"]


@pytest.mark.parametrize(("scope", "target"), [("all", None), ("project", "p"), ("agent", DEFAULT.id)])
def test_what_is_paused_does_not_begin(scope: Scope, target: str | None) -> None:
    for issue in (an_issue(), an_issue(status="review", pr=PrFact("pr-1", "open"))):
        wait = the_wait(a_world(issue, pauses=paused(scope, target)))
        assert wait.code == "paused"
        assert "paused by owner: a fire" in wait.reason


def test_a_pause_of_something_else_holds_nobody() -> None:
    assert started(a_world(an_issue(), pauses=paused("project", "q"))) == ["P-001"]
    assert started(a_world(an_issue(), pauses=paused("agent", "agt-other"))) == ["P-001"]
    assert started(a_world(an_issue(), pauses={"other": paused("all")["t"]})) == ["P-001"]


def test_while_everything_is_paused_no_phase_is_skipped() -> None:
    issue = an_issue(phase="research", labels=frozenset({"skip:research"}))
    assert nothing_begins(plan(a_world(issue, pauses=paused("all"))))


def test_without_a_runtime_a_folder_or_a_leader_nothing_begins() -> None:
    assert the_wait(a_world(an_issue(), runtime=False)).code == "no_runtime"
    assert the_wait(a_world(an_issue(), project=a_project(folder=None))).code == "no_folder"
    assert the_wait(a_world(an_issue(), led=False)).code == "no_leader"
    claim = [claimed(outcome=None)]
    assert the_wait(a_world(an_issue(phase="research", findings=claim), led=False)).code == "no_leader"


def test_the_work_of_each_phase_is_done_by_its_role() -> None:
    roles = {phase: the_start(a_world(an_issue(phase=phase))).new.role for phase in PHASES}
    assert roles == {"research": "researcher", "architecture": "researcher", "grooming": "planner", "ready": "worker"}


def test_an_architect_makes_the_design_where_there_is_one() -> None:
    issue = an_issue(phase="architecture")
    named = [DEFAULT, AgentFact("agt-2", "Architect")]
    start = the_start(a_world(issue, agents={"t": named}))
    assert (start.new.role, start.new.agent) == ("architect", "agt-2")
    chosen = the_start(a_world(issue, project=a_project(agents={"architect": "default"})))
    assert (chosen.new.role, chosen.new.agent) == ("architect", DEFAULT.id)


def test_a_claim_that_awaits_its_verdict_goes_to_a_judge() -> None:
    for status in ("review", "todo"):
        new = the_start(a_world(an_issue(status=status, phase="research", findings=[claimed("pc-7")]))).new
        assert (new.work, new.role, new.about, new.phase) == ("judge_phase", "judge", "pc-7", "research")


def test_an_open_pull_request_goes_to_a_judge() -> None:
    new = the_start(a_world(an_issue(status="review", pr=PrFact("pr-7", "open")))).new
    assert (new.work, new.role, new.about, new.phase) == ("judge_pr", "judge", "pr-7", "ready")


def test_a_judge_does_not_wait_for_what_workers_wait_for() -> None:
    waiting = {"waits_for": [("P-009", "todo")], "labels": frozenset({"needs-planning", "skip:ready"})}
    assert started(a_world(an_issue(status="review", pr=PrFact("pr-7", "open"), **waiting))) == ["P-001"]


def test_the_agent_is_the_one_set_else_the_one_named_like_the_role_else_the_default_one() -> None:
    agents = {"t": [DEFAULT, AgentFact("agt-w", "worker"), AgentFact("agt-a", "Ada")]}
    assert the_start(a_world(an_issue(), agents=agents)).new.agent == "agt-w"
    ada = a_project(agents={"worker": "ada"})
    assert the_start(a_world(an_issue(), agents=agents, project=ada)).new.agent == "agt-a"
    assert the_start(a_world(an_issue())).new.agent == DEFAULT.id


@pytest.mark.parametrize(
    ("project", "agents", "says"),
    [
        (a_project(agents={"worker": "eve"}), [DEFAULT], "there is no agent eve"),
        (a_project(), [AgentFact("agt-a", "ada")], "none is called worker or default"),
        (a_project(members=frozenset({"agt-a"})), [DEFAULT], "has no role in the project shop"),
        # That the default agent could do it is not what was asked for.
        (a_project(members=frozenset({DEFAULT.id})), [DEFAULT, AgentFact("agt-w", "worker")], "the agent worker"),
    ],
)
def test_without_an_agent_that_may_work_there_nothing_begins(
    project: object, agents: list[AgentFact], says: str
) -> None:
    wait = the_wait(a_world(an_issue(), projects=[project], agents={"t": agents}))
    assert wait.code == "no_agent"
    assert says in wait.reason


@pytest.mark.parametrize("phase", PHASES)
def test_no_phase_is_skipped_without_its_label(phase: str) -> None:
    others = frozenset(f"skip:{other}" for other in PHASES if other != phase)
    decided = plan(a_world(an_issue(phase=phase, labels=others)))
    assert decided.skips == []
    assert [start.new.phase for start in decided.starts] == [phase]


def test_a_labelled_phase_is_left_for_the_next_that_is_not_skipped() -> None:
    issue = an_issue(phase="research", labels=frozenset({"skip:research", "skip:architecture"}))
    decided = plan(a_world(issue, max_agents=0, runtime=False))
    assert decided.skips == [
        Skip(
            tenant="t",
            project_id="p",
            issue_id=issue.id,
            identifier="P-001",
            phase="research",
            to="grooming",
            why="it is labelled skip:research",
        )
    ]
    assert (decided.starts, decided.waits, decided.blocks) == ([], [], [])


def test_a_phase_that_the_project_does_not_have_is_left() -> None:
    (skip,) = plan(a_world(an_issue(phase="grooming"), project=a_project(pipeline=("research", "ready")))).skips
    assert (skip.phase, skip.to, skip.why) == ("grooming", "ready", "the project has no grooming")


def test_ready_is_never_skipped() -> None:
    assert started(a_world(an_issue(labels=frozenset({"skip:ready"})))) == ["P-001"]


@pytest.mark.parametrize(
    "values",
    [
        {"status": "review", "findings": [claimed()]},
        {"status": "in_progress", "held_until_ms": NOW + 1},
        {"waits_for": [("P-002", "todo")]},
        {"findings": [claimed(outcome=None)]},
        {"status": "backlog"},
    ],
)
def test_what_is_under_way_or_waits_is_not_skipped(values: dict[str, Any]) -> None:
    issue: IssueFact = an_issue(phase="research", labels=frozenset({"skip:research"}), **values)
    assert plan(a_world(issue)).skips == []


def test_whoever_asks_is_told_what_the_next_tick_does() -> None:
    skipped = an_issue(2, phase="research", labels=frozenset({"skip:research"}))
    decided = plan(a_world(an_issue(1), skipped, an_issue(3, status="backlog")))
    told = {number: decided.about("t", f"iss-{number}") for number in (1, 2, 3)}
    assert [(wait.code, wait.identifier) for wait in told.values() if wait is not None] == [
        ("next", "P-001"),
        ("next", "P-002"),
        ("status", "P-003"),
    ]
    assert told[1] is not None
    assert told[1].reason == "a worker begins at the next tick"
    assert decided.about("other", "iss-1") is None
    assert decided.about("t", "iss-4") is None
