"""64 clients at once, and processes killed at any moment: the history explains every credit, and none is lost."""

import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.ledger import till
from tests.ledger.books import Books
from tests.platform_fixtures import Fleet
from tests.warm import start

ROOT = Path(__file__).parents[2]
PROCESSES, CLIENTS = 4, 16
LIMIT_S = 120.0
LOOK_S = 0.01


class Tills:
    """Processes that move credits, and what they were answered."""

    def __init__(self, url: str, home: Path) -> None:
        command = [sys.executable, "-m", "tests.ledger.till_process", url, str(home), str(CLIENTS)]
        self._process = start(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.did: set[str] = set()
        self._told: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout
        for line in self._process.stdout:
            if line.startswith("did "):
                self.did.add(line.strip().removeprefix("did "))
            else:
                self._told.append(line.strip())

    def until(self, reached: Callable[[], Any], what: str) -> Any:
        deadline = time.monotonic() + LIMIT_S
        while not (found := reached()):
            assert self._process.poll() is None, "the processes died"
            assert time.monotonic() < deadline, f"not within {LIMIT_S:g} s: {what}"
            time.sleep(LOOK_S)
        return found

    def start(self) -> int:
        known = self._said("started ")
        self._order("start")
        return int(self.until(lambda: self._said("started ")[len(known) :], "a process")[0])

    def kill(self, pid: int) -> None:
        self._order(f"kill {pid}")
        self.until(lambda: str(pid) in self._said("gone "), f"{pid} is gone")

    def _said(self, start: str) -> list[str]:
        return [line.removeprefix(start) for line in list(self._told) if line.startswith(start)]

    def _order(self, order: str) -> None:
        assert self._process.stdin
        self._process.stdin.write(f"{order}\n")
        self._process.stdin.flush()

    def close(self) -> None:
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait(LIMIT_S)
        self._reader.join()
        assert self._process.stdout
        self._process.stdout.close()


@pytest.fixture
def tills(database_url: str, tmp_path: Path) -> Iterator[Tills]:
    made = Tills(database_url, tmp_path / "homes")
    yield made
    made.close()


async def test_sixty_four_clients_of_one_server_leave_exact_books(
    database_url: str, make_fleet: Callable[..., Fleet]
) -> None:
    fleet, answered = make_fleet(database_url, extra={"till": till}), set[str]()
    await till.use(fleet.platform, PROCESSES * CLIENTS, "c", answered.add, changes=6)
    books = Books(fleet.platform.database)
    balances = books.check()
    assert set(balances) == set(till.WALLETS)
    assert books.keys() == answered
    assert len(answered) > PROCESSES * CLIENTS


def kill_and_look(tills: Tills, books: Books, *, seed: int, kills: int, between: int) -> None:
    """Kill a process whenever so many more changes were answered, and look at the books each time."""
    dice = random.Random(seed)
    running = [tills.start() for _ in range(PROCESSES)]
    for kill in range(1, kills + 1):
        tills.until(lambda kill=kill: len(tills.did) >= kill * between, f"{kill * between} changes")
        victim = running.pop(dice.randrange(PROCESSES))
        tills.kill(victim)
        running.append(tills.start())
        known = set(tills.did)
        books.check()
        assert known <= books.keys()
    for pid in running:
        tills.kill(pid)
    balances, keys = books.check(), books.keys()
    assert tills.did <= keys
    # A client that was killed may have missed one answer, never more.
    assert len(keys - tills.did) <= CLIENTS * (PROCESSES + kills)
    assert set(balances) == set(till.WALLETS)


def test_processes_that_are_killed_lose_no_credit_and_make_none(
    tills: Tills, database_url: str, make_fleet: Callable[..., Fleet]
) -> None:
    books = Books(make_fleet(database_url, extra={}).platform.database)
    kill_and_look(tills, books, seed=0, kills=3, between=150)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 4))
def test_processes_that_are_killed_many_times_leave_exact_books(
    tills: Tills, database_url: str, make_fleet: Callable[..., Fleet], seed: int
) -> None:
    books = Books(make_fleet(database_url, extra={}).platform.database)
    kill_and_look(tills, books, seed=seed, kills=20, between=300)
