"""Worker processes are killed, paused and cut off: each job ends, and its effect is recorded exactly once."""

import random
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
import sqlalchemy as sa

from rookery.db.file_lock import FileLock
from tests.jobs import errands
from tests.jobs.nursery import Ledger, Nursery, until
from tests.platform_fixtures import Fleet

LOCKS = 4
CUT = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> %s"


@pytest.fixture
def ledger(database_url: str, make_fleet: Callable[..., Fleet]) -> Ledger:
    return Ledger(make_fleet(database_url, extra={"errands": errands}).platform)


@pytest.fixture
def nursery(ledger: Ledger, database_url: str, tmp_path: Path) -> Iterator[Nursery]:
    made = Nursery(database_url, tmp_path / "home")
    yield made
    made.close()


class Chaos:
    """Many errands, some of which share locks and some of which are followed by others."""

    def __init__(self, nursery: Nursery, ledger: Ledger, folder: Path, seed: int) -> None:
        self.nursery = nursery
        self.ledger = ledger
        self.dice = random.Random(seed)
        self._folder = folder
        self.words: list[str] = []

    def defer(self, errands: int) -> None:
        for number in range(errands):
            lock = f"lock{number % (2 * LOCKS)}" if number % 2 else None
            then = self.dice.choice((0, 0, 1, 2))
            self.words += [f"{number}{'+' * follower}" for follower in range(then + 1)]
            self.ledger.defer(
                "run",
                str(number),
                seconds=self.dice.uniform(0, 0.1),
                then=then,
                lock=lock,
                witness=str(self._folder / lock) if lock else "",
            )

    def kill_and_replace(self, workers: list[int], kills: int) -> None:
        """Kill one of the workers at its work, each time that another part of the work is done."""
        for kill in range(1, kills + 1):
            wanted = len(self.words) * kill // (kills + 1)
            until(lambda wanted=wanted: self.ledger.recorded >= wanted, f"{wanted} effects")
            victim = until(lambda: self._stopped_at_work(self.dice.choice(workers)), "one of them is at work")
            self.nursery.kill(victim)
            workers.remove(victim)
            workers.append(self.nursery.start(wait=False))

    def _stopped_at_work(self, worker: int) -> int | None:
        """The worker, which does nothing from now on, if it has begun something and not ended it."""
        self.nursery.signal(worker, signal.SIGSTOP)
        ended = {job_id for job_id, _, _ in self.ledger.effects}
        if any(row.process == worker and row.job_id not in ended for row in self.ledger.starts):
            return worker
        self.nursery.signal(worker, signal.SIGCONT)
        return None

    def check(self) -> None:
        until(lambda: self.ledger.undone == 0, "no job is left")
        effects = self.ledger.effects
        assert Counter(what for _, _, what in effects) == Counter(self.words)
        assert max(Counter(job_id for job_id, _, _ in effects).values()) == 1
        assert [line for line in self.nursery.lines if line.startswith("clash")] == []


def killed(
    nursery: Nursery, ledger: Ledger, tmp_path: Path, *, seed: int, workers: int, errands: int, kills: int
) -> None:
    chaos = Chaos(nursery, ledger, tmp_path, seed)
    chaos.defer(errands)
    chaos.kill_and_replace([nursery.start() for _ in range(workers)], kills)
    chaos.check()
    # Else the kills hit nobody at work and the test would show nothing.
    assert len(ledger.starts) > len(chaos.words)


@pytest.mark.parametrize("workers", [1, 2])
def test_workers_that_are_killed_lose_nothing_and_do_nothing_twice(
    nursery: Nursery, ledger: Ledger, tmp_path: Path, workers: int
) -> None:
    killed(nursery, ledger, tmp_path, seed=workers, workers=workers, errands=40, kills=3)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_workers_that_are_killed_many_times_lose_nothing(
    nursery: Nursery, ledger: Ledger, tmp_path: Path, seed: int
) -> None:
    killed(nursery, ledger, tmp_path, seed=seed, workers=1 + seed % 4, errands=600, kills=40)


