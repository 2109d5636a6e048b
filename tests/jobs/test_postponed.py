"""A job that may not be done now waits again, with nothing used up, until its time or until it is released."""

from collections.abc import Callable

import pytest

from rookery.db.tx import Tx
from rookery.jobs.store import Jobs, Row
from tests.jobs import gated
from tests.jobs.gated import GateArgs, closed, through, tried
from tests.jobs.working import running_worker, settled
from tests.platform_fixtures import Fleet


@pytest.fixture
def fleet(prepared_database_url: str, make_fleet: Callable[..., Fleet]) -> Fleet:
    closed.clear()
    tried.clear()
    return make_fleet(prepared_database_url, extra={"gated": gated})


def defer(fleet: Fleet, tenant: str = "default", **args: object) -> int:
    made = GateArgs.model_validate({"gate": "door", **args})
    return fleet.platform.database.direct(lambda tx: Jobs(tx, tenant).defer(through, made), write=True)


def row(fleet: Fleet, job_id: int, tenant: str = "default") -> Row:
    found = fleet.platform.database.direct(lambda tx: Jobs(tx, tenant).of(job_id))
    assert found is not None
    return found


def release(fleet: Fleet, name: str = "opening", tenant: str = "default") -> int:
    return fleet.platform.database.direct(lambda tx: Jobs(tx, tenant).release(name), write=True)


async def test_what_is_postponed_waits_and_has_used_up_no_attempt(fleet: Fleet) -> None:
    closed.add("door")
    job_id = defer(fleet)
    async with running_worker(fleet.platform):
        await settled(fleet.platform)
    kept = row(fleet, job_id)
    assert (kept.state, kept.error, kept.failures, kept.losses) == ("waiting", "door is closed", 0, 0)
    assert (kept.waits_for, kept.worker, len(tried)) == ("opening", None, 1)


async def test_it_is_due_as_soon_as_it_is_released_by_its_name_and_its_tenant(fleet: Fleet) -> None:
    closed.add("door")
    job_id = defer(fleet)
    async with running_worker(fleet.platform):
        await settled(fleet.platform)
        closed.clear()
        assert (release(fleet, "another"), release(fleet, tenant="others")) == (0, 0)
        assert row(fleet, job_id).state == "waiting"
        assert release(fleet) == 1
        await settled(fleet.platform)
    done = row(fleet, job_id)
    assert (done.state, done.waits_for, len(tried)) == ("done", None, 2)
    assert release(fleet) == 0


async def test_it_is_released_again_as_often_as_it_is_postponed(fleet: Fleet) -> None:
    closed.add("door")
    job_id = defer(fleet)
    async with running_worker(fleet.platform):
        for times in range(1, 13):
            await settled(fleet.platform)
            assert len(tried) == times
            release(fleet)
        closed.clear()
        release(fleet)
        await settled(fleet.platform)
    # More often than a job may be tried, or lost.
    assert (row(fleet, job_id).state, row(fleet, job_id).failures) == ("done", 0)


async def test_what_was_opened_before_it_is_put_back_is_tried_again_at_once(fleet: Fleet) -> None:
    closed.add("door")
    job_id = defer(fleet, opens_meanwhile=True)
    async with running_worker(fleet.platform):
        await settled(fleet.platform)
    assert (row(fleet, job_id).state, len(tried)) == ("done", 2)


async def test_without_a_name_it_waits_for_its_time(fleet: Fleet) -> None:
    closed.add("door")
    job_id = defer(fleet, until=None, delay_s=0.05, opens_meanwhile=False)
    async with running_worker(fleet.platform):
        await settled(fleet.platform)
        assert release(fleet) == 0
        closed.clear()
        await settled(fleet.platform, ahead_ms=1_000)
    assert row(fleet, job_id).state == "done"


async def test_what_is_postponed_can_be_cancelled(fleet: Fleet) -> None:
    closed.add("door")
    job_id = defer(fleet)
    async with running_worker(fleet.platform):
        await settled(fleet.platform)

    def cancel(tx: Tx) -> bool:
        return Jobs(tx, "default").cancel(job_id)

    assert fleet.platform.database.direct(cancel, write=True)
    assert release(fleet) == 0
    assert row(fleet, job_id).state == "cancelled"
