"""That the simulation sees what it is there for: each promise is broken in the product, and a history has to notice."""

import asyncio
import gc
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

import rookery.domains.tracker.advance
import rookery.domains.tracker.branch_merge
import rookery.domains.tracker.pipeline
import rookery.engine.approvals
import rookery.engine.tick
import rookery.engine.workspaces
import rookery.lifecycle.run_store
import tests.engine.simulation.watching
from rookery.domains.tracker.branch_sight import Sight
from rookery.domains.tracker.pipeline import Claim, Step, Verdict
from rookery.engine.dispatches import Dispatches
from rookery.engine.plan import Plan, World, plan
from rookery.engine.running import RunArgs, run_dispatch
from rookery.engine.tables import RUNNING
from rookery.jobs.kinds import Finish
from rookery.jobs.running import Running
from rookery.ledger.store import Ledger
from rookery.lifecycle.run_store import Runs, Usage
from tests.engine.simulation.history import History
from tests.engine.simulation.overtaken import Overtaken, OvertakenChange

Break = Callable[[pytest.MonkeyPatch], None]


def the_plan_does_not_see_what_runs(patch: pytest.MonkeyPatch) -> None:
    """Nor does the database, whose index would refuse the second one."""
    watch = tests.engine.simulation.watching.watch_rows

    def without_index(driver: Any) -> None:
        watch(driver)
        driver.execute("DROP INDEX dispatches_live_issue")

    def blind(world: World) -> Plan:
        return plan(replace(world, live=()))

    patch.setattr(rookery.engine.tick, "plan", blind)
    patch.setattr(tests.engine.simulation.watching, "watch_rows", without_index)


def the_pipeline_is_not_read(patch: pytest.MonkeyPatch) -> None:
    def last(phase: str, pipeline: Sequence[str], skipped: frozenset[str]) -> str:
        return "ready"

    patch.setattr(rookery.domains.tracker.advance, "following", last)


def every_verdict_approves(patch: pytest.MonkeyPatch) -> None:
    decide = rookery.domains.tracker.advance.next_step

    def approve(*found: Any) -> Step | None:
        step = decide(*found)
        return replace(step, kind="approve") if step is not None and step.kind == "reject" else step

    patch.setattr(rookery.domains.tracker.advance, "next_step", approve)


def what_was_lost_is_not_ended(patch: pytest.MonkeyPatch) -> None:
    run = run_dispatch.handler

    async def careless(job: Running, args: RunArgs) -> Finish:
        row = await job.read(lambda tx: Dispatches(tx, job.tenant).of(args.dispatch_id))
        return None if row is not None and row.state == RUNNING else await run(job, args)

    patch.setattr(run_dispatch, "handler", careless)
    patch.setattr(rookery.engine.tick, "corrections", lambda *seen: [])


def money_is_counted_twice(patch: pytest.MonkeyPatch) -> None:
    spend = Runs.spend

    def twice(self: Runs, run_id: str, usage: Usage) -> Any:
        spend(self, run_id, usage)
        return spend(self, run_id, usage)

    patch.setattr(rookery.lifecycle.run_store.Runs, "spend", twice)


def credits_stay_held_back(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Ledger, "release", lambda *of: None)


def every_worktree_is_removed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(rookery.engine.workspaces, "why_kept", lambda *of: None)


@pytest.mark.parametrize(
    ("broken", "sentence", "seeds"),
    [
        (the_plan_does_not_see_what_runs, "of one issue live at once", (1, 2, 3)),
        (the_pipeline_is_not_read, "without its label", (50, 100, 150)),
        (every_verdict_approves, "rejects, and", (17, 30, 33, 38, 49, 52, 68, 80)),
        (what_was_lost_is_not_ended, "never ended", (1, 2, 3)),
        (money_is_counted_twice, "its agent said", (1, 2)),
        (credits_stay_held_back, "credits held back", (1, 2, 3, 4)),
        (every_worktree_is_removed, "was never committed and is gone", (17, 21, 30, 31, 32)),
    ],
)
def test_a_history_notices_that(
    broken: Break, sentence: str, seeds: Sequence[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    broken(monkeypatch)
    found = (violation for seed in seeds for violation in History(seed).run().violations)
    assert any(sentence in violation for violation in found)


def the_hash_of_a_verdict_is_not_read(patch: pytest.MonkeyPatch) -> None:
    def same_phase(verdict: Verdict, claim: Claim) -> bool:
        return verdict.phase == claim.phase

    patch.setattr(rookery.domains.tracker.pipeline, "_is_about", same_phase)


def test_it_notices_a_verdict_about_what_was_claimed_before(monkeypatch: pytest.MonkeyPatch) -> None:
    the_hash_of_a_verdict_is_not_read(monkeypatch)
    violations = Overtaken(1).run().violations
    assert any("not to what it is about" in violation for violation in violations)


def the_branch_is_not_looked_at(patch: pytest.MonkeyPatch) -> None:
    """Neither by the orchestrator, which would void the approval, nor by whoever merges."""
    decide = rookery.engine.approvals.deed_for

    def as_reviewed(pr: Any, sight: Sight, *, alone: bool) -> Any:
        return decide(pr, replace(sight, tips={pr.branch: pr.head}), alone=alone)

    patch.setattr(rookery.engine.approvals, "deed_for", as_reviewed)
    patch.setattr(rookery.domains.tracker.branch_merge, "_stale", lambda *of: None)


@pytest.mark.parametrize("auto_merge", [False, True])
def test_it_notices_a_merge_of_what_its_branch_has_left_behind(
    auto_merge: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    the_branch_is_not_looked_at(monkeypatch)
    violations = OvertakenChange(1, auto_merge=auto_merge).run().violations
    assert any("which its branch had left behind" in violation for violation in violations)


def unfinished_tasks() -> set[Any]:
    gc.collect()
    return {each for each in gc.get_objects() if isinstance(each, asyncio.Task) and not each.done()}


def test_a_history_that_went_wrong_leaves_nothing_to_the_tests_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    before = unfinished_tasks()
    the_plan_does_not_see_what_runs(monkeypatch)
    assert History(1).run().violations
    assert not unfinished_tasks() - before
