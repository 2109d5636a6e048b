"""What people are told of work that came to nothing, and what is no agent's to change about the server beside it."""

import os
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from rookery.core.tool import Tool
from rookery.db.tx import Tx
from rookery.domains.tracker.store import Issues
from rookery.engine.dispatches import Dispatches
from rookery.engine.intake_list import list_requests
from rookery.engine.owner_commands import orchestrator_status
from rookery.identity.store import DEFAULT_TENANT
from rookery.runtimes.command_client import our_server
from tests.engine.background import Background
from tests.engine.crew import Crew, Started
from tests.engine.watching import Watched
from tests.platform_fixtures import Fleet
from tests.runtimes.command_stage import Stage as Programs

SOURCE = str(Path(__file__).parents[2] / "src")


@pytest.fixture
def watched(database_url: str, make_fleet: Callable[..., Fleet], tmp_path: Path) -> Watched:
    return Watched(make_fleet(database_url, extra={}, runtime="scripted"), tmp_path)


async def run(watched: Watched, actor: Any, tool: Tool, **arguments: Any) -> Any:
    return (await watched.fleet.platform.calls.run(actor, tool, arguments)).structured


async def test_issues_that_wait_for_a_person_are_told_with_why_and_to_nobody_elses_tenant(watched: Watched) -> None:
    issue = await watched.issue(status="todo")
    await watched.issue(status="todo")

    def block(tx: Tx) -> None:
        store = Issues(tx, watched.owner)
        held = store.move(store.find(issue.identifier), "in_progress", "orchestrator")
        store.move(held, "blocked", "orchestrator", why="the worker failed 4 times")

    watched.direct(block, write=True)
    assert (await run(watched, watched.stranger, orchestrator_status))["blocked"] == []
    (told,) = (await run(watched, watched.owner, orchestrator_status))["blocked"]
    assert (told["issue"], told["project"]) == (issue.identifier, watched.owner.project_slug)
    assert (told["reason"], told["since_ms"] > 0) == ("the worker failed 4 times", True)


async def test_a_scan_or_an_intake_that_came_to_nothing_is_told_until_one_succeeds(watched: Watched) -> None:
    def failed(work: str, outcome: Any, error: str | None) -> None:
        row = watched.dispatch(None, work=work, role="intake" if work == "intake" else "scanner")
        watched.direct(lambda tx: Dispatches(tx, DEFAULT_TENANT).end(row.id, outcome, error), write=True)

    async def told() -> list[tuple[str, str, str | None]]:
        found = (await run(watched, watched.owner, orchestrator_status))["background"]
        return [(each["role"], each["outcome"], each["error"]) for each in found]

    failed("intake", "failed", "no repository")
    failed("scan", "idle", "2 of 2 files were not recorded")
    failed("scan", "cancelled", "a pause")
    assert (await run(watched, watched.stranger, orchestrator_status))["background"] == []
    assert await told() == [
        ("intake", "failed", "no repository"),
        ("scanner", "idle", "2 of 2 files were not recorded"),
    ]
    failed("scan", "succeeded", None)
    assert await told() == [("intake", "failed", "no repository")]


async def test_a_request_that_nobody_could_even_begin_is_listed_with_what_is_wrong(crew: Crew) -> None:
    shop = Background(crew)

    async def listed() -> str | None:
        return (await crew.platform.calls.run(crew.person("shop"), list_requests, {})).structured["failed"]

    await shop.open()
    await shop.bring("the export is slow")
    assert await listed() is None
    row = shop.queue(await shop.wish())

    def fail(tx: Tx) -> None:
        Dispatches(tx, DEFAULT_TENANT).end(row.id, "failed", "the folder is no repository")

    crew.platform.database.direct(fail, write=True)
    assert await listed() == "failed: the folder is no repository"


async def test_a_request_that_is_given_up_says_what_the_last_agent_ended_with(crew: Crew) -> None:
    shop = Background(crew)
    await shop.open(max_retries=0)
    await shop.bring("the export is slow")

    def fails(started: Started) -> Sequence[str]:
        return ["!fail the model is away"]

    crew.runtime.script = fails
    await shop.run()
    await shop.wishes()
    (request,) = shop.requests()
    assert request.state == "failed"
    assert "ended as failed" in request.note
    assert "the model is away" in request.note


@pytest.mark.parametrize("path", ["", SOURCE], ids=["installed", "from a checkout"])
def test_a_file_of_the_agents_folder_is_never_run_as_a_module_of_our_server(tmp_path: Path, path: str) -> None:
    (tmp_path / "programs").mkdir()
    (tmp_path / "tree").mkdir()
    stage = Programs(tmp_path / "programs")
    for name in ("http", "asyncio", "json", "rookery"):
        (tmp_path / "tree" / f"{name}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w').write({name!r})\n")
    ours = our_server(str(stage.home), stage.launch(), "mark", {"PYTHONPATH": path})
    words = [ours["command"], *ours["args"][:-2], "--version"]
    # What an installed Rookery finds by itself is named here.
    environ = {**os.environ, "PYTHONPATH": SOURCE}
    said = subprocess.run(words, cwd=tmp_path / "tree", env=environ, capture_output=True, text=True, check=False)
    assert not (tmp_path / "ran").exists()
    assert said.returncode == 0, said.stderr
