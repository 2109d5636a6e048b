"""With `credits_hard_stop` an agent without credits can look and do no more; without it nothing is stopped."""

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest

from rookery.core.errors import PermissionDenied
from rookery.identity.resolve import Binding
from rookery.ledger.store import wallet_of
from rookery.server.session import open_session
from tests.ledger.books import Books
from tests.platform_fixtures import Fleet

LIMIT_S = 10
MEMORY = {"key": "k", "content": "c"}


@pytest.fixture
def stopping(database_url: str, make_fleet: Callable[..., Fleet]) -> Fleet:
    return make_fleet(database_url, extra={}, credits_hard_stop=True)


async def give(fleet: Fleet, amount: int, agent: str | None = None) -> str:
    """The wallet of an agent that was given credits."""
    wallet = wallet_of(fleet.actor(agent=agent).agent or "")
    await fleet.call(fleet.owner, "grant_credits", wallet_address=wallet, amount=amount)
    return wallet


async def refusing_layer(fleet: Fleet, tool: str, **arguments: Any) -> str | None:
    try:
        await fleet.call(fleet.actor(), tool, **arguments)
    except PermissionDenied as error:
        return error.layer
    return None


async def test_an_agent_without_credits_has_only_tools_that_observe(stopping: Fleet) -> None:
    await stopping.call(stopping.owner, "grant_tool", agent="default", tool="grant_credits")
    agent = stopping.actor()
    registry = stopping.platform.registry
    assert {tool.tier for tool in registry.listed(agent)} == {"observe"}
    assert await refusing_layer(stopping, "save_memory", **MEMORY) == "budget"
    own = {"wallet_address": wallet_of(agent.agent or ""), "amount": 5}
    assert await refusing_layer(stopping, "grant_credits", **own) == "budget"
    assert await refusing_layer(stopping, "check_credits") is None


async def test_credits_let_it_go_on_and_their_end_stops_it(stopping: Fleet) -> None:
    wallet = await give(stopping, 10)
    assert await refusing_layer(stopping, "save_memory", **MEMORY) is None
    books = Books(stopping.platform.database)
    books.do(lambda ledger: ledger.deduct(wallet, "deduction", 9, "r"))
    assert await refusing_layer(stopping, "save_memory", **MEMORY) is None
    held = books.do(lambda ledger: ledger.reserve(wallet, 1, "r"))
    assert await refusing_layer(stopping, "save_memory", **MEMORY) is None
    books.do(lambda ledger: ledger.settle(held.id, 1))
    assert await refusing_layer(stopping, "save_memory", **MEMORY) == "budget"


async def test_an_open_session_is_stopped_and_goes_on_without_being_opened_again(stopping: Fleet) -> None:
    session = await open_session(stopping.platform, Binding())
    assert "save_memory" not in await session.names("tools")
    wallet = await give(stopping, 10)
    assert "save_memory" in await session.names("tools")
    Books(stopping.platform.database).do(lambda ledger: ledger.deduct(wallet, "deduction", 10, "r"))
    assert "save_memory" not in await session.names("tools")


async def test_a_session_of_another_server_is_stopped_too(
    stopping: Fleet, database_url: str, make_fleet: Callable[..., Fleet]
) -> None:
    there = make_fleet(database_url, extra={}, credits_hard_stop=True)
    wallet = await give(stopping, 10)
    session = await open_session(there.platform, Binding())
    assert "save_memory" in await session.names("tools")
    Books(stopping.platform.database).do(lambda ledger: ledger.deduct(wallet, "deduction", 10, "r"))
    # On PostgreSQL a notification is under way.
    limit = time.monotonic() + LIMIT_S
    while "save_memory" in await session.names("tools"):
        assert time.monotonic() < limit
        await asyncio.sleep(0.005)


async def test_one_agents_credits_are_not_anothers(stopping: Fleet) -> None:
    await stopping.call(stopping.owner, "create_agent", name="ada")
    await give(stopping, 10, "ada")
    assert stopping.actor(agent="ada").exhausted == frozenset()
    assert stopping.actor().exhausted == frozenset({"credits"})


async def test_people_are_not_stopped(stopping: Fleet) -> None:
    assert stopping.owner.exhausted == frozenset()
    await stopping.call(stopping.owner, "create_agent", name="ada")


async def test_explain_access_names_the_layer(stopping: Fleet) -> None:
    told = await stopping.call(stopping.owner, "explain_access", tool="save_memory", agent="default")
    assert (told.outcome, told.layer, told.reason) == ("deny", "budget", "the credits are used up")


async def test_without_the_setting_nobody_is_stopped(fleet: Fleet) -> None:
    assert fleet.actor().exhausted == frozenset()
    assert await refusing_layer(fleet, "save_memory", **MEMORY) is None
    told = await fleet.call(fleet.owner, "explain_access", tool="save_memory", agent="default")
    assert told.outcome == "allow"