def pause(nursery: Nursery, url: str, pid: int) -> None:
    """Stop a process, but not while it has the one lock of an SQLite file: nobody could write until it goes on."""

    def paused() -> bool:
        nursery.signal(pid, signal.SIGSTOP)
        if not url.startswith("sqlite"):
            return True
        lock = FileLock(sa.make_url(url).database or "")
        try:
            if lock.try_acquire():
                return True
        finally:
            lock.close()
        nursery.signal(pid, signal.SIGCONT)
        return False

    until(paused, "the process is stopped while it does not write")


def test_a_worker_that_was_paused_past_its_lease_completes_nothing(
    nursery: Nursery, ledger: Ledger, database_url: str, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    first = nursery.start()
    job_id = ledger.defer("stubborn", "done", gate=str(gate))
    until(lambda: ledger.started_by(first), "the first has begun")
    pause(nursery, database_url, first)
    second = nursery.start()
    until(lambda: ledger.started_by(second), "the second has taken over")
    gate.with_suffix(".1").touch()
    nursery.signal(first, signal.SIGCONT)
    nursery.wait_for("write 1 refused")
    nursery.wait_for("progress 1 refused")
    assert (ledger.job(job_id).state, ledger.effects) == ("running", [])
    gate.with_suffix(".2").touch()
    until(lambda: ledger.undone == 0, "the second is done")
    assert ledger.effects == [(job_id, 2, "late"), (job_id, 2, "done")]
    assert (ledger.job(job_id).attempt, ledger.job(job_id).losses) == (2, 1)


def test_what_another_process_defers_is_begun_within_a_second(nursery: Nursery, ledger: Ledger) -> None:
    nursery.start()
    for word in ("first", "second", "third"):
        job_id = ledger.defer("run", word)
        until(lambda: ledger.undone == 0, "it is done", 5)
        row = ledger.job(job_id)
        assert row.started_ms - row.created_ms < 1000


def test_what_is_deferred_while_a_worker_starts_is_not_overlooked(nursery: Nursery, ledger: Ledger) -> None:
    for word in ("first", "second", "third"):
        pid = nursery.start()
        ledger.defer("run", word)
        until(lambda: ledger.undone == 0, "it is done", 5)
        nursery.kill(pid)


def test_a_job_of_a_kind_that_is_new_waits_for_a_worker_that_has_it(nursery: Nursery, ledger: Ledger) -> None:
    nursery.start()
    job_id = ledger.defer("novel", "news")
    ledger.defer("run", "olds")
    until(lambda: len(ledger.effects) == 1, "the old worker does what it knows")
    assert (ledger.job(job_id).state, ledger.job(job_id).attempt) == ("waiting", 0)
    nursery.start(novel=True)
    until(lambda: ledger.undone == 0, "the new worker does the rest")
    assert [what for _, _, what in ledger.effects] == ["olds", "news"]


def cut_off(nursery: Nursery, ledger: Ledger, url: str, tmp_path: Path, *, seed: int, errands: int, cuts: int) -> None:
    """End every connection of the workers, again and again, while they work."""
    chaos = Chaos(nursery, ledger, tmp_path, seed)
    chaos.defer(errands)
    for _ in range(2):
        nursery.start()
    address = sa.make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
    for cut in range(1, cuts + 1):
        wanted = len(chaos.words) * cut // (cuts + 1)
        until(lambda wanted=wanted: ledger.recorded >= wanted, f"{wanted} effects")
        with psycopg.connect(address, autocommit=True) as outsider:
            own = outsider.info.backend_pid
            assert outsider.execute(CUT, [own]).fetchall()
    chaos.check()


@pytest.mark.parametrize("database_url", ["postgres"], indirect=True)
def test_workers_whose_connections_are_cut_go_on_by_themselves(
    nursery: Nursery, ledger: Ledger, database_url: str, tmp_path: Path
) -> None:
    cut_off(nursery, ledger, database_url, tmp_path, seed=1, errands=60, cuts=5)


@pytest.mark.slow
@pytest.mark.parametrize("database_url", ["postgres"], indirect=True)
@pytest.mark.parametrize("seed", range(5))
def test_workers_whose_connections_are_cut_many_times_go_on(
    nursery: Nursery, ledger: Ledger, database_url: str, tmp_path: Path, seed: int
) -> None:
    cut_off(nursery, ledger, database_url, tmp_path, seed=seed, errands=400, cuts=40)
