"""A work task from its beginning to its end, with agents that obey a script and a real repository."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from rookery.core.events import Event
from rookery.jobs.tables import jobs
from tests.domains.work.workshop import Listening, Workshop, git
from tests.jobs.working import running_worker, settled


def ended(workshop: Workshop) -> list[Event]:
    """Every WorkTaskEnded from now on."""
    heard: list[Event] = []
    workshop.fleet.platform.events.subscribe(heard.append)
    return heard


@pytest.mark.anyio
async def test_without_a_runtime_the_task_fails_and_says_which_setting_is_missing(workshop: Workshop) -> None:
    await workshop.open()
    workshop.use(None)
    task = await workshop.work("!write a.txt a")
    assert task.status == "failed"
    assert task.error == "no runtime for agents is set up; the setting runtime names one"
    assert task.worktree_dir is None
    assert not workshop.worktrees.exists() or list(workshop.worktrees.iterdir()) == []


@pytest.mark.anyio
async def test_a_folder_that_is_no_repository_fails_the_task(workshop: Workshop, tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    await workshop.call(workshop.fleet.owner, "create_project", slug="plain", path=str(tmp_path / "plain"))
    made = await workshop.create(actor=workshop.agent(project="plain"))
    await workshop.done()
    assert "is not the root of a git working tree" in workshop.row(made.id).error


@pytest.mark.anyio
async def test_work_that_changes_nothing_has_failed(workshop: Workshop) -> None:
    await workshop.open()
    task = await workshop.work("!say I looked at it")
    assert (task.status, task.error, task.summary) == ("failed", "nothing was changed", "I looked at it")


@pytest.mark.anyio
async def test_committed_and_uncommitted_work_is_on_the_branch_afterwards(workshop: Workshop) -> None:
    await workshop.open()
    heard = ended(workshop)
    task = await workshop.work("!write a.txt one", "!commit first step", "!write deep/b.txt two", "!say done")
    assert (task.status, task.error, task.iteration, task.summary) == ("completed", None, 1, "done")
    assert (task.original_branch, task.pr_url) == ("main", None)
    assert workshop.log(task.branch_name) == ["first step", "[Agent] !write a.txt one"]
    assert workshop.shown(task.branch_name, "deep/b.txt") == "two"
    assert git(workshop.repository, "log", "-1", "--format=%an", task.branch_name) == "default"
    assert git(workshop.repository, "status", "--porcelain") == ""
    assert git(workshop.repository, "branch", "--show-current") == "main"
    assert task.completed_ms >= task.created_ms
    assert [(event.subject, event.payload["status"]) for event in heard if event.name == "WorkTaskEnded"] == [
        (task.id, "completed")
    ]


@pytest.mark.anyio
async def test_the_working_tree_goes_and_the_branch_stays(workshop: Workshop) -> None:
    await workshop.open()
    task = await workshop.work("!write a.txt one")
    assert task.worktree_dir is None
    assert list(workshop.worktrees.iterdir()) == []
    assert git(workshop.repository, "worktree", "list").count("\n") == 0
    assert git(workshop.repository, "branch", "--list", task.branch_name) == task.branch_name


@pytest.mark.anyio
async def test_checks_that_fail_send_the_agent_back_with_what_they_said(workshop: Workshop) -> None:
    await workshop.open(checks=['test "$(wc -l < n.txt)" -ge 3 || { echo "only $(wc -l < n.txt) lines"; exit 1; }'])
    prompts: list[str] = []
    workshop.use(Listening(workshop, prompts))
    task = await workshop.work("!append n.txt line", "!commit step")
    assert (task.status, task.iteration) == ("completed", 3)
    assert workshop.log(task.branch_name) == ["step", "step", "step"]
    assert "only 1 lines" not in prompts[0]
    assert "This is attempt 2 of 3" in prompts[1]
    assert "only 1 lines" in prompts[1]
    assert "only 2 lines" in prompts[2]


@pytest.mark.anyio
async def test_after_the_last_attempt_the_task_has_failed_with_what_the_check_said(workshop: Workshop) -> None:
    await workshop.open(checks=["true", "echo broken by design; exit 3"])
    task = await workshop.work("!append n.txt line", "!say tried")
    assert (task.status, task.iteration, task.summary) == ("failed", 3, "tried")
    assert task.error.startswith("after 3 attempts: `echo broken by design; exit 3` failed:")
    assert task.error.endswith("broken by design")
    assert workshop.shown(task.branch_name, "n.txt") == "line\nline\nline"


@pytest.mark.anyio
async def test_a_session_that_fails_is_an_attempt_like_any_other(workshop: Workshop) -> None:
    await workshop.open()
    task = await workshop.work("!append n.txt line", "!fail the model is overloaded")
    assert (task.status, task.iteration) == ("failed", 3)
    assert task.error == "after 3 attempts: The session failed: the model is overloaded"


@pytest.mark.anyio
async def test_how_often_it_is_tried_is_a_setting(workshop: Workshop) -> None:
    settings = replace(workshop.fleet.platform.settings, work_max_iterations=1)
    workshop.fleet.platform.calls.facts["settings"] = settings  # pyright: ignore[reportIndexIssue]
    await workshop.open(checks=["false"])
    task = await workshop.work("!write a.txt x")
    assert (task.status, task.iteration, task.error) == ("failed", 1, "`false` failed:\nexit code 1")


@pytest.mark.anyio
async def test_what_install_and_checks_leave_behind_is_not_committed(workshop: Workshop) -> None:
    await workshop.open(
        install="echo deps > deps.txt", checks=["test -f deps.txt", "echo junk > junk.txt; echo x >> README.md"]
    )
    task = await workshop.work("!write a.txt one", "!spend 0.25")
    assert (task.status, task.cost_micros) == ("completed", 250_000)
    changed = git(workshop.repository, "diff", "--name-only", "main", task.branch_name)
    assert changed == "a.txt"


@pytest.mark.anyio
async def test_a_tree_that_cannot_be_prepared_fails_the_task_before_any_session(workshop: Workshop) -> None:
    await workshop.open(install="echo no such package; exit 1")
    task = await workshop.work("!write a.txt one")
    assert (task.status, task.iteration, task.session_id) == ("failed", 0, None)
    assert "could not be prepared: no such package" in task.error


@pytest.mark.anyio
async def test_hooks_of_the_repository_do_not_run(workshop: Workshop, tmp_path: Path) -> None:
    await workshop.open()
    hooks = workshop.repository / ".git" / "hooks"
    hooks.mkdir(exist_ok=True)
    for name in ("post-checkout", "pre-commit", "commit-msg", "post-commit"):
        (hooks / name).write_text(f"#!/bin/sh\ntouch {tmp_path}/ran-{name}\nexit 1\n", encoding="utf-8")
        (hooks / name).chmod(0o755)
    task = await workshop.work("!write a.txt one", "!commit step", "!write b.txt two")
    assert task.status == "completed"
    assert list(tmp_path.glob("ran-*")) == []


@pytest.mark.anyio
async def test_an_address_of_a_pull_request_that_the_agent_names_is_kept(workshop: Workshop) -> None:
    await workshop.open()
    task = await workshop.work("!say opened https://github.com/acme/shop/pull/12 for you")
    assert (task.status, task.pr_url) == ("completed", "https://github.com/acme/shop/pull/12")


@pytest.mark.anyio
async def test_tasks_of_one_project_follow_each_other(workshop: Workshop) -> None:
    await workshop.open(checks=['test "$(git worktree list | wc -l)" = 2'])
    made = [await workshop.create(f"!write f{number}.txt x\n!wait 0.05") for number in range(4)]
    await workshop.done()
    assert [(workshop.row(task.id).status, workshop.row(task.id).iteration) for task in made] == [("completed", 1)] * 4


@pytest.mark.anyio
async def test_the_session_has_the_agents_own_rights_in_the_mode_of_whoever_asked(workshop: Workshop) -> None:
    await workshop.open()
    seen: list[Any] = []
    workshop.use(Listening(workshop, [], seen))
    await workshop.work("!write a.txt x", actor=workshop.agent(scheduler=True, depth=2))
    (actor,) = seen
    assert (actor.kind, actor.agent, actor.project) == ("agent", workshop.agent().agent, workshop.agent().project)
    assert (actor.scheduler, actor.depth) == (True, 2)
    assert actor.cwd.startswith(str(workshop.worktrees))


@pytest.mark.anyio
async def test_a_project_that_was_closed_to_the_agent_fails_the_task(workshop: Workshop) -> None:
    await workshop.open()
    made = await workshop.create("!write a.txt x")
    await workshop.call(workshop.fleet.owner, "set_project_members", project="shop", agents=[])
    await workshop.done()
    row = workshop.row(made.id)
    assert row.status == "failed"
    assert row.error.startswith("there is no project")


@pytest.mark.anyio
async def test_a_runtime_that_is_down_is_tried_again(workshop: Workshop) -> None:
    await workshop.open()
    made = await workshop.create("!write a.txt x")
    workshop.change(sa.update(jobs).values(backoff_ms=1))
    workshop.use(Listening(workshop, [], failures=2))
    async with running_worker(workshop.fleet.platform):
        await settled(workshop.fleet.platform, ahead_ms=2_000)
    assert (workshop.row(made.id).status, workshop.row(made.id).iteration) == ("completed", 1)
    failing = await workshop.create("!write b.txt x")
    workshop.change(sa.update(jobs).where(jobs.c.state == "waiting").values(backoff_ms=1))
    workshop.use(Listening(workshop, [], failures=9))
    async with running_worker(workshop.fleet.platform):
        await settled(workshop.fleet.platform, ahead_ms=2_000)
    row = workshop.row(failing.id)
    assert (row.status, row.error, row.worktree_dir) == ("failed", "SERVICE_UNAVAILABLE: the model is away", None)


@pytest.mark.anyio
async def test_an_agent_that_leaves_its_branch_is_sent_back(workshop: Workshop) -> None:
    await workshop.open(install="git config rookery.x y", checks=["true"])
    workshop.use(Listening(workshop, [], leave_branch=True))
    task = await workshop.work("!append a.txt x")
    assert task.status == "failed"
    assert f"The working tree is on elsewhere; it has to be on {task.branch_name}." in task.error
    # What is there belongs to no branch of ours, so it is not thrown away.
    assert workshop.row(task.id).worktree_dir is not None
