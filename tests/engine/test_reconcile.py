"""Which dispatches go on and which do not: those that nobody wants any more are stopped, the others left alone."""

from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa

from rookery.engine.dispatches import Dispatches, NewDispatch
from rookery.engine.reconcile import GRACE_MS, Correction, corrections, read_live
from rookery.engine.tables import dispatches
from rookery.jobs.tables import jobs
from rookery.lifecycle.issue_tables import issues
from tests.platform_fixtures import Fleet


class Yard:
    """A fleet with one issue in ready, and a dispatch of a worker for it."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self._direct = fleet.platform.database.direct

    async def issue(self) -> Any:
        issue_id = await self.fleet.issue()
        return self._direct(lambda tx: tx.one(sa.select(issues).where(issues.c.id == issue_id)))

    def dispatch(self, issue: Any, **more: Any) -> Any:
        new = NewDispatch(
            project_id=issue.project_id, issue_id=issue.id, role="worker", agent="agt", phase=issue.phase, work="phase"
        )
        row = self._direct(lambda tx: Dispatches(tx, "default").queue(new), write=True)
        assert row is not None
        if more:
            self.change(dispatches, row.id, **more)
        return row

    def change(self, table: sa.Table, key: Any, **values: Any) -> None:
        self._direct(lambda tx: tx.run(sa.update(table).where(table.c.id == key).values(**values)), write=True)

    def age(self, issue: Any) -> None:
        """As if nothing had happened to the issue for longer than the grace."""
        self.change(issues, issue.id, updated_ms=issue.updated_ms - GRACE_MS - 10_000)

    @property
    def corrections(self) -> list[Correction]:
        return corrections(self._direct(read_live))


@pytest.fixture
def yard(database_url: str, make_fleet: Callable[..., Fleet]) -> Yard:
    return Yard(make_fleet(database_url, extra={}))


async def test_what_is_wanted_goes_on(yard: Yard) -> None:
    issue = await yard.issue()
    yard.dispatch(issue)
    yard.age(issue)
    assert yard.corrections == []


async def test_one_issue_has_no_two_dispatches_that_live(yard: Yard) -> None:
    issue = await yard.issue()
    yard.dispatch(issue)
    with pytest.raises(AssertionError):
        yard.dispatch(issue)


@pytest.mark.parametrize("state", ["queued", "running"])
async def test_the_dispatch_of_a_cancelled_issue_is_stopped_at_once(yard: Yard, state: str) -> None:
    issue = await yard.issue()
    yard.dispatch(issue, state=state)
    yard.change(issues, issue.id, status="cancelled")
    assert [(each.what, each.why) for each in yard.corrections] == [("stop", "the issue is cancelled")]


async def test_an_agent_whose_phase_is_over_may_say_its_last_words(yard: Yard) -> None:
    issue = await yard.issue()
    yard.dispatch(issue, state="running", phase="research")
    assert yard.corrections == []
    yard.age(issue)
    assert [each.why for each in yard.corrections] == [f"the issue is in {issue.phase} by now"]


async def test_what_has_not_begun_is_stopped_without_grace_if_the_phase_is_another(yard: Yard) -> None:
    issue = await yard.issue()
    yard.dispatch(issue, phase="research")
    assert [each.what for each in yard.corrections] == ["stop"]


async def test_an_attempt_whose_issue_another_has_claimed_is_stopped(yard: Yard) -> None:
    issue = await yard.issue()
    yard.dispatch(issue, state="running", fence=1)
    yard.change(issues, issue.id, fence=2, status="in_progress")
    yard.age(issue)
    assert [each.why for each in yard.corrections] == ["another has claimed the issue since"]


async def test_an_issue_that_a_person_has_taken_back_is_left_by_its_agent(yard: Yard) -> None:
    issue = await yard.issue()
    yard.dispatch(issue, state="running", fence=0)
    yard.change(issues, issue.id, status="blocked")
    yard.age(issue)
    assert [each.why for each in yard.corrections] == ["the issue was taken back and is blocked"]


async def test_a_dispatch_whose_job_is_over_is_lost(yard: Yard) -> None:
    issue = await yard.issue()
    row = yard.dispatch(issue, state="running")
    yard.change(jobs, row.job_id, state="failed")
    assert [each.what for each in yard.corrections] == ["lost"]


async def test_what_is_being_stopped_is_not_stopped_again(yard: Yard) -> None:
    issue = await yard.issue()
    yard.dispatch(issue, state="running", stop="the issue is cancelled")
    yard.change(issues, issue.id, status="cancelled")
    assert yard.corrections == []
