"""The tests' side of `tests.jobs.victim`: starts worker processes, and stops, wakes and kills them."""

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from rookery.app import Platform
from rookery.jobs.store import Jobs
from tests.warm import start

ROOT = Path(__file__).parents[2]
LIMIT_S = 30.0
LOOK_S = 0.02
UNDONE = sa.text("SELECT count(*) FROM jobs WHERE ended_ms IS NULL")
EFFECTS = sa.text("SELECT job_id, attempt, what FROM errand_effects ORDER BY id")
RECORDED = sa.text("SELECT count(*) FROM errand_effects")
STARTS = sa.text("SELECT job_id, attempt, process, at_ms FROM errand_starts ORDER BY id")


def until(reached: Callable[[], Any], what: str, limit_s: float = LIMIT_S) -> Any:
    """The first true answer; whoever waits longer than `limit_s` fails."""
    deadline = time.monotonic() + limit_s
    while not (found := reached()):
        assert time.monotonic() < deadline, f"not within {limit_s:g} s: {what}"
        time.sleep(LOOK_S)
    return found


class Nursery:
    """Worker processes on one database, and what they said."""

    def __init__(self, url: str, home: Path) -> None:
        command = [sys.executable, "-m", "tests.jobs.victim", url, str(home)]
        self._process = start(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.lines: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout
        for line in self._process.stdout:
            self.lines.append(line.strip())

    def _order(self, order: str) -> None:
        assert self._process.stdin
        self._process.stdin.write(f"{order}\n")
        self._process.stdin.flush()

    def wait_for(self, line: str, times: int = 1, limit_s: float = LIMIT_S) -> None:
        until(lambda: self.lines.count(line) >= times, f"{line!r} in {self.lines[-20:]}", limit_s)

    def start(self, *, wait: bool = True, **how: Any) -> int:
        """The process of a new worker, which has begun unless nobody waits for it."""
        known = sum(line.startswith("worker ") for line in self.lines)
        self._order(f"start {json.dumps(how)}")
        made = until(lambda: [line for line in self.lines if line.startswith("worker ")][known:], "a worker")
        pid = int(made[0].split()[1])
        if wait:
            self.wait_for(f"up {pid}")
        return pid

    def signal(self, pid: int, number: signal.Signals) -> None:
        """Send a signal; a killed process is gone when this returns."""
        told = self.lines.count(f"sent {pid}")
        self._order(f"signal {pid} {int(number)}")
        self.wait_for(f"sent {pid}", told + 1)

    def kill(self, pid: int) -> None:
        self.signal(pid, signal.SIGKILL)

    def close(self) -> None:
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait(LIMIT_S)
        self._reader.join()
        assert self._process.stdout
        self._process.stdout.close()


class Ledger:
    """The jobs of a database and their effects, as somebody beside the workers sees them."""

    def __init__(self, platform: Platform) -> None:
        self.database = platform.database

    def defer(self, kind: str, word: str, **how: Any) -> int:
        own = {name: how.pop(name) for name in ("seconds", "witness", "then", "gate") if name in how}
        # One attempt: only what is nobody's fault may be tried again.
        how = {"attempts": 1, "backoff_s": 0.05, **how}
        return self.database.direct(
            lambda tx: Jobs(tx, "default").defer(f"errands.{kind}", {"word": word, **own}, **how), write=True
        )

    def job(self, job_id: int) -> Any:
        return self.database.direct(lambda tx: Jobs(tx, "default").of(job_id))

    @property
    def undone(self) -> int:
        return self.database.direct(lambda tx: tx.scalar(UNDONE))

    @property
    def effects(self) -> list[tuple[int, int, str]]:
        return [tuple(row) for row in self.database.direct(lambda tx: tx.all(EFFECTS))]

    @property
    def recorded(self) -> int:
        return self.database.direct(lambda tx: tx.scalar(RECORDED))

    @property
    def starts(self) -> list[Any]:
        return list(self.database.direct(lambda tx: tx.all(STARTS)))

    def started_by(self, process: int) -> bool:
        return any(row.process == process for row in self.starts)
