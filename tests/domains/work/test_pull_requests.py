"""A pull request for a finished branch: opened once, as the agent, where that is possible; a branch without one is
still finished work."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import sqlalchemy as sa

from rookery.asks.tables import asks
from rookery.domains.work.pull_requests import repository_name
from rookery.domains.work.tables import work_tasks
from rookery.lifecycle import session_calls
from tests.domains.work import hub
from tests.domains.work.workshop import Workshop, git, make_repository
from tests.jobs.working import running_worker, settled
from tests.platform_fixtures import Fleet

ADDRESS = "https://github.com/acme/shop.git"


@pytest.fixture
def workshop(database_url: str, make_fleet: Callable[..., Fleet], tmp_path: Path) -> Workshop:
    """A workshop with the tool that opens pull requests, whose repository has a remote."""
    hub.ASKED.clear()
    fleet = make_fleet(database_url, extra={}, approval_hold_s=0)
    # In place of the product's own tool, which would ask GitHub.
    fleet.platform.registry._tools[hub.github_create_pr.name] = replace(hub.github_create_pr, domain="hub")
    made = Workshop(fleet, tmp_path)
    git(tmp_path, "init", "-q", "--bare", "remote.git")
    git(made.repository, "remote", "add", "origin", ADDRESS)
    git(made.repository, "config", "remote.origin.pushurl", str(tmp_path / "remote.git"))
    return made


@pytest.mark.anyio
async def test_a_branch_that_cannot_be_pushed_is_finished_all_the_same(workshop: Workshop, tmp_path: Path) -> None:
    await workshop.open()
    git(workshop.repository, "config", "remote.origin.pushurl", str(tmp_path / "nowhere.git"))
    task = await workshop.work("!write a.txt x", "!say done")
    assert (task.status, task.pr_url, hub.ASKED) == ("completed", None, [])
    assert task.summary.startswith("done\n(the branch could not be pushed: ")


@pytest.mark.anyio
async def test_a_refusal_is_told_in_the_summary(workshop: Workshop) -> None:
    await workshop.open()
    task = await workshop.work("make it right, the hub is down", "!write a.txt x")
    assert (task.status, task.pr_url, task.summary) == ("completed", None, "(no pull request: the hub is down)")
    held = await workshop.work("!write b.txt x", actor=workshop.agent(scheduler=True))
    assert (held.status, held.pr_url) == ("completed", None)
    assert "blocked in scheduled sessions" in held.summary


@pytest.mark.anyio
async def test_after_an_interruption_it_is_not_asked_for_again(workshop: Workshop) -> None:
    await workshop.open()
    made = await workshop.create("!write a.txt x")
    workshop.change(sa.update(work_tasks).values(pr_asked=True))
    await workshop.done()
    assert (workshop.row(made.id).status, hub.ASKED) == ("completed", [])
    assert "see whether it is there" in workshop.row(made.id).summary


@pytest.mark.anyio
async def test_a_finished_branch_is_pushed_and_proposed(workshop: Workshop, tmp_path: Path) -> None:
    await workshop.open()
    ran = tmp_path / "ran"
    hook = workshop.repository / ".git" / "hooks" / "pre-push"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {ran}\nexit 1\n", encoding="utf-8")
    hook.chmod(0o755)
    task = await workshop.work("fix the login", "!write a.txt x")
    assert (task.status, task.pr_url) == ("completed", "https://github.com/acme/shop/pull/1")
    (asked,) = hub.ASKED
    assert (asked.repo, asked.title, asked.head, asked.base) == (
        "acme/shop",
        "[Agent] fix the login",
        task.branch_name,
        "main",
    )
    pushed = git(tmp_path / "remote.git", "rev-parse", task.branch_name)
    assert pushed == git(workshop.repository, "rev-parse", task.branch_name)
    assert not ran.exists()


@pytest.mark.anyio
@pytest.mark.parametrize(("decision", "status"), [("approve", "answered"), (None, "withdrawn")])
async def test_a_pull_request_that_a_person_has_to_approve_waits_a_while(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch, decision: str | None, status: str
) -> None:
    monkeypatch.setattr(session_calls, "AGAIN_S", 0.02)
    monkeypatch.setattr(session_calls, "APPROVAL_S", 600.0 if decision else 0.1)
    asking = sa.select(asks).where(asks.c.kind == "approval")
    await workshop.open()
    made = await workshop.create("!write a.txt x")
    await workshop.call(workshop.fleet.owner, "update_agent", agent="default", mode="ask")
    async with running_worker(workshop.fleet.platform), asyncio.timeout(60):
        while decision and not workshop.rows(asking):
            await asyncio.sleep(0.01)
        if decision:
            ask_id = workshop.rows(asking)[0].id
            await workshop.call(workshop.fleet.owner, "answer_ask", ask_id=ask_id, answer=decision)
        await settled(workshop.fleet.platform)
    task = workshop.row(made.id)
    assert (task.status, task.pr_url is not None, len(hub.ASKED)) == ("completed", bool(decision), int(bool(decision)))
    assert [row.status for row in workshop.rows(asking)] == [status]
    assert ("a person has to approve" in task.summary) == (decision is None)


@pytest.mark.parametrize(
    ("address", "name"),
    [
        ("https://github.com/acme/shop.git", "acme/shop"),
        ("https://github.example.org/acme/shop", "acme/shop"),
        ("git@github.com:acme/shop.git", "acme/shop"),
        ("ssh://git@github.com/acme/shop.v2.git", "acme/shop.v2"),
        ("/srv/git/shop.git", None),
        ("https://gitlab.example.org/acme/shop.git", None),
    ],
)
def test_the_name_is_read_from_the_address_of_the_remote(tmp_path: Path, address: str, name: str | None) -> None:
    folder = make_repository(tmp_path / "shop")
    assert repository_name(str(folder)) is None
    git(folder, "remote", "add", "origin", address)
    assert repository_name(str(folder)) == name
