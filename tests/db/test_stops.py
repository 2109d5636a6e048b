"""Jobs that are stopped at any moment whatever: each is committed whole or undone whole, and its record says which."""

import asyncio
import random
import time
from collections.abc import Callable

import pytest

from rookery.around.chain import verify
from rookery.db import threads
from rookery.db.database import Database
from rookery.db.tx import Tx
from tests.db import sample

ROUNDS = 40
AT_ONCE = 12


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A watch that looks often and gives a thread up soon, so that every race happens many times."""
    for name, value in {"TICK_S": 0.002, "AGAIN_S": 0.005, "GRACE_S": 0.03}.items():
        monkeypatch.setattr(threads, name, value)


def work(key: str, took_s: float, *, busy: bool) -> Callable[[Tx], str]:
    def add(tx: Tx) -> str:
        sample.add(key)(tx)
        until = time.monotonic() + took_s
        while busy and time.monotonic() < until:
            pass
        time.sleep(max(0.0, until - time.monotonic()))
        sample.count_up(tx)
        return "done"

    return add


def call(database: Database, key: str, dice: random.Random) -> asyncio.Task[str]:
    took_s = dice.uniform(0, 0.01 if dice.random() < 0.8 else 0.06)
    limit_s = dice.choice([took_s, took_s + 0.002, 0.005, 0.02, 5, 5, 5])
    add = work(key, took_s, busy=dice.random() < 0.5)
    task = asyncio.create_task(database.write(add, records=sample.recorded(key), timeout_s=limit_s))
    if dice.random() < 0.1:
        asyncio.get_running_loop().call_later(dice.uniform(0, 0.02), task.cancel)
    return task


async def test_every_job_ends_whole_and_its_record_says_how(database: Database) -> None:
    dice = random.Random(20261115)
    told: dict[str, object] = {}
    for number in range(ROUNDS):
        tasks = {f"{number}-{at}": call(database, f"{number}-{at}", dice) for at in range(AT_ONCE)}
        outcomes = await asyncio.wait_for(asyncio.gather(*tasks.values(), return_exceptions=True), 60)
        told |= dict(zip(tasks, outcomes, strict=True))
    sample.wait_for(lambda: len(sample.requests(database)) == len(told))
    committed, records = set(sample.keys(database)), sample.requests(database)
    assert sample.counted(database) == len(committed)
    assert {key for key, outcome in told.items() if outcome == "done"} <= committed
    # Whoever cancelled a call was told nothing; all others were told what became of theirs.
    cancelled = {key for key, outcome in told.items() if isinstance(outcome, asyncio.CancelledError)}
    assert {key for key in committed - cancelled if told[key] != "done"} == set()
    assert {key for key in told if (records[key] == ["done"]) != (key in committed)} == set()
    assert all(len(found) == 1 for found in records.values())
    assert database.direct(verify).broken_at is None
