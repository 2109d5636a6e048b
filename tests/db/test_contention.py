"""SQLite under many writing processes: nobody is refused, nobody waits long, nothing is lost."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rookery.around.chain import verify
from tests.db import sample
from tests.warm import start

ROOT = Path(__file__).parents[2]
PROCESSES = 16
LONGEST_S = 1.0
STALLED_S = 0.3
"""A thread that only sleeps and is kept from waking for so long shows that the machine itself stood still."""


def contend(url: str, seconds: float) -> list[dict[str, Any]]:
    """What each of the processes did, all of which start at once."""
    command = [sys.executable, "-m", "tests.db.contender", url, str(seconds)]
    processes = [
        start(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(PROCESSES)
    ]
    try:
        for process in processes:
            assert process.stdout
            assert process.stdout.readline() == "ready\n"
        for process in processes:
            assert process.stdin
            process.stdin.write("go\n")
            process.stdin.flush()
        return [json.loads(process.communicate(timeout=seconds + 60)[0]) for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.communicate()


def check(folder: Path, seconds: float, *, may_repeat: bool = True) -> None:
    url = f"sqlite:///{folder / 'contention.db'}"
    sample.open_sample(url).close()
    told = contend(url, seconds)
    assert [error for one in told for error in one["errors"]] == []
    assert min(one["written"] for one in told) > 0
    written = sum(one["written"] for one in told)
    database = sample.open_sample(url)
    assert sample.counted(database) == written
    assert len(sample.keys(database)) == written
    assert len(sample.requests(database)) == written
    state = database.direct(verify)
    database.close()
    assert (state.broken_at, state.records) == (None, written)
    longest_s, stalled_s = (max(one[name] for one in told) for name in ("longest_s", "stalled_s"))
    print(f"{written} writes, longest wait {longest_s:.3f} s, longest stall of the machine {stalled_s:.3f} s")
    if longest_s >= LONGEST_S and stalled_s >= STALLED_S and may_repeat:
        check(folder / "again", seconds, may_repeat=False)
    else:
        assert longest_s < LONGEST_S, f"the machine itself stood still for at most {stalled_s:.3f} s"


@pytest.mark.early
def test_sixteen_processes_write_at_once(tmp_path: Path) -> None:
    check(tmp_path, 6)


@pytest.mark.slow
def test_sixteen_processes_write_for_a_minute(tmp_path: Path) -> None:
    check(tmp_path, 60)
