"""What a second reading of the jobs found: an error of any text is kept, and the job goes on or ends by it."""

from collections.abc import Callable
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rookery.app import Platform
from rookery.core.admission import storable
from rookery.db.tx import Tx
from rookery.jobs import by_hand
from rookery.jobs.claims import MAX_ERROR, said
from rookery.jobs.kinds import Ended, JobArgs, job
from rookery.jobs.running import Running
from rookery.jobs.store import Jobs
from tests.jobs.working import running_worker, settled
from tests.platform_fixtures import Fleet

TEXT = "no such file: a\udcff\0b"
told: list[str] = []


@job("moods.fail", attempts=2, backoff_s=0.01)
async def fail(running: Running, args: JobArgs) -> None:
    raise OSError(TEXT)


@fail.ended
def _(tx: Tx, end: Ended) -> None:
    told.append(end.error)


@pytest.fixture
def platform(database_url: str, make_fleet: Callable[..., Fleet]) -> Platform:
    moods = ModuleType("moods")
    vars(moods)["fail"] = fail
    told.clear()
    return make_fleet(database_url, extra={"moods": moods}).platform


@given(st.text(st.characters(exclude_categories=()), max_size=50))
def test_what_is_said_of_a_failure_can_be_kept(text: str) -> None:
    assert storable(said(text))
    assert len(said(text * 100)) <= MAX_ERROR


async def test_a_failure_of_any_text_uses_up_attempts_and_nothing_else(platform: Platform) -> None:
    job_id = await platform.database.change(lambda tx: Jobs(tx, "default").defer(fail, {}))
    async with running_worker(platform, lease_s=30.0):
        await settled(platform, within_s=15.0, ahead_ms=1000)
    row = await platform.database.read(lambda tx: Jobs(tx, "default").of(job_id))
    assert row is not None
    assert (row.state, row.failures, row.losses, row.attempt) == ("failed", 2, 0, 2)
    assert row.error == "OSError: no such file: a?b"
    assert told == [row.error]


async def test_who_cancels_a_job_by_hand_is_told_the_same(platform: Platform) -> None:
    def work(tx: Tx) -> str:
        job_id = Jobs(tx, "default").defer(fail, {}, delay_ms=60_000)
        return by_hand.cancel(tx, "default", platform.kinds, job_id).state

    assert await platform.database.change(work) == "cancelled"
    assert told == [by_hand.REASON]
