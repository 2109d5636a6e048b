"""An attempt that is stopped from outside leaves the job as it should be, however early that happens."""

import time
from collections.abc import Callable

import pytest

from rookery.jobs.attempt import Attempt, Why
from rookery.jobs.claims import Claimant, Claims
from tests.jobs import errands
from tests.jobs.nursery import Ledger
from tests.platform_fixtures import Fleet


@pytest.mark.parametrize(("why", "state"), [("stopping", "waiting"), ("cancelled", "cancelled"), ("lost", "running")])
async def test_an_attempt_can_be_stopped_before_its_first_step(
    database_url: str, make_fleet: Callable[..., Fleet], why: Why, state: str
) -> None:
    platform = make_fleet(database_url, extra={"errands": errands}).platform
    ledger = Ledger(platform)
    job_id = ledger.defer("run", "never")
    claimant = Claimant("somebody", 60_000, ("errands.run",))
    [row] = await platform.database.change(lambda tx: Claims(tx, claimant).take(1, locked_first=False))
    attempt = Attempt(row, platform, kept=time.monotonic())
    attempt.start(lambda each: None)
    attempt.stop(why)
    await attempt.ended()
    assert (ledger.job(job_id).state, ledger.starts) == (state, [])
