"""`corvid_NAME` means NAME wherever a name is given; what is listed is the plain name, once."""

import json
from pathlib import Path

import pytest

from rookery.core.errors import InvalidParams, NotFound
from rookery.identity.resolve import read_scope_file
from tests.platform_fixtures import Fleet


async def test_a_call_is_answered_under_both_names_and_recorded_under_one(fleet: Fleet) -> None:
    agent = fleet.actor()
    assert (await fleet.call(agent, "corvid_ping")).status == (await fleet.call(agent, "ping")).status == "pong"
    found = await fleet.platform.calls.call(fleet.owner, "list_audit_records", {"tool": "ping"})
    assert len(found.structured["records"]) == 2
    with pytest.raises(NotFound):
        await fleet.call(agent, "corvid_corvid_ping")


async def test_no_listing_shows_the_prefix(fleet: Fleet) -> None:
    for actor in (fleet.actor(), fleet.owner):
        listed = [tool.name for tool in fleet.platform.registry.listed(actor)]
        assert len(listed) == len(set(listed))
        assert [name for name in listed if name.startswith("corvid_")] == []


async def test_a_permission_list_takes_both_spellings_and_keeps_one(fleet: Fleet) -> None:
    made = await fleet.call(fleet.owner, "create_agent", name="ada", permissions=["corvid_ping", "ping"])
    assert made.permissions == ["ping"]
    changed = await fleet.call(fleet.owner, "update_agent", agent="ada", permissions=["corvid_web_search"])
    assert changed.permissions == ["web_search"]
    assert fleet.names(fleet.actor(agent="ada")) == {"web_search"}


async def test_a_profile_takes_both_spellings(fleet: Fleet) -> None:
    set_to = await fleet.call(fleet.owner, "set_profile_tools", profile="judge", disallowed=["corvid_ping"])
    assert set_to.disallowed == ["ping"]
    assert "ping" not in fleet.names(fleet.actor(profile="judge"))
    await fleet.call(fleet.owner, "set_profile_tools", profile="judge", allowed=["corvid_get_issue"], disallowed=[])
    assert fleet.names(fleet.actor(profile="judge")) == {"get_issue"}


async def test_a_bundle_takes_both_spellings(fleet: Fleet) -> None:
    saved = await fleet.call(fleet.owner, "save_bundle", name="tracker", tools=["corvid_get_issue", "get_issue"])
    assert saved.tools == ["get_issue"]
    await fleet.call(fleet.owner, "assign_bundle", bundle="tracker", agent="default")
    assert "get_issue" in fleet.names(fleet.actor())


async def test_a_grant_takes_both_spellings(fleet: Fleet) -> None:
    wanted = {"agent": "default", "tool": "corvid_get_issue"}
    made = await fleet.platform.calls.call(fleet.owner, "grant_tool", wanted)
    assert made.structured["tool"] == "get_issue"
    assert "get_issue" in fleet.names(fleet.actor())


async def test_explain_takes_both_spellings(fleet: Fleet) -> None:
    told = [
        (await fleet.platform.calls.call(fleet.owner, "explain_access", {"tool": name})).structured
        for name in ("grant_credits", "corvid_grant_credits")
    ]
    assert told[0] == told[1]
    assert (told[0]["tool"], told[0]["layer"]) == ("grant_credits", "role")


async def test_a_scope_file_takes_both_spellings(fleet: Fleet, tmp_path: Path) -> None:
    path = tmp_path / "scope.json"
    path.write_text(json.dumps(["corvid_ping", "get_issue", "corvid_get_issue"]))
    scope = read_scope_file(str(path), fleet.platform.registry)
    assert scope == {"ping", "get_issue"}
    assert fleet.names(fleet.actor(scope_file=scope)) == {"ping", "get_issue"}


async def test_a_name_that_no_tool_has_is_refused_wherever_it_is_set(fleet: Fleet) -> None:
    wrong = ["corvid_send_mesage"]
    attempts = [
        ("create_agent", {"name": "eve", "permissions": wrong}),
        ("update_agent", {"agent": "default", "permissions": wrong}),
        ("set_profile_tools", {"profile": "judge", "allowed": wrong}),
        ("set_profile_tools", {"profile": "judge", "disallowed": wrong}),
        ("save_bundle", {"name": "b", "tools": wrong}),
    ]
    for tool, arguments in attempts:
        with pytest.raises(InvalidParams) as caught:
            await fleet.call(fleet.owner, tool, **arguments)
        assert "corvid_send_mesage" in caught.value.message
        assert "send_message" in (caught.value.hint or "")
    for tool in ("grant_tool", "explain_access"):
        arguments = {"tool": wrong[0], "agent": "default"}
        with pytest.raises(NotFound):
            await fleet.platform.calls.call(fleet.owner, tool, arguments)
