"""What the orchestrator sees: everything that bears upon a decision, in few statements, and nothing of others."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy import event

from rookery.db.tx import Tx
from rookery.domains.tracker.advance import advance
from rookery.domains.tracker.tables import prs
from rookery.engine.dispatches import Dispatches
from rookery.engine.retrying import MAX_ROUNDS
from rookery.engine.tables import dispatches, gate_runs
from rookery.engine.world import read_world
from rookery.engine.world_facts import AttemptFact, FindingFact, PrFact
from rookery.identity.store import DEFAULT_TENANT, IdentityStore
from rookery.lifecycle.issue_tables import issues
from rookery.lifecycle.pauses import Pauses
from rookery.lifecycle.run_store import NewRun, Runs, Usage
from rookery.lifecycle.run_tables import agent_runs
from tests.domains.tracker.claimant import claimant
from tests.domains.tracker.desk import git
from tests.engine.watching import Watched
from tests.platform_fixtures import Fleet

DAY_MS = 86_400_000


@pytest.fixture
def watched(database_url: str, make_fleet: Callable[..., Fleet], tmp_path: Path) -> Watched:
    return Watched(make_fleet(database_url, extra={}, max_agents=7, daily_budget_usd=2.5), tmp_path)


def spend(watched: Watched, dollars: float, issue: Any = None, ago_ms: int = 0) -> None:
    """A run in the project that cost so much."""

    def work(tx: Tx) -> None:
        runs = Runs(tx, DEFAULT_TENANT)
        run = runs.start(NewRun(project_id=watched.project_id, issue_id=None if issue is None else issue.id))
        runs.spend(run.id, Usage(cost_micros=round(dollars * 1_000_000)))
        mine = sa.update(agent_runs).where(agent_runs.c.id == run.id)
        tx.run(mine.values(created_ms=agent_runs.c.created_ms - ago_ms))

    watched.direct(work, write=True)


async def test_projects_that_are_not_enabled_are_not_looked_at(watched: Watched) -> None:
    await watched.project("closed")
    hidden = await watched.issue(status="todo", project="closed")
    assert [(each.slug, each.enabled) for each in watched.world().projects] == [("default", True)]
    assert watched.world().issues == []
    asked = watched.world(issue_id=hidden.id)
    assert [(each.slug, each.enabled) for each in asked.projects] == [("closed", False), ("default", True)]
    assert [each.id for each in asked.issues] == [hidden.id]
    assert watched.wait(hidden).code == "not_enabled"


async def test_only_issues_in_work_are_read_and_the_one_that_is_asked_about(watched: Watched) -> None:
    made = {
        status: await watched.issue(status=status) for status in ("todo", "in_progress", "review", "done", "blocked")
    }
    agent = watched.actor("researcher", made["todo"])
    backlog = await watched.call(agent, "create_issue", title="later")
    assert {each.status for each in watched.world().issues} == {"todo", "in_progress", "review"}
    for row in (made["done"], made["blocked"], watched.reload(backlog.id)):
        assert watched.wait(row).code == "status"


async def test_the_settings_of_the_installation_and_of_the_project_are_there(watched: Watched) -> None:
    watched.enable(max_agents=3, role_caps={"worker": 1}, agents={"judge": "default"})
    await watched.call(watched.person(), "configure_project", pipeline=["research", "ready"])
    world = watched.world(runtime=False, led=False)
    assert (world.max_agents, world.daily_budget_usd, world.runtime, world.led) == (7, 2.5, False, False)
    (project,) = world.projects
    assert (project.settings.max_agents, project.settings.role_caps) == (3, {"worker": 1})
    assert (project.pipeline, project.folder, project.members) == (("research", "ready"), "/srv/shop", None)
    assert abs(world.now_ms - time.time_ns() // 1_000_000) < DAY_MS


async def test_agents_and_members_are_those_of_the_tenant(watched: Watched) -> None:
    ada = await watched.call(watched.owner, "create_agent", name="ada")
    watched.direct(lambda tx: IdentityStore(tx, DEFAULT_TENANT).set_members("default", ["ada"]), write=True)
    world = watched.world()
    assert [each.name for each in world.agents[DEFAULT_TENANT]] == ["default", "ada"]
    assert world.projects[0].members == frozenset({ada.id})
    assert watched.wait(await watched.issue(status="todo")).code == "no_agent"


async def test_other_tenants_are_seen_apart(watched: Watched) -> None:
    stranger = watched.stranger
    watched.enable(stranger.project, tenant="other")
    theirs = await watched.call(stranger, "create_issue", title="theirs", labels=["phase:ready"])
    mine = await watched.issue(status="todo")
    watched.direct(lambda tx: Pauses(tx, "other").pause("all", by="per-1"), write=True)
    decided = watched.plan()
    assert [start.new.issue_id for start in decided.starts] == [mine.id]
    told = decided.about("other", theirs.id)
    assert told is not None
    assert told.code == "paused"


async def test_labels_and_dependencies_that_matter_are_read(watched: Watched) -> None:
    first, done = await watched.issue(status="todo"), await watched.issue(status="done")
    labels = ["needs-planning", "skip:research", "urgent"]
    issue = await watched.issue(status="todo", labels=labels, depends_on=[first.identifier, done.identifier])
    fact = watched.fact(issue)
    assert fact.labels == {"needs-planning", "skip:research"}
    assert fact.skipped == {"research"}
    assert fact.waits_for == [(first.identifier, "todo")]
    assert watched.wait(issue).code == "dependency"
    await watched.call(watched.owner, "edit_issue", issue_id=issue.id, depends_on=[])
    assert watched.wait(issue).code == "label"
    await watched.call(watched.owner, "edit_issue", issue_id=issue.id, labels=[])
    assert watched.wait(issue).code == "next"


async def test_what_was_dispatched_counts_while_it_lives(watched: Watched) -> None:
    issue = await watched.issue(status="todo")
    row = watched.dispatch(issue)
    scan = watched.dispatch(None, work="scan", role="scanner")
    lives = {each.issue_id: each for each in watched.world().live}
    assert (lives[issue.id].running, lives[issue.id].role, lives[issue.id].attempt) == (False, "worker", 1)
    assert (lives[None].work, lives[None].since_ms) == ("scan", scan.created_ms)
    assert watched.wait(issue).code == "running"
    watched.direct(lambda tx: Dispatches(tx, DEFAULT_TENANT).begin(row), write=True)
    assert "works since" in watched.wait(issue).reason
    watched.direct(lambda tx: Dispatches(tx, DEFAULT_TENANT).end(row.id, "cancelled"), write=True)
    assert [each.work for each in watched.world().live] == ["scan"]
    assert watched.wait(issue).code == "next"


async def test_attempts_are_those_of_the_phase_in_their_order(watched: Watched) -> None:
    issue = await watched.issue(status="todo")
    long_ago = issue.created_ms - DAY_MS
    watched.ended(issue, "failed", long_ago + 2)
    watched.ended(issue, "lost", long_ago + 1)
    watched.ended(issue, "cancelled", long_ago)
    watched.ended(issue, "failed", long_ago, phase="research")
    watched.ended(issue, "idle", long_ago + 3, work="judge_pr", role="judge", about="pr-1")
    assert dict(watched.fact(issue).attempts) == {
        ("phase", None): [
            AttemptFact("cancelled", long_ago),
            AttemptFact("lost", long_ago + 1),
            AttemptFact("failed", long_ago + 2),
        ],
        ("judge_pr", "pr-1"): [AttemptFact("idle", long_ago + 3)],
    }


async def test_what_a_person_has_unblocked_begins_anew(watched: Watched) -> None:
    issue = await watched.issue(status="todo")
    for _ in range(4):
        watched.ended(issue, "failed")
    watched.ended(other := await watched.issue(status="todo"), "failed")
    assert [block.issue_id for block in watched.plan().blocks] == [issue.id]
    for status in ("in_progress", "blocked", "todo"):
        await watched.call(watched.owner, "set_issue_status", issue_id=issue.id, status=status)
    # The clock of whoever unblocks it is not the one that counts attempts: they may show the same moment.
    watched.change(
        sa.update(dispatches).where(dispatches.c.issue_id == issue.id).values(created_ms=dispatches.c.created_ms - 1000)
    )
    assert dict(watched.fact(issue).attempts) == {}
    assert watched.wait(issue).code == "next"
    assert watched.wait(other).code == "retry"


async def test_work_that_was_sent_back_too_often_is_seen(watched: Watched) -> None:
    issue, other = await watched.issue(status="todo"), await watched.issue(status="todo")
    for _ in range(MAX_ROUNDS):
        watched.ended(issue, "succeeded")
    watched.ended(other, "succeeded")
    assert len(watched.fact(issue).attempts["phase", None]) == MAX_ROUNDS
    assert dict(watched.fact(other).attempts) == {}
    assert [block.issue_id for block in watched.plan().blocks] == [issue.id]


async def test_background_attempts_of_the_last_day_are_read(watched: Watched) -> None:
    now = watched.world().now_ms
    watched.ended(None, "failed", now - 5, work="scan", role="scanner")
    watched.ended(None, "failed", now - 2 * DAY_MS, work="scan", role="scanner")
    watched.ended(None, "succeeded", now - 7, work="intake", role="intake")
    (project,) = watched.world().projects
    assert dict(project.attempts) == {
        "scan": [AttemptFact("failed", now - 5)],
        "intake": [AttemptFact("succeeded", now - 7)],
    }


async def test_costs_are_counted_by_issue_and_by_day(watched: Watched) -> None:
    issue = await watched.issue(status="todo")
    spend(watched, 1.5, issue, ago_ms=3 * DAY_MS)
    spend(watched, 0.5, issue)
    spend(watched, 0.25)
    world = watched.world()
    assert (world.spent_today_micros, world.projects[0].spent_today_micros) == (750_000, 750_000)
    assert watched.fact(issue).spent_micros == 0, "what is not limited is not summed up"
    watched.enable(issue_budget_usd=2.0)
    assert watched.fact(issue).spent_micros == 2_000_000
    assert watched.wait(issue).code == "budget_issue"
    watched.enable(issue_budget_usd=None, daily_budget_usd=0.75)
    assert watched.wait(issue).code == "budget_project"
    watched.enable(daily_budget_usd=None)
    assert watched.wait(issue).code == "next"
    spend(watched, 1.75)
    assert watched.wait(issue).code == "budget_global"


async def test_pauses_hold_and_are_taken_back(watched: Watched) -> None:
    issue = await watched.issue(status="todo")
    for scope, target in (("all", None), ("project", "default"), ("agent", "default")):

        def pause(tx: Tx, scope: Any = scope, target: Any = target) -> None:
            Pauses(tx, DEFAULT_TENANT).pause(scope, target, reason="a fire", by=watched.owner.subject)

        def resume(tx: Tx, scope: Any = scope, target: Any = target) -> None:
            Pauses(tx, DEFAULT_TENANT).resume(scope, target)

        watched.direct(pause, write=True)
        told = watched.wait(issue)
        assert (told.code, "a fire" in told.reason) == ("paused", True)
        watched.direct(resume, write=True)
        assert watched.wait(issue).code == "next"


async def test_a_claim_is_followed_from_its_making_to_its_verdict(watched: Watched) -> None:
    at = await claimant(watched)
    watched.enable(at.actor.project)
    made = await at.claim()
    assert watched.fact(at.issue).findings == [FindingFact(made.id, "research", None)]
    assert watched.wait(at.issue).code == "unprocessed"
    await advance(watched.fleet.platform.calls, DEFAULT_TENANT, "repo")
    assert watched.fact(at.issue).findings == [FindingFact(made.id, "research", "awaiting_verdict")]
    (start,) = watched.plan().starts
    assert (start.new.work, start.new.about, start.new.role) == ("judge_phase", made.id, "judge")
    arguments = at.arguments()
    judge = at.bound("judge")
    await watched.call(judge, "approve_phase", phase="research", artifact_hash=arguments["artifact_hash"])
    assert watched.wait(at.issue).code == "unprocessed"
    await advance(watched.fleet.platform.calls, DEFAULT_TENANT, "repo")
    (start,) = watched.plan().starts
    assert (start.new.work, start.new.phase, start.new.role) == ("phase", "architecture", "researcher")


async def test_a_claim_whose_gates_run_is_told_apart(watched: Watched) -> None:
    at = await claimant(watched, "ready")
    watched.enable(at.actor.project)
    (at.folder / "done.txt").write_text("done", encoding="utf-8")
    git(at.folder, "add", "done.txt")
    git(at.folder, "commit", "-q", "-m", "work")
    made = await at.claim()
    assert watched.wait(at.issue).code == "unprocessed"
    row = {"claim_id": made.id, "tenant": DEFAULT_TENANT, "issue_id": at.issue.id, "head": "", "created_ms": 1}
    watched.change(sa.insert(gate_runs).values(**row))
    assert watched.wait(at.issue).code == "gates"
    watched.change(sa.update(gate_runs).values(ended_ms=2))
    assert watched.wait(at.issue).code == "unprocessed"


async def test_the_newest_pull_request_of_an_issue_in_review_is_read(watched: Watched) -> None:
    issue = await watched.issue(status="review")
    blank = {"branch": "b", "base": "main", "diff": "", "stats": {}, "source_lines": 0, "risk_score": 0}
    more = {"risk_level": "low", "risk_reasons": [], "subject": "agt-1", "created_ms": 1, "updated_ms": 1}
    whose = {"tenant": DEFAULT_TENANT, "project_id": watched.project_id, "issue_id": issue.id}
    for revision, status in ((1, "rejected"), (2, "open")):
        row = {"id": f"pr-{revision}", "revision": revision, "status": status}
        watched.change(sa.insert(prs).values(**whose, **blank, **more, **row))
    assert watched.fact(issue).pr == PrFact("pr-2", "open")
    (start,) = watched.plan().starts
    assert (start.new.work, start.new.about) == ("judge_pr", "pr-2")


async def test_a_lease_is_read_and_what_ran_out_is_free(watched: Watched) -> None:
    issue = await watched.issue(status="todo")
    await watched.call(watched.actor("worker", issue), "claim_issue", minutes=5)
    told = watched.wait(issue)
    assert (told.code, told.until_ms) == ("held", watched.reload(issue).lease_until_ms)
    watched.change(sa.update(issues).where(issues.c.id == issue.id).values(lease_until_ms=1))
    assert watched.wait(issue).code == "next"


async def test_the_number_of_statements_does_not_grow_with_the_issues(watched: Watched) -> None:
    watched.enable(issue_budget_usd=5.0)

    def statements(tx: Tx) -> int:
        seen: list[str] = []

        def note(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
            seen.append(statement)

        event.listen(tx.connection, "before_cursor_execute", note)
        try:
            read_world(tx, watched.fleet.platform.settings)
        finally:
            event.remove(tx.connection, "before_cursor_execute", note)
        return len(seen)

    first = await watched.issue(status="todo")
    watched.ended(first, "failed")
    few = watched.direct(statements)
    for _ in range(20):
        other = await watched.issue(status="todo", depends_on=[first.identifier], labels=["needs-planning"])
        watched.ended(other, "failed")
    assert watched.direct(statements) == few <= 16
