"""When something is tried again, and when it is given up."""

import pytest

from rookery.engine.dispatches import Outcome
from rookery.engine.plan import backoff_ms, plan
from rookery.engine.retrying import tries_of
from rookery.engine.world_facts import AttemptFact, PrFact
from tests.engine.worlds import NOW, a_project, a_wish, a_world, an_issue, ended, the_start, the_wait

PHASE = ("phase", None)
BAD: list[Outcome] = ["failed", "timed_out", "stalled", "idle"]


def often(outcome: Outcome, times: int) -> list[Outcome]:
    return [outcome] * times


def test_the_delay_doubles_up_to_five_minutes() -> None:
    assert [backoff_ms(failures) for failures in range(8)] == [
        0,
        10_000,
        20_000,
        40_000,
        80_000,
        160_000,
        300_000,
        300_000,
    ]
    assert backoff_ms(10**9) == 300_000
    assert backoff_ms(-1) == 0


@pytest.mark.parametrize("outcome", BAD)
def test_what_failed_waits_and_is_tried_again(outcome: Outcome) -> None:
    issue = an_issue(attempts={PHASE: ended(outcome)})
    wait = the_wait(a_world(issue))
    assert (wait.code, wait.until_ms) == ("retry", NOW + 10_000)
    assert f"attempt 1 ended as {outcome}" in wait.reason
    assert the_wait(a_world(issue, now_ms=NOW + 9_999)).code == "retry"
    assert the_start(a_world(issue, now_ms=NOW + 10_000)).new.attempt == 2


def test_every_failure_in_a_row_makes_the_wait_longer() -> None:
    issue = an_issue(attempts={PHASE: ended("failed", "idle", "stalled")})
    assert the_wait(a_world(issue)).until_ms == NOW + 40_000


def test_after_the_last_retry_a_person_has_to_look() -> None:
    issue = an_issue(attempts={PHASE: ended("failed", "failed", "failed", "timed_out")})
    decided = plan(a_world(issue, now_ms=NOW + 10**9))
    assert (decided.starts, decided.waits, decided.skips) == ([], [], [])
    (block,) = decided.blocks
    assert (block.tenant, block.project_id, block.issue_id, block.identifier) == ("t", "p", "iss-1", "P-001")
    assert block.why == "The worker failed 4 times in ready; the last attempt ended as timed_out."
    told = decided.about("t", "iss-1")
    assert told is not None
    assert (told.code, told.reason) == ("next", f"it is blocked at the next tick: {block.why}")


def test_how_many_retries_there_are_is_set_by_the_project() -> None:
    issue = an_issue(attempts={PHASE: ended("failed", "failed", "failed", "failed")})
    later = {"now_ms": NOW + 10**9}
    assert the_start(a_world(issue, project=a_project(max_retries=4), **later)).new.attempt == 5
    once = an_issue(attempts={PHASE: ended("failed")})
    assert len(plan(a_world(once, project=a_project(max_retries=0), **later)).blocks) == 1


def test_a_success_makes_all_failures_before_it_good() -> None:
    issue = an_issue(attempts={PHASE: ended("failed", "failed", "failed", "succeeded")})
    assert the_start(a_world(issue)).new.attempt == 1
    after = an_issue(attempts={PHASE: ended("failed", "failed", "succeeded", "failed")})
    assert the_wait(a_world(after)).until_ms == NOW + 10_000


def test_what_was_cancelled_counts_for_nothing() -> None:
    issue = an_issue(attempts={PHASE: ended("failed", "cancelled", "cancelled")})
    assert the_wait(a_world(issue)).until_ms == NOW - 2 + 10_000
    assert the_start(a_world(issue, now_ms=NOW + 10_000)).new.attempt == 2


def test_a_worker_that_died_is_replaced_after_a_second() -> None:
    issue = an_issue(attempts={PHASE: ended("lost")})
    wait = the_wait(a_world(issue))
    assert (wait.code, wait.until_ms) == ("retry", NOW + 1_000)
    assert the_start(a_world(issue, now_ms=NOW + 1_000)).new.attempt == 2


def test_losses_count_apart_from_failures() -> None:
    both = an_issue(attempts={PHASE: ended("lost", "failed", "lost", "failed")})
    assert the_wait(a_world(both)).until_ms == NOW + 20_000
    ten = an_issue(attempts={PHASE: ended(*often("lost", 10))})
    assert the_start(a_world(ten, now_ms=NOW + 1_000)).new.attempt == 11
    (block,) = plan(a_world(an_issue(attempts={PHASE: ended(*often("lost", 11))}))).blocks
    assert block.why == "The worker died 11 times while the worker was at work in ready."


def test_attempts_at_something_else_do_not_count() -> None:
    pr = an_issue(
        status="review", pr=PrFact("pr-2", "open"), attempts={("judge_pr", "pr-1"): ended(*often("failed", 9))}
    )
    assert the_start(a_world(pr)).new.attempt == 1
    judged = an_issue(attempts={("judge_phase", "pc-1"): ended(*often("failed", 9))})
    assert the_start(a_world(judged)).new.attempt == 1


def test_a_judge_that_fails_too_often_blocks_the_issue() -> None:
    attempts = {("judge_pr", "pr-1"): ended(*often("idle", 4))}
    (block,) = plan(a_world(an_issue(status="review", pr=PrFact("pr-1", "open"), attempts=attempts))).blocks
    assert block.why.startswith("The judge failed 4 times")


def test_work_that_is_sent_back_again_and_again_is_given_up() -> None:
    nine = an_issue(attempts={PHASE: ended(*often("succeeded", 9))})
    assert the_start(a_world(nine)).new.attempt == 1
    (block,) = plan(a_world(an_issue(attempts={PHASE: ended(*often("succeeded", 10))}))).blocks
    assert block.why == "The worker did the work of ready 10 times, and each time it was sent back."


def test_what_is_paused_or_has_no_agent_is_not_given_up() -> None:
    issue = an_issue(attempts={PHASE: ended(*often("failed", 4))})
    assert the_wait(a_world(issue, runtime=False)).code == "no_runtime"
    assert the_wait(a_world(issue, led=False)).code == "no_leader"


def test_a_scan_that_fails_is_tried_again_and_then_seldom() -> None:
    once = a_project(attempts={"scan": ended("failed")})
    wait = the_wait(a_world(project=once, wishes=[a_wish()]))
    assert (wait.code, wait.until_ms, wait.issue_id) == ("retry", NOW + 10_000, None)
    assert the_start(a_world(project=once, wishes=[a_wish()], now_ms=NOW + 10_000)).new.attempt == 2
    seldom = a_project(attempts={"scan": ended(*often("idle", 4))})
    assert the_wait(a_world(project=seldom, wishes=[a_wish()])).until_ms == NOW + 3_600_000
    assert the_start(a_world(project=seldom, wishes=[a_wish()], now_ms=NOW + 3_600_000)).new.attempt == 5
    assert the_start(a_world(project=seldom, wishes=[a_wish("intake")])).new.attempt == 1
    busy = a_project(attempts={"scan": ended(*often("succeeded", 30))})
    assert the_start(a_world(project=busy, wishes=[a_wish()])).new.attempt == 1


def test_what_is_cancelled_again_and_again_waits_longer_each_time() -> None:
    def after(times: int) -> int:
        return tries_of([AttemptFact(outcome="cancelled", ended_ms=1_000 * n) for n in range(1, times + 1)]).due_ms

    assert [after(times) for times in (1, 2, 3)] == [0, 0, 0]
    assert after(4) == 4_000 + backoff_ms(1)
    assert after(5) == 5_000 + backoff_ms(2)
