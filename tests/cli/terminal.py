"""A terminal with a home folder of its own, in which tests type commands."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

import rookery
from rookery.cli.main import rookery as command_line

SOURCE = str(Path(rookery.__file__).parents[1])
LIMIT_S = 60
# What would leak from the shell that runs the tests into the commands.
UNSET = ("PORT", "GITHUB_TOKEN", "GH_TOKEN", "OTEL_EXPORTER_OTLP_ENDPOINT", "ROOKERY_DATABASE", "ROOKERY_LOG_LEVEL")


class Terminal:
    """Runs `rookery …` in this process, or in one of its own where that matters."""

    def __init__(self, folder: Path, **environ: str) -> None:
        self.home = folder / "home"
        self.user = folder / "user"
        self.user.mkdir(exist_ok=True)
        self.environ = {"ROOKERY_HOME": str(self.home), "HOME": str(self.user), "ROOKERY_PLUGINS": "no", **environ}

    @property
    def database(self) -> Path:
        return self.home / "rookery.db"

    def run(self, *words: str, typed: str | None = None) -> Result:
        runner = CliRunner(env={**dict.fromkeys(UNSET), **self.environ})
        return runner.invoke(command_line, words, input=typed)

    def ok(self, *words: str, typed: str | None = None) -> str:
        """What a command that works prints."""
        result = self.run(*words, typed=typed)
        assert result.exit_code == 0, (result.output, result.exception)
        return result.stdout

    def json(self, *words: str, typed: str | None = None) -> Any:
        return json.loads(self.ok(*words, typed=typed))

    def fails(self, *words: str, typed: str | None = None, code: int = 1) -> str:
        """What a command that is refused says on stderr; never a traceback, and nothing on stdout."""
        result = self.run(*words, typed=typed)
        assert result.exit_code == code, (result.output, result.exception)
        assert isinstance(result.exception, SystemExit)
        assert result.stdout == ""
        return result.stderr

    def refusal(self, *words: str, typed: str | None = None) -> dict[str, Any]:
        """The error that `rookery call …` prints."""
        return json.loads(self.fails("call", *words, typed=typed))["error"]

    def full_environ(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if name not in UNSET}
        return {**kept, **self.environ, "PYTHONPATH": SOURCE}

    def process(self, *words: str) -> subprocess.CompletedProcess[str]:
        """The same in a process of its own."""
        return subprocess.run(
            [sys.executable, "-m", "rookery.entry", *words],
            env=self.full_environ(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )

    def process_fails(self, *words: str) -> str:
        """What a refused command says, in a process of its own: for those that change the process they run in."""
        done = self.process(*words)
        assert (done.returncode, done.stdout) == (1, ""), done.stderr
        return done.stderr
