"""Scans and intakes of the project `shop`, from the wish to what came of it, with real jobs and scripted agents."""

import json
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from rookery.db.tx import Tx
from rookery.domains.tracker.project_store import Projects, ProjectSettings
from rookery.domains.tracker.tables import coverage
from rookery.engine.background import background_wishes, take_in_folder
from rookery.engine.dispatches import NewDispatch
from rookery.engine.project_settings import OrchestratorProjects, OrchestratorSettings
from rookery.engine.tables import intake_requests
from tests.domains.tracker.desk import git
from tests.engine.crew import Crew, Started, call


class Background:
    """The background of one project."""

    def __init__(self, crew: Crew) -> None:
        self.crew = crew

    async def open(self, **settings: Any) -> None:
        await self.crew.open(**{"scan_every_s": 0, **settings})

    @property
    def place(self) -> tuple[str, ProjectSettings, OrchestratorSettings]:
        actor = self.crew.person("shop")

        def look(tx: Tx) -> tuple[str, ProjectSettings, OrchestratorSettings]:
            project = Projects(tx, actor).settings()
            return "default", project, OrchestratorProjects(tx, "default").of(project.project_id)[1]

        return self.crew.platform.database.direct(look)

    async def wishes(self) -> list[NewDispatch]:
        """What could start now."""
        return [wish.new for wish in await background_wishes(self.crew.platform, *self.place)]

    async def wish(self) -> NewDispatch:
        (wish,) = await self.wishes()
        return wish

    async def take_in(self) -> int:
        return await take_in_folder(self.crew.platform, *self.place)

    def queue(self, wish: NewDispatch) -> sa.Row[Any]:
        return self.crew.queue(None, work=wish.work, role=wish.role, payload=wish.payload)

    async def run(self, wish: NewDispatch | None = None) -> sa.Row[Any]:
        """Let an agent do what is wished for; the dispatch as it ended."""
        row = self.queue(wish or await self.wish())
        await self.crew.work()
        return self.crew.row(row)

    def commit(self, **files: str | None) -> None:
        """Commit files with these texts to the base branch; None removes one. `__` stands for a dot."""
        folder = self.crew.repository
        for name, text in files.items():
            path = folder / name.replace("__", ".")
            path.write_text(text, encoding="utf-8") if text is not None else path.unlink()
        git(folder, "add", "-A")
        git(folder, "commit", "-q", "-m", "more")

    def blob(self, path: str) -> str:
        return git(self.crew.repository, "rev-parse", f"main:{path}").strip()

    def covered(self) -> dict[str, str | None]:
        """The content that was recorded of each file."""
        rows = self.crew.rows(sa.select(coverage).order_by(coverage.c.file_path))
        return {row.file_path: row.content for row in rows}

    def requests(self) -> list[sa.Row[Any]]:
        return list(
            self.crew.rows(sa.select(intake_requests).order_by(intake_requests.c.created_ms, intake_requests.c.id))
        )

    def states(self) -> list[str]:
        return [row.state for row in self.requests()]

    async def bring(self, *texts: str) -> list[str]:
        """Bring requests as the owner does; their ids."""
        stored = await self.crew.call(self.crew.person("shop"), "submit_requests", requests=list(texts))
        return [each.id for each in stored.requests]


def paths(wish: NewDispatch) -> list[str]:
    return [file["path"] for file in wish.payload["files"]]


def record(path: str, concept: str = "errors", **more: Any) -> str:
    return call("record_coverage", file_path=path, concept=concept, status="covered", **more)


def told(prompt: str, word: str) -> dict[str, Any]:
    """The last block of JSON in a prompt that has this word: what an agent is shown how to call."""
    blocks = [block.partition("```")[0] for block in prompt.split("```json\n")[1:]]
    return json.loads(next(block for block in reversed(blocks) if word in block))


def scan_all(started: Started) -> Sequence[str]:
    """What a scanner does that is in order: it records every file that it was given."""
    concept = told(started.prompt, "file_path")["concept"]
    listed = started.prompt.partition("# The files that you are given")[2].partition("# What to do now")[0]
    names = [line.split("`")[1] for line in listed.splitlines() if line.startswith("- `")]
    return [record(name, concept) for name in names]


def request_ids(started: Started) -> list[str]:
    """The ids of the requests that an intake agent was given, in order."""
    return [line.split("`")[1] for line in started.prompt.splitlines() if line.startswith("## `req-")]


def make_issues(started: Started) -> Sequence[str]:
    """What an intake agent does that is in order: an issue for each request, which names it."""
    return [
        call("create_issue", title=f"wish {number}", description=f"Request: {each}")
        for number, each in enumerate(request_ids(started), 1)
    ]
