"""The fleet in simulated time: hundreds of histories, each drawn from a seed, and what has to hold in all of them.

A history that fails prints how it is replayed. `python -m tests.engine.simulation --many 1 100` tells how fast they go.
"""

import hashlib
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.engine.simulation.history import Crash, Ended, History
from tests.engine.simulation.overtaken import Overtaken, OvertakenChange

CHUNK = 10
HISTORIES, MANY = 200, 4000
GIT_SEEDS = (1, 3, 8)
SWEPT = 1
"""The seed whose history is run again for each commit, with a crash before it and one after it."""
STRIDE = 24


def told(ended: Ended, how: str = "") -> str:
    """What went wrong in a history, and how to see it happen."""
    replay = f"replay with: python -m tests.engine.simulation {ended.seed}{how}"
    return "\n".join([f"seed {ended.seed}:", *ended.violations[:10], replay])


def check(seeds: Sequence[int], *, real_git: bool = False) -> None:
    for seed in seeds:
        ended = History(seed, real_git=real_git).run()
        assert not ended.violations, told(ended, " --git" if real_git else "")


@pytest.mark.parametrize("first", range(1, HISTORIES, CHUNK))
def test_whatever_happens_to_the_fleet_its_promises_hold(first: int) -> None:
    check(range(first, first + CHUNK))


@pytest.mark.slow
@pytest.mark.parametrize("first", range(HISTORIES + 1, MANY, 100))
def test_its_promises_hold_in_thousands_of_histories(first: int) -> None:
    check(range(first, first + 100))


@pytest.mark.parametrize("seed", GIT_SEEDS)
def test_the_promises_hold_in_repositories_of_git_itself(seed: int) -> None:
    check([seed], real_git=True)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1, 200, CHUNK))
def test_they_hold_in_many_repositories_of_git_itself(first: int) -> None:
    check(range(first, first + CHUNK), real_git=True)


@pytest.mark.parametrize("seed", GIT_SEEDS)
def test_the_simulated_git_leads_to_the_same_history_as_git_itself(seed: int) -> None:
    simulated, real = History(seed).run(), History(seed, real_git=True).run()
    assert simulated.counts == real.counts


def crash_everywhere(commits: Sequence[int]) -> None:
    for commit in commits:
        for moment in ("before", "after"):
            ended = History(SWEPT, crash=Crash(0, commit, moment)).run()
            assert not ended.violations, told(ended, f" --crash 0:{commit}:{moment}")


def commits_of_the_server() -> int:
    return History(SWEPT, crash=Crash(0, sys.maxsize, "before")).run().commits_of[1]


@pytest.mark.parametrize("part", range(3))
def test_a_server_may_crash_before_and_after_its_commits(part: int) -> None:
    crash_everywhere(range(1 + part * STRIDE // 3, commits_of_the_server() + 1, STRIDE))


@pytest.mark.slow
def test_a_server_may_crash_before_and_after_every_commit() -> None:
    crash_everywhere(range(1, commits_of_the_server() + 1))


def test_a_verdict_that_is_overtaken_by_another_claim_is_applied_to_nothing() -> None:
    ended = Overtaken(1).run()
    assert not ended.violations
    assert (ended.counts["finding stale"], ended.counts["finding rejected"]) == (1, 2)


@pytest.mark.parametrize("auto_merge", [False, True])
def test_an_approval_that_is_overtaken_by_a_commit_merges_nothing(auto_merge: bool) -> None:
    ended = OvertakenChange(1, auto_merge=auto_merge).run()
    assert not ended.violations
    assert (ended.counts["pr approved"], ended.counts["pr merged"]) == (2, 1)


def steps(seed: int) -> list[str]:
    folder = re.compile(r"rookery-simulation-\w+")
    return [folder.sub("folder", line) for line in History(seed, keep_log=True).run().log]


def test_a_seed_is_one_history_in_whatever_process_it_runs() -> None:
    program = (
        "import hashlib; from tests.engine.test_simulation import steps; "
        "print(hashlib.sha256('\\n'.join(steps(5)).encode()).hexdigest())"
    )
    environment = {"PYTHONPATH": ":".join(sys.path), "PYTHONHASHSEED": "4711", "PATH": "/usr/bin:/bin"}
    ran = subprocess.run(
        [sys.executable, "-c", program],
        cwd=Path(__file__).parents[2],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=150,
    )
    assert ran.stdout.strip() == hashlib.sha256("\n".join(steps(5)).encode()).hexdigest()


def test_what_happened_in_a_history_can_be_read() -> None:
    log = History(3, keep_log=True).run().log
    assert any("begins on ALP-001" in line for line in log)
    assert any("dispatches ~" in line and "'outcome': 'succeeded'" in line for line in log)
