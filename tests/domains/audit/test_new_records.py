"""`count_new_records`: whether the log has grown for whoever reads in the middle of it."""

from typing import Any

import pytest

from rookery.core.errors import PermissionDenied
from rookery.domains.audit import new_records
from rookery.domains.audit.new_records import count_new_records
from rookery.domains.audit.search_audit import search_audit
from rookery.identity.store import IdentityStore
from tests.domains.audit.test_search_audit import read, written
from tests.platform_fixtures import Fleet


async def newest(fleet: Fleet) -> int:
    return (await read(fleet, search_audit)).newest


async def count(fleet: Fleet, after: int, /, session: str | None = None, **wanted: Any) -> int:
    reader = fleet.actor(as_owner=True, session=session)
    return (await read(fleet, count_new_records, reader, after=after, **wanted)).count


async def test_an_agent_does_not_learn_how_the_log_grows(fleet: Fleet) -> None:
    with pytest.raises(PermissionDenied):
        await read(fleet, count_new_records, fleet.actor(), after=0)
    assert "count_new_records" not in fleet.names(fleet.owner)


async def test_what_came_later_is_counted_if_it_is_like_what_is_wanted(fleet: Fleet) -> None:
    written(fleet, {"tool": "old_tool"})
    last = await newest(fleet)
    written(fleet, {"tool": "new_tool"}, {"tool": "new_tool", "outcome": "failed"})
    assert await count(fleet, last, tool="new_tool") == 2
    assert await count(fleet, last, outcome="failed") == 1
    assert await count(fleet, last, tool="old_tool") == 0
    assert await count(fleet, last + 1_000_000) == 0


async def test_looking_is_not_news_to_whoever_looks_and_changing_is(fleet: Fleet) -> None:
    last = await newest(fleet)
    looks = {"session": "web-1", "request": "req-9"}
    written(fleet, {**looks, "effect": "read"}, {**looks, "effect": "write"})
    assert await count(fleet, last, session="web-1", request="req-9") == 1
    assert await count(fleet, last, session="web-2", request="req-9") == 2
    assert await count(fleet, last, request="req-9") == 2


async def test_another_tenant_hears_nothing_of_ours(fleet: Fleet) -> None:
    fleet.platform.database.direct(lambda tx: IdentityStore(tx, "other").set_up(), write=True)
    stranger = fleet.actor(tenant="other", as_owner=True)
    written(fleet, {"tool": "our_tool"})
    assert (await read(fleet, count_new_records, stranger, after=0, tool="our_tool")).count == 0


async def test_there_is_an_end_to_counting(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(new_records, "MOST", 3)
    written(fleet, *({"tool": "counted"} for _ in range(5)))
    assert await count(fleet, 0, tool="counted") == 3
