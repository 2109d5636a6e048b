"""Asking why an issue waits: one reason, the same that the tick would have, and nothing of what is not one's own."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rookery.core.actor import Actor
from rookery.core.errors import NotFound, PermissionDenied
from rookery.core.tool import PROFILES, Tool
from rookery.db.tx import Tx
from rookery.engine.leading import Leadership
from rookery.engine.owner_commands import configure_orchestrator, list_dispatches, orchestrator_status
from rookery.engine.project_settings import ROLES, OrchestratorProjects
from rookery.identity.store import DEFAULT_TENANT, IdentityStore
from rookery.lifecycle.pauses import Pauses
from tests.engine.watching import Watched
from tests.platform_fixtures import Fleet


@pytest.fixture
def watched(database_url: str, make_fleet: Callable[..., Fleet], tmp_path: Path) -> Watched:
    return Watched(make_fleet(database_url, extra={}, runtime="scripted"), tmp_path)


def lead(watched: Watched) -> None:
    """Somebody ticks."""

    def work(tx: Tx) -> None:
        Leadership().claim(tx)

    watched.direct(work, write=True)


async def why(watched: Watched, issue: Any = None, actor: Actor | None = None) -> Any:
    given = {} if issue is None else {"issue_id": issue.identifier}
    return await watched.call(actor or watched.owner, "why_waiting", **given)


async def run(watched: Watched, actor: Actor, tool: Tool, **arguments: Any) -> Any:
    return (await watched.fleet.platform.calls.run(actor, tool, arguments)).structured


async def test_of_another_tenants_issue_nothing_is_said(watched: Watched) -> None:
    issue = await watched.issue(status="todo")
    with pytest.raises(NotFound, match=f"there is no issue {issue.identifier}"):
        await why(watched, issue, watched.stranger)


async def test_an_agent_without_a_role_in_the_project_is_told_that_there_is_no_such_issue(watched: Watched) -> None:
    await watched.project("closed")
    issue = await watched.issue(status="todo", project="closed")
    watched.direct(lambda tx: IdentityStore(tx, DEFAULT_TENANT).set_members("closed", []), write=True)
    with pytest.raises(NotFound, match=f"there is no issue {issue.identifier}"):
        await why(watched, issue, watched.actor("worker", await watched.issue()))


async def test_whoever_is_bound_to_none_has_to_name_one(watched: Watched) -> None:
    with pytest.raises(NotFound, match="no issue is bound"):
        await why(watched)
    with pytest.raises(NotFound, match="there is no issue NO-1"):
        await watched.call(watched.owner, "why_waiting", issue_id="NO-1")


async def test_agents_cannot_steer_the_orchestrator(watched: Watched) -> None:
    agent = watched.actor("planner", await watched.issue())
    for tool in (configure_orchestrator, orchestrator_status, list_dispatches):
        with pytest.raises(PermissionDenied):
            await run(watched, agent, tool)
    assert watched.direct(lambda tx: OrchestratorProjects(tx, DEFAULT_TENANT).of(watched.project_id))[0] is True


async def test_another_tenant_sees_nothing_of_ours(watched: Watched) -> None:
    issue = await watched.issue(status="todo")
    watched.dispatch(issue)
    told = await run(watched, watched.stranger, orchestrator_status)
    assert (told["projects"], told["running"], told["queued"], told["waiting"], told["next"]) == ([], [], [], [], [])
    assert (await run(watched, watched.stranger, list_dispatches))["dispatches"] == []
    assert len((await run(watched, watched.owner, orchestrator_status))["queued"]) == 1


async def test_without_a_leader_and_then_with_one(watched: Watched) -> None:
    issue = await watched.issue(status="todo")
    assert (await why(watched, issue)).code == "no_leader"
    lead(watched)
    told = await why(watched, issue)
    assert (told.identifier, told.code, told.until_ms) == (issue.identifier, "next", None)
    assert told.reason == "a worker begins at the next tick"


async def test_a_bound_agent_need_not_name_its_issue(watched: Watched) -> None:
    lead(watched)
    first = await watched.issue(status="todo")
    issue = await watched.issue(status="todo", depends_on=[first.identifier])
    told = await why(watched, actor=watched.actor("worker", issue))
    assert (told.identifier, told.code) == (issue.identifier, "dependency")
    assert first.identifier in told.reason


async def test_every_profile_may_ask(watched: Watched) -> None:
    issue = await watched.issue(status="todo")
    for profile in PROFILES.values():
        assert (await why(watched, actor=watched.actor(profile, issue))).identifier == issue.identifier


async def test_a_finished_issue_of_a_project_that_is_off_has_its_reason_too(watched: Watched) -> None:
    lead(watched)
    await watched.project("closed")
    done = await watched.issue(status="done", project="closed")
    assert (await why(watched, done)).code == "status"
    assert (await why(watched, await watched.issue(status="todo", project="closed"))).code == "not_enabled"


async def test_the_answer_is_the_plans_for_every_issue(watched: Watched) -> None:
    lead(watched)
    watched.enable(max_agents=2, role_caps={"planner": 0})
    first = await watched.issue(status="todo", priority=1)
    made = [first, await watched.issue(status="todo", depends_on=[first.identifier])]
    made += [await watched.issue(status="todo", phase=phase) for phase in ("research", "grooming", "ready")]
    made += [await watched.issue(status=status) for status in ("blocked", "review", "in_progress")]
    made += [await watched.issue(status="todo", phase="research", labels=["skip:research"])]
    made += [await watched.issue(status="todo", labels=["needs-planning"])]
    watched.ended(failed := await watched.issue(status="todo"), "failed")
    watched.dispatch(live := await watched.issue(status="todo"))
    for paused in (False, True):
        if paused:
            watched.direct(lambda tx: Pauses(tx, DEFAULT_TENANT).pause("all", by="per-1"), write=True)
        decided = watched.plan()
        told = {each.id: await why(watched, each) for each in (*made, failed, live)}
        for issue_id, answer in told.items():
            expected = decided.about(DEFAULT_TENANT, issue_id)
            # What is blocked is not looked at by the tick, only for whoever asks.
            assert (answer.code, answer.reason) == (
                ("status", "it is blocked and waits for a person")
                if expected is None
                else (expected.code, expected.reason)
            )
        assert {answer.code for answer in told.values()} >= ({"paused"} if paused else {"next", "cap_project", "retry"})


async def test_of_many_who_set_different_roles_at_once_none_is_lost(watched: Watched) -> None:
    caps = {role: number for number, role in enumerate(ROLES)}
    owner = watched.owner
    calls = (run(watched, owner, configure_orchestrator, role_caps={role: cap}) for role, cap in caps.items())
    await asyncio.gather(*calls)
    told = await run(watched, owner, configure_orchestrator, enabled=False)
    assert (told["enabled"], told["settings"]["role_caps"]) == (False, caps)
    assert await run(watched, owner, configure_orchestrator) == told
