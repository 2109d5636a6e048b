"""A process is killed at any moment: what it was told is done is there, whole, and recorded."""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from rookery.around.chain import seal_pending, verify
from rookery.db.database import open_database
from tests.db import sample
from tests.warm import start

ROOT = Path(__file__).parents[2]
KILLS = 10
MANY_KILLS = 20
LONGEST_LIFE_S = 0.25


class Nursery:
    """Makes victims and kills them."""

    def __init__(self, url: str, home: Path) -> None:
        command = [sys.executable, "-m", "tests.db.victim", url, str(home)]
        self._process = start(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.answered: dict[str, set[str]] = {"pair": set(), "ping": set()}

    def kill_one(self, life_s: float) -> None:
        """Let a process make calls, kill it `life_s` after its first answer, and keep what it was answered."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write("go\n")
        self._process.stdin.flush()
        pid, ends_at = 0, None
        for line in self._process.stdout:
            kind, _, rest = line.strip().partition(" ")
            if kind == "gone":
                return
            if kind == "pid":
                pid = int(rest)
                continue
            self.answered[kind].add(rest)
            ends_at = ends_at or time.monotonic() + life_s
            if pid and time.monotonic() >= ends_at:
                os.kill(pid, signal.SIGKILL)
                pid = 0
        pytest.fail("the nursery died")

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


@pytest.fixture
def nursery(database_url: str, tmp_path: Path) -> Iterator[Nursery]:
    made = Nursery(database_url, tmp_path / "home")
    yield made
    made.close()


def kill_and_look(nursery: Nursery, url: str, seed: int, kills: int) -> None:
    dice = random.Random(seed)
    for _ in range(kills):
        nursery.kill_one(dice.uniform(0, LONGEST_LIFE_S))
        database = open_database(url)
        try:
            there, records = set(sample.keys(database)), sample.requests(database)
            assert nursery.answered["pair"] - there == set()
            assert {key for key in there if records.get(key) != ["done"]} == set()
            assert {key for key in nursery.answered["ping"] if records.get(key) != ["allowed"]} == set()
            database.direct(seal_pending, write=True)
            state = database.direct(verify)
            assert (state.broken_at, state.waiting, state.records) == (None, 0, sum(map(len, records.values())))
        finally:
            database.close()
    assert min(map(len, nursery.answered.values())) > kills


@pytest.mark.early
def test_what_was_answered_survives_being_killed(nursery: Nursery, database_url: str) -> None:
    kill_and_look(nursery, database_url, 0, KILLS)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 11))
def test_what_was_answered_survives_being_killed_two_hundred_times(
    nursery: Nursery, database_url: str, seed: int
) -> None:
    kill_and_look(nursery, database_url, seed, MANY_KILLS)
