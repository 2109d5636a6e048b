"""A fleet of real processes on one database: a server that is killed and started again, and agents that play."""

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from tests.domains.tracker.desk import git
from tests.server.conftest import Place
from tests.server.processes import Server
from tests.warm import run

LIMIT_S = 90.0
WORKER = """
- call: {tool: verify_workspace, must: true}
- write: {path: "$(issue).txt", text: "the work of $(issue)"}
- call: {tool: add_comment, arguments: {content: "attempt $(n)"}}
- commit: $(issue)
- call:
    tool: complete_phase
    must: true
    arguments:
      completed_phase: ready
      summary: It is done.
      project_path: $(told project_path)
      fence: $(told fence)
"""
JUDGE = """
- call: {tool: get_issue, must: true}
- call: {tool: approve_pr, must: true, arguments: {revision: "$(revision)", reason: It does what was asked.}}
"""


class KilledFleet:
    """A home, a repository and the scripts; servers come and go."""

    def __init__(self, place: Place, folder: Path, database_url: str) -> None:
        self.place = place
        self.repository = folder / "repo"
        self._postgres = database_url if database_url.startswith("postgresql") else None
        # Nothing is kept open: servers come and go.
        url = self._postgres or f"sqlite:///{place.home / 'rookery.db'}"
        self._engine = sa.create_engine(url, poolclass=sa.NullPool)
        scripts = folder / "scripts"
        for made in (self.repository, scripts):
            made.mkdir()
        (scripts / "worker-ready.yaml").write_text(WORKER, encoding="utf-8")
        (scripts / "judge-ready.yaml").write_text(JUDGE, encoding="utf-8")
        git(self.repository, "init", "-q", "-b", "main")
        (self.repository / "README.md").write_text("# A project\n", encoding="utf-8")
        git(self.repository, "add", "-A")
        git(self.repository, "commit", "-q", "-m", "first")
        place.env |= {
            "ROOKERY_RUNTIME": "scripted",
            "ROOKERY_SCRIPTS": str(scripts),
            "ROOKERY_TICK_S": "0.2",
            "ROOKERY_JOB_LEASE_S": "1",
            **({"ROOKERY_DATABASE": self._postgres} if self._postgres else {}),
        }
        self.server: Server = place.server()
        place.session("--as-owner").call("create_project", slug="repo", path=str(self.repository))
        self.rookery("orchestrator", "enable", "--project", "repo")

    def rookery(self, *words: str) -> str:
        command = [sys.executable, "-m", "rookery.entry", *words]
        done = run(command, env=self.place.environment(), limit_s=60)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def issue(self, title: str) -> str:
        owner = self.place.session("--as-owner", "--project-slug", "repo")
        return owner.call("create_issue", title=title)["identifier"]

    def kill(self) -> None:
        """As if the machine's power had gone, and come back."""
        self.server.kill()
        self.server = self.place.server()

    def rows(self, statement: str) -> list[dict[str, Any]]:
        """What the database has, read from outside."""
        with self._engine.connect() as connection:
            return [dict(row._mapping) for row in connection.execute(sa.text(statement))]

    def until(self, holds: Callable[[], Any], what: str) -> None:
        """Look until it is so, for a bounded while."""
        deadline = time.monotonic() + LIMIT_S
        while not holds():
            assert time.monotonic() < deadline, (
                f"{what}: {self.rows('SELECT identifier, status, blocked_on FROM issues')} "
                f"{self.rows('SELECT work, state, outcome, error FROM dispatches')} {self.server.errors[-3000:]}"
            )
            time.sleep(0.01)
