from typing import Any

import pytest

from rookery.core.errors import InvalidParams, NotFound, PermissionDenied
from rookery.core.pages import encode_cursor
from rookery.identity.store import IdentityStore
from tests.platform_fixtures import Fleet


async def records(fleet: Fleet, **wanted: Any) -> list[dict[str, Any]]:
    result = await fleet.platform.calls.call(fleet.owner, "list_audit_records", wanted)
    return result.structured["records"]


async def test_an_agent_does_not_read_the_audit_log(fleet: Fleet) -> None:
    with pytest.raises(PermissionDenied) as caught:
        await fleet.call(fleet.actor(), "list_audit_records")
    assert caught.value.layer == "principal"
    assert "list_audit_records" not in fleet.names(fleet.actor())


async def test_the_calls_of_another_tenant_are_not_shown(fleet: Fleet) -> None:
    fleet.platform.database.direct(lambda tx: IdentityStore(tx, "other").set_up(), write=True)
    await fleet.call(fleet.actor(tenant="other"), "ping")
    await fleet.call(fleet.actor(), "get_server_info")
    assert [record["tool"] for record in await records(fleet, outcome="allowed")][-1] == "get_server_info"
    assert await records(fleet, tool="ping") == []


async def test_who_did_what_and_what_was_refused_is_there_newest_first(fleet: Fleet) -> None:
    agent = fleet.actor(session="ses-1")
    await fleet.call(agent, "ping")
    with pytest.raises(PermissionDenied):
        await fleet.call(agent, "grant_credits")
    with pytest.raises(InvalidParams):
        await fleet.call(agent, "ping", nonsense="a secret")
    await fleet.call(fleet.owner, "create_agent", name="ada")
    found = [record for record in await records(fleet) if record["tool"] != "list_audit_records"]
    assert [(record["tool"], record["outcome"], record["code"], record["layer"]) for record in found] == [
        ("create_agent", "done", None, None),
        ("ping", "invalid", "INVALID_PARAMS", None),
        ("grant_credits", "refused", "PERMISSION_DENIED", "role"),
        ("ping", "allowed", None, None),
    ]
    mine = [record for record in found if record["agent"] == agent.agent]
    assert {record["session"] for record in mine} == {"ses-1"}
    assert [record["id"] for record in found] == sorted((record["id"] for record in found), reverse=True)
    assert "secret" not in str(found)


async def test_a_search_for_a_tool_that_does_not_exist_is_there(fleet: Fleet) -> None:
    agent = fleet.actor()
    with pytest.raises(NotFound):
        await fleet.call(agent, "open_the_vault" * 20)
    found = [record for record in await records(fleet) if record["tool"].startswith("open_the_vault")]
    assert [(record["agent"], record["outcome"], record["code"]) for record in found] == [
        (agent.agent, "refused", "NOT_FOUND")
    ]
    assert len(found[0]["tool"]) == 128


async def test_records_are_found_by_tool_agent_and_outcome(fleet: Fleet) -> None:
    agent = fleet.actor()
    for actor in (agent, fleet.owner, agent):
        await fleet.call(actor, "ping")
    with pytest.raises(PermissionDenied):
        await fleet.call(agent, "credit_config")
    assert len(await records(fleet, tool="ping")) == 3
    assert len(await records(fleet, tool="ping", agent=agent.agent)) == 2
    assert [record["tool"] for record in await records(fleet, outcome="refused")] == ["credit_config"]
    assert await records(fleet, tool="nope") == []


async def test_pages_lead_through_every_record_once(fleet: Fleet) -> None:
    for _ in range(5):
        await fleet.call(fleet.actor(), "ping")
    seen: list[int] = []
    cursor: str | None = None
    for _ in range(3):
        wanted = {"tool": "ping", "limit": 2, "cursor": cursor}
        page = (await fleet.platform.calls.call(fleet.owner, "list_audit_records", wanted)).structured
        seen += [record["id"] for record in page["records"]]
        cursor = page["next_cursor"]
    assert cursor is None
    assert len(seen) == len(set(seen)) == 5


async def test_a_limit_out_of_range_or_a_cursor_that_is_not_ours_is_refused(fleet: Fleet) -> None:
    for wrong in ({"limit": 0}, {"limit": 501}, {"until": "now"}):
        with pytest.raises(InvalidParams):
            await records(fleet, **wrong)
    for cursor in ("not ours", "", encode_cursor("x"), encode_cursor(""), encode_cursor("9" * 40)):
        with pytest.raises(InvalidParams):
            await records(fleet, cursor=cursor)
