"""A work task whose worker is killed goes on elsewhere: nothing is lost, and what was recorded is not done again."""

import random
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from rookery.domains.work.tables import work_tasks
from rookery.jobs.tables import jobs
from tests.domains.work.workshop import Workshop, git
from tests.warm import Started, start

ROOT = Path(__file__).parents[3]
LIMIT_S = 60.0


def until(reached: Callable[[], Any], what: str) -> Any:
    """The first true answer; whoever waits too long fails."""
    deadline = time.monotonic() + LIMIT_S
    while not (found := reached()):
        assert time.monotonic() < deadline, what
        time.sleep(0.01)
    return found


@contextmanager
def worker(workshop: Workshop) -> Generator[Started]:
    """A worker process that has begun; killed at the end of the block."""
    settings = workshop.fleet.platform.settings
    command = [sys.executable, "-m", "tests.domains.work.worker_process", settings.database_url, settings.home]
    process = start(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == "up\n"
        yield process
    finally:
        process.kill()
        process.wait(LIMIT_S)
        process.stdout.close()


def waiting_for(gate: Path, witness: Path) -> str:
    """A command that says it has begun and goes on when the gate is there."""
    return f"echo begun >> {witness}; while ! test -e {gate}; do sleep 0.02; done"


def over(workshop: Workshop) -> bool:
    return not workshop.rows(sa.select(jobs.c.id).where(jobs.c.ended_ms.is_(None), jobs.c.kind.like("work.%")))


@pytest.mark.anyio
@pytest.mark.parametrize("phase", ["branching", "running", "validating"])
async def test_a_task_whose_worker_is_killed_in_any_phase_is_completed_by_another(
    workshop: Workshop, tmp_path: Path, phase: str
) -> None:
    gate, witness = tmp_path / "gate", tmp_path / "witness"
    gated = waiting_for(gate, witness)
    await workshop.open(**{"branching": {"install": gated}, "running": {}, "validating": {"checks": [gated]}}[phase])
    script = "!append n.txt line\n!commit step"
    made = await workshop.create(f"{script}\n!wait 1.5" if phase == "running" else script)
    with worker(workshop):
        if phase == "running":
            until(lambda: (workshop.worktrees / made.id / "n.txt").exists(), "the session began")
        else:
            until(witness.exists, "the command began")
        assert workshop.row(made.id).status == phase
    gate.touch()
    with worker(workshop):
        until(lambda: over(workshop), "everything is done")
    row = workshop.row(made.id)
    assert (row.status, row.iteration, row.error, row.worktree_dir) == ("completed", 1, None, None)
    # A session that was interrupted begins again in the tree that it left; one that had ended does not.
    lines = workshop.shown(row.branch_name, "n.txt").splitlines()
    assert len(lines) == (2 if phase == "running" else 1)
    assert git(workshop.repository, "worktree", "list").count("\n") == 0
    (run,) = workshop.rows(sa.select(jobs).where(jobs.c.kind == "work.run"))
    assert (run.state, run.losses, run.failures) == ("done", 1, 0)


@pytest.mark.slow
@pytest.mark.anyio
async def test_an_iteration_that_had_ended_is_neither_repeated_nor_counted_again(
    workshop: Workshop, tmp_path: Path
) -> None:
    sessions = tmp_path / "checked"
    enough = f"cat n.txt | wc -l >> {sessions}; test $(wc -l < n.txt) -ge 3"
    await workshop.open(checks=[enough])
    made = await workshop.create("!append n.txt line\n!commit step\n!wait 0.7")
    killed = 0
    while not over(workshop):
        with worker(workshop):
            seen = workshop.row(made.id).iteration
            until(lambda seen=seen: workshop.row(made.id).iteration > seen or over(workshop), "the next iteration")
            killed += 1
        assert killed < 9
    row = workshop.row(made.id)
    assert (row.status, row.iteration <= 3) == ("completed", True)
    assert killed >= row.iteration
    # Each interrupted session may have added a line; each check saw the work of the one before and more.
    counts = [int(line) for line in sessions.read_text(encoding="utf-8").split()]
    assert counts == sorted(counts)
    assert counts[-1] >= 3


@pytest.mark.slow
@pytest.mark.anyio
async def test_tasks_survive_workers_that_are_killed_at_random(workshop: Workshop) -> None:
    await workshop.open(checks=["sleep 0.1; test $(wc -l < n.txt) -ge 2"])
    made = [await workshop.create("!append n.txt line\n!wait 0.1") for _ in range(3)]
    chance = random.Random(7)
    for _ in range(5):
        with worker(workshop):
            time.sleep(chance.uniform(0.1, 1.6))
    with worker(workshop):
        until(lambda: over(workshop), "everything is done")
    rows = [workshop.row(task.id) for task in made]
    assert [(row.status, row.error, row.worktree_dir) for row in rows] == [("completed", None, None)] * 3
    assert all(1 <= row.iteration <= 2 for row in rows)
    mine = sa.select(jobs.c.kind).where(jobs.c.kind.like("work.%")).order_by(jobs.c.kind)
    kinds = [row.kind for row in workshop.rows(mine)]
    assert kinds == ["work.end"] * 3 + ["work.run"] * 3
    assert workshop.count(work_tasks) == 3
