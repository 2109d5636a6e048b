"""A terminal whose home knows the jobs of chores.py, and workers and servers as processes of their own."""

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from rookery.db.database import open_database
from rookery.db.tx import Tx
from rookery.jobs.store import Jobs
from tests.cli.terminal import SOURCE, Terminal
from tests.warm import start

T = TypeVar("T")
ROOT = Path(__file__).parents[2]
LIMIT_S = 30.0


class Running:
    """A command in a process of its own, and what it prints line by line."""

    def __init__(self, command: list[str], env: dict[str, str]) -> None:
        self.process = start(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.errors: list[str] = []
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._readers = [threading.Thread(target=read, daemon=True) for read in (self._read, self._read_errors)]
        for reader in self._readers:
            reader.start()

    def _read(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            self._lines.put(line.rstrip())
        self._lines.put(None)

    def _read_errors(self) -> None:
        assert self.process.stderr
        self.errors += self.process.stderr

    def line(self, start: str = "") -> str:
        """The next line that begins like this."""
        while (found := self._lines.get(timeout=LIMIT_S)) is not None:
            if found.startswith(start):
                return found
        raise AssertionError(f"the process ended with {self.process.wait(LIMIT_S)}: {''.join(self.errors)}")

    def end(self, *signals: signal.Signals) -> int:
        """The exit code after these signals."""
        for number in signals:
            self.process.send_signal(number)
        return self.process.wait(LIMIT_S)

    def close(self) -> None:
        self.process.kill()
        self.process.wait(LIMIT_S)
        for reader in self._readers:
            reader.join(LIMIT_S)
        for pipe in (self.process.stdout, self.process.stderr):
            assert pipe
            pipe.close()


class Yard(Terminal):
    """A terminal with chores to do, on a database that has its tables."""

    def __init__(self, folder: Path, url: str) -> None:
        super().__init__(folder, ROOKERY_DATABASE=url, ROOKERY_PLUGINS="yes", PORT="0", ROOKERY_JOB_LEASE_S="5")
        self.folder = folder
        self.plugin = folder / "plugin"
        described = self.plugin / "rookery_chores-1.0.dist-info"
        described.mkdir(parents=True)
        (described / "METADATA").write_text("Metadata-Version: 2.1\nName: rookery-chores\nVersion: 1.0\n")
        (described / "entry_points.txt").write_text("[rookery.domains]\nchores = tests.cli.chores\n")
        self.started: list[Running] = []
        self.database_url = url

    def full_environ(self) -> dict[str, str]:
        paths = os.pathsep.join([SOURCE, str(self.plugin), str(ROOT)])
        return {**super().full_environ(), "PYTHONPATH": paths}

    def start(self, *words: str) -> Running:
        return self.start_python("-m", "rookery.entry", *words)

    def start_python(self, *words: str) -> Running:
        self.started.append(Running([sys.executable, *words], self.full_environ()))
        return self.started[-1]

    def on_database(self, work: Callable[[Tx], T], *, write: bool = False) -> T:
        database = open_database(self.database_url)
        try:
            return database.direct(work, write=write)
        finally:
            database.close()

    def defer(self, kind: str, *, tenant: str = "default", **how: Any) -> int:
        """A job with arguments of its own: `word`, and files for what it tells and waits for."""
        args = {name: how.pop(name) for name in ("word", "told", "gate") if name in how}
        queue = {"queue": "slow"} if kind == "wait" else {}
        return self.on_database(
            lambda tx: Jobs(tx, tenant).defer(f"chores.{kind}", args, **{"attempts": 1, **queue, **how}), write=True
        )

    def state(self, job_id: int) -> Any:
        return self.on_database(lambda tx: Jobs(tx, "default").of(job_id))

    def until(self, reached: Callable[[], T], what: str) -> T:
        """The first true answer, within a bound."""
        deadline = time.monotonic() + LIMIT_S
        while not (found := reached()):
            errors = ["".join(each.errors)[-2000:] for each in self.started]
            assert time.monotonic() < deadline, f"{what}: {errors}"
            time.sleep(0.02)
        return found

    def until_state(self, job_id: int, state: str) -> Any:
        def reached() -> Any:
            row = self.state(job_id)
            return row if row.state == state else None

        return self.until(reached, f"job {job_id} is never {state}")

    def pid_in(self, file: Path) -> int:
        """The process that wrote its number there."""
        return int(self.until(lambda: file.exists() and file.read_text(), f"{file.name} is never written"))

    def logged(self, running: Running) -> list[str]:
        """The messages that a process has logged so far."""
        return [json.loads(line)["message"] for line in list(running.errors) if line.startswith("{")]

    def close(self) -> None:
        for each in self.started:
            each.close()
