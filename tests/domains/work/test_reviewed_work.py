"""What a second reading of work tasks found."""

import asyncio
import os
import stat
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
import sqlalchemy as sa
from sqlalchemy import event

from rookery.core.errors import ValidationFailed
from rookery.domains.work import worktree
from rookery.domains.work.pull_requests import repository_name
from rookery.domains.work.worktree import Place
from rookery.lifecycle.sessions import Outcome
from tests.domains.work.test_programs import gone
from tests.domains.work.workshop import Listening, Workshop, git, make_repository

SOON_S = 2.0


@pytest.mark.anyio
async def test_the_session_of_a_task_has_no_more_scopes_than_the_token_that_asked_for_it(workshop: Workshop) -> None:
    await workshop.open()
    owner, actors = workshop.fleet.owner, []
    workshop.use(Listening(workshop, [], actors))
    token = await workshop.call(owner, "create_token", name="narrow", agent="default", scopes=["work:create"])
    agent = workshop.agent(token=token.secret, source="http")
    await workshop.work("!write a.txt a", actor=agent)
    assert workshop.fleet.names(actors[0]) == workshop.fleet.names(agent)
    assert "save_memory" not in workshop.fleet.names(agent)


@pytest.mark.anyio
async def test_a_task_of_a_project_that_was_closed_meanwhile_prepares_nothing(
    workshop: Workshop, tmp_path: Path
) -> None:
    await workshop.open(install=f"touch {tmp_path}/prepared")
    task = await workshop.create("!write a.txt a")
    await workshop.call(workshop.fleet.owner, "set_project_members", project="shop", agents=[])
    await workshop.done()
    row = workshop.row(task.id)
    assert row.status == "failed"
    assert "there is no project" in row.error
    assert not (tmp_path / "prepared").exists()
    assert git(workshop.repository, "branch", "--list", "agent/*") == ""


@pytest.mark.anyio
async def test_an_old_task_of_a_closed_project_is_not_shown_to_who_asks_for_it_again(workshop: Workshop) -> None:
    await workshop.open()
    owner = workshop.fleet.owner
    first = await workshop.create("first", source_id="key")
    await workshop.call(owner, "set_project_members", project="shop", agents=[])
    with pytest.raises(Exception, match="there is no"):
        await workshop.create("again", actor=workshop.fleet.actor(), project_id="shop", source_id="key")
    other = make_repository(workshop.folder / "code" / "other")
    await workshop.call(owner, "create_project", slug="other", path=str(other))
    with pytest.raises(Exception, match="source_id") as refusal:
        await workshop.create("again", actor=workshop.fleet.actor(), project_id="other", source_id="key")
    assert first.id not in str(refusal.value)


def test_the_folder_that_holds_all_working_trees_keeps_its_mode(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = make_repository(tmp_path / "shop")
    base, _ = worktree.starting_point(str(repository))
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    place = Place(str(repository), str(shared / "wtk-1"), "agent/ada/fix-1", base, "Ada")
    worktree.make_worktree(place)
    real = os.rmdir
    refused: list[str] = []

    def busy(path: str, **how: object) -> None:
        # As if a program that was left behind had put a file there just now.
        if path == place.folder and not refused:
            refused.append(path)
            raise OSError(39, "Directory not empty", path)
        real(path, **how)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "rmdir", busy)
    worktree.put_away(place, "rest")
    assert refused
    assert not os.path.lexists(place.folder)
    assert stat.S_IMODE(shared.stat().st_mode) == 0o1777


def test_an_address_of_a_remote_that_never_ends_is_none(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "shop")
    config = repository / ".git" / "config"
    config.write_text(f'{config.read_text()}[remote "origin"]\n\turl = {"github" * 20_000}\n', encoding="utf-8")
    began = time.perf_counter()
    assert repository_name(str(repository)) is None
    assert time.perf_counter() - began < SOON_S


def test_a_working_tree_that_lost_its_git_folder_is_not_taken_for_a_part_of_another(tmp_path: Path) -> None:
    around = make_repository(tmp_path / "around")
    repository = make_repository(around / "shop")
    base, _ = worktree.starting_point(str(repository))
    place = Place(str(repository), str(around / "trees" / "wtk-1"), "agent/ada/fix-1", base, "Ada")
    worktree.make_worktree(place)
    (around / "README.md").write_text("not committed yet\n", encoding="utf-8")
    Path(place.folder, ".git").unlink()
    for touch in (worktree.restore, lambda at: worktree.commit_leftovers(at, "x")):
        with pytest.raises(ValidationFailed):
            touch(place)
    assert (around / "README.md").read_text(encoding="utf-8") == "not committed yet\n"
    assert git(around, "log", "--format=%s") == "first"


@pytest.mark.anyio
async def test_a_session_that_never_ends_does_not_hold_up_the_project_for_ever(workshop: Workshop) -> None:
    facts = cast("dict[str, Any]", workshop.fleet.platform.calls.facts)
    facts["settings"] = replace(facts["settings"], agent_timeout_ms=200)
    await workshop.open()
    task = await workshop.work("!wait 3000")
    assert task.status == "failed"
    assert "did not end within 0.2 s" in task.error


@pytest.mark.anyio
async def test_whoever_cancels_takes_the_job_and_the_task_in_the_order_of_who_works_on_them(workshop: Workshop) -> None:
    """On PostgreSQL the two would wait for each other otherwise, until the database throws one out."""
    await workshop.open()
    task = await workshop.create()
    changed: list[str] = []

    def note(connection: Any, cursor: Any, statement: str, *_: Any) -> None:
        if statement.startswith("UPDATE "):
            changed.append(statement.split()[1])

    event.listen(sa.Engine, "before_cursor_execute", note)
    try:
        await workshop.call(workshop.agent(), "cancel_work_task", task_id=task.id)
    finally:
        event.remove(sa.Engine, "before_cursor_execute", note)
    assert [table for table in changed if table in ("jobs", "work_tasks")] == ["jobs", "work_tasks"]


@pytest.mark.parametrize(("cost", "counted"), [(0.25, 250_000), (-1.0, 0), (float("nan"), 0), (1e308, 10**12)])
def test_what_is_no_price_costs_nothing(cost: float, counted: int) -> None:
    assert Outcome("done", cost_usd=cost).cost_micros == counted


KILLED = """
import asyncio, sys
from rookery.lifecycle.programs import run_command
asyncio.run(run_command("sleep 300 & echo $$ $! > pids; mv pids there; sleep 300", sys.argv[1], 300))
"""


@pytest.mark.anyio
async def test_commands_of_a_worker_that_was_killed_end_with_it(tmp_path: Path) -> None:
    """Whoever takes the task over would work in one folder with them."""
    worker = subprocess.Popen([sys.executable, "-c", KILLED, str(tmp_path)])
    deadline = time.monotonic() + 20
    while not (tmp_path / "there").exists():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.01)
    worker.kill()
    worker.wait()
    for process in (tmp_path / "there").read_text().split():
        await gone(int(process))
