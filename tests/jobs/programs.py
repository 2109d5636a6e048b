"""`rookery` programs in processes of their own, on one database, each with a home of its own."""

import sys
from pathlib import Path

from tests.cli.terminal import Terminal
from tests.jobs.nursery import until
from tests.warm import start


class Program:
    """A running `rookery up` or `rookery worker`, whose output is in a file."""

    def __init__(self, folder: Path, *words: str, **environ: str) -> None:
        folder.mkdir(exist_ok=True)
        self._output = folder / "output"
        with self._output.open("ab") as output:
            command = [sys.executable, "-m", "rookery.entry", *words]
            self.process = start(command, env=Terminal(folder, **environ).full_environ(), stdout=output, stderr=output)

    @property
    def said(self) -> str:
        return self._output.read_text(errors="replace")

    def wait(self) -> "Program":
        """When this returns, it is at work."""
        until(lambda: "Rookery " in self.said or self.process.poll() is not None, "the program has started")
        assert self.process.poll() is None, self.said
        return self

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


class Programs:
    """All the programs of a test."""

    def __init__(self, folder: Path, url: str) -> None:
        self._folder = folder
        self._environ = {"ROOKERY_DATABASE": url, "ROOKERY_JOB_LEASE_S": "3", "ROOKERY_LOG_LEVEL": "error"}
        self.started: list[Program] = []

    def start(self, *words: str, home: str | None = None) -> Program:
        """A new program; the same home is for the successor of one that is gone."""
        folder = self._folder / (home or f"program{len(self.started)}")
        self.started.append(Program(folder, *words, **self._environ))
        return self.started[-1]

    def server(self, home: str | None = None) -> Program:
        return self.start("up", "--port", "0", home=home)

    def worker(self) -> Program:
        return self.start("worker", "--concurrency", "8")

    def close(self) -> None:
        for program in self.started:
            program.kill()
