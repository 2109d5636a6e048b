"""A claim binds the session that makes it, for as long as it holds."""

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa

from rookery.core.actor import Actor
from rookery.core.errors import Conflict
from rookery.identity.resolve import Binding
from rookery.lifecycle.issue_tables import issues
from rookery.server.session import Session, open_session
from tests.domains.tracker.desk import Desk
from tests.domains.tracker.leasing import claimed, run_out
from tests.platform_fixtures import Fleet

LIMIT_S = 10


async def opened(desk: Desk, **binding: Any) -> Session:
    return await open_session(desk.fleet.platform, Binding(profile="worker", **binding))


async def is_bound(session: Session) -> bool:
    return "add_comment" in await session.names("tools")


async def test_another_session_of_the_same_agent_is_not_bound(desk: Desk) -> None:
    await desk.issue(status="todo")
    one, two = await opened(desk), await opened(desk)
    await desk.call(await one.actor(), "claim_issue")
    assert (await is_bound(one), await is_bound(two)) == (True, False)


async def test_a_session_has_the_tools_of_a_bound_issue_from_its_claim_to_its_release(desk: Desk) -> None:
    issue = await desk.issue(status="todo")
    session = await opened(desk)
    assert not await is_bound(session)
    await desk.call(await session.actor(), "claim_issue")
    assert await is_bound(session)
    assert (await session.actor()).issue == issue.id
    await desk.call(await session.actor(), "add_comment", content="I have it", fence=1)
    await desk.call(await session.actor(), "release_issue")
    assert not await is_bound(session)


async def test_a_session_is_bound_no_longer_than_its_lease(desk: Desk) -> None:
    issue = await desk.issue(status="todo")
    session = await opened(desk)
    await desk.call(await session.actor(), "claim_issue")
    soon = time.time_ns() // 1_000_000 + 200
    desk.change(sa.update(issues).where(issues.c.id == issue.id).values(lease_until_ms=soon))
    await session.actor()
    limit = time.monotonic() + LIMIT_S
    while await is_bound(session):
        assert time.monotonic() < limit
        await asyncio.sleep(0.005)
    assert time.time_ns() // 1_000_000 >= soon


async def test_what_a_person_takes_from_a_session_is_not_bound_to_it(desk: Desk) -> None:
    issue = await desk.issue(status="todo")
    session = await opened(desk)
    await desk.call(await session.actor(), "claim_issue")
    assert await is_bound(session)
    await desk.call(desk.person(), "release_issue", issue_id=issue.id)
    assert not await is_bound(session)


async def test_a_session_bound_from_its_start_stays_bound_without_a_lease(desk: Desk) -> None:
    issue = await desk.issue(status="todo")
    session = await opened(desk, issue=issue.identifier)
    await desk.call(await session.actor(), "claim_issue")
    run_out(desk, issue)
    assert (await session.actor()).issue == issue.id
    assert await is_bound(session)


async def test_a_session_is_bound_whatever_server_it_comes_back_to(
    desk: Desk, database_url: str, make_fleet: Callable[..., Fleet]
) -> None:
    issue = await desk.issue(status="todo")
    session = await opened(desk, session="mine")
    await desk.call(await session.actor(), "claim_issue")
    there: Actor = make_fleet(database_url, extra={}).actor(profile="worker", session="mine")
    assert there.issue == issue.id


async def test_a_session_that_has_finished_can_claim_the_next(desk: Desk) -> None:
    await desk.issue("first", status="todo")
    second = await desk.issue("second", status="todo")
    session = await opened(desk)
    await desk.call(await session.actor(), "claim_issue")
    await desk.call(await session.actor(), "update_issue_status", status="review")
    assert not await is_bound(session)
    assert (await desk.call(await session.actor(), "claim_issue")).identifier == second.identifier


async def test_who_was_overtaken_stays_out_also_when_the_next_lease_has_run_out(desk: Desk) -> None:
    issue = await desk.issue(status="todo")
    late = desk.actor("worker", issue, session="late")
    await desk.call(late, "claim_issue")
    run_out(desk, issue)
    await claimed(desk, issue, "next")
    run_out(desk, issue)
    with pytest.raises(Conflict, match="is claimed by"):
        await desk.call(late, "update_issue_status", status="review")
    assert (await desk.call(late, "claim_issue")).fence == 3
    await desk.call(late, "update_issue_status", status="review")
