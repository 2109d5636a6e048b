"""The tool-scope editor without a browser: what it shows, what a list would come to, and who may not save one."""

import re

import pytest

from rookery.core.lint import tokens
from rookery.identity.binding import Binding
from rookery.identity.live_sessions import list_live_sessions
from rookery.identity.scope_view import look_at_scope
from rookery.server.hub import Hub
from rookery.server.session import open_session
from tests.web.fleet_of_agents import asked, call, person
from tests.web.guest import Guest, words_of


def ticked(page: str) -> set[str]:
    """The tools whose boxes are ticked."""
    return set(re.findall(r'name="tool" value="(\w+)" checked', page))


async def looked(guest: Guest, path: str, **fields: object) -> str:
    """The words of the preview that belongs to these fields."""
    headers = {"HX-Request": "true"}
    answer = await guest.post(f"{path}/look?part=preview", fields, headers=headers)
    assert answer.status_code == 200, answer.text[:500]
    assert answer.text.lstrip().startswith('<div id="preview"')
    return words_of(answer.text)


async def test_a_viewer_sees_the_editor_read_only_and_is_refused(owner: Guest) -> None:
    guest = person(owner, "viewer")
    for path in ("/agents/default", "/profiles/worker"):
        page = (await guest.get(path)).text
        boxes = re.findall(r'<input type="checkbox" name="tool"[^>]*>', page)
        assert boxes
        assert all(" disabled" in box for box in boxes)
        assert 'id="save"' not in page
        assert (await guest.post(path, {"list": "own", "tool": ["ping"]})).status_code == 403
    assert (await call(owner, "list_agent_settings"))["agents"][0]["permissions"] is None
    assert "10 tools" not in await looked(guest, "/agents/default", list="own", tool=["ping"])


async def test_a_list_without_the_form_token_is_not_saved(owner: Guest) -> None:
    for path in ("/agents/default", "/agents/default/look", "/profiles/worker"):
        assert (await owner.client.post(path, data={"list": "own", "tool": ["ping"]})).status_code == 403


async def test_every_tool_that_agents_can_have_stands_in_a_group_and_in_a_domain(owner: Guest) -> None:
    registry = owner.fleet.platform.registry
    wanted = {each.name for each in registry if each.principals == "any"}
    by_kind, by_domain = [(await owner.get(f"/agents/default?by={by}")).text for by in ("group", "domain")]
    for page in (by_kind, by_domain):
        assert set(re.findall(r'name="tool" value="(\w+)"', page)) == wanted
    kinds = re.findall(r'<h3 id="group-\w+">(\w+)</h3>', by_kind)
    assert kinds == [each for each in ("Read", "Write", "Phase", "Review", "System") if each in kinds]
    assert {"Tracker", "Memory", "Github"} <= set(re.findall(r'<h3 id="domain-[\w-]+">([\w ]+)</h3>', by_domain))
    assert ticked(by_kind) == {each.name for each in registry if each.default and each.principals == "any"}


async def test_the_cost_is_that_of_the_listing_and_changes_are_told_before_they_are_saved(owner: Guest) -> None:
    registry = owner.fleet.platform.registry
    await call(owner, "create_agent", name="ada", permissions=["ping", "list_issues"])
    cost = sum(tokens(registry.require(name)) for name in ("ping", "list_issues"))
    assert f"2 tools \xb7 {cost:,} tokens" in await owner.words("/agents/ada")
    more = await looked(owner, "/agents/ada", list="own", tool=["ping", "grant_credits"])
    price = tokens(registry.require("ping")) + tokens(registry.require("grant_credits"))
    assert f"2 tools \xb7 {price:,} tokens" in more
    assert "+1 grant_credits \N{MINUS SIGN}1 list_issues" in more
    assert "It would get grant_credits , which is privileged: named in its own list, nobody is asked" in more
    assert "Nothing changes against now." in await looked(
        owner, "/agents/ada", list="own", tool=["ping", "list_issues"]
    )
    assert (await call(owner, "list_agent_settings"))["agents"][0]["permissions"] == ["list_issues", "ping"]


async def test_what_then_cannot_work_is_told_for_each_profile(owner: Guest) -> None:
    critical = sorted(owner.fleet.platform.registry.critical("worker"))[0]
    lost = await looked(owner, "/agents/default", list="own", tool=["ping"])
    assert "What then cannot work" in lost
    assert f"worker cannot do its work without {critical}" in lost
    offered = [each["name"] for each in (await asked(owner, look_at_scope))["tools"] if not each["for_people"]]
    kept = [name for name in offered if name != critical]
    told = await looked(owner, "/profiles/worker", list="rest", tool=kept)
    assert f"worker cannot do its work without {critical}" in told
    saved = await owner.post("/profiles/worker", {"list": "rest", "tool": kept})
    assert f"worker cannot do its work without {critical}" in words_of(saved.text)
    assert "1 critical tool lost" in words_of(saved.text)


async def test_a_saved_list_is_the_agents_own_and_the_default_set_comes_back(owner: Guest) -> None:
    page = (await owner.post("/agents/default", {"list": "own", "tool": ["ping", "list_issues"]})).text
    assert ticked(page) == {"ping", "list_issues"}
    assert "No session is connected just now" in page
    assert (await call(owner, "list_agent_settings"))["agents"][0]["permissions"] == ["list_issues", "ping"]
    await owner.post("/agents/default", {"list": "own"})
    assert (await call(owner, "list_agent_settings"))["agents"][0]["permissions"] == []
    await owner.post("/agents/default", {"list": "default", "tool": ["ping"]})
    assert (await call(owner, "list_agent_settings"))["agents"][0]["permissions"] is None


async def test_nobody_saves_over_a_change_that_they_have_not_seen(owner: Guest) -> None:
    page = (await owner.get("/agents/default")).text
    seen = re.search(r'name="seen" value="(\w+)"', page)
    assert seen is not None
    await call(owner, "update_agent", agent="default", permissions=["list_issues"])
    answer = await owner.post("/agents/default", {"list": "own", "tool": ["ping"], "seen": seen[1]})
    assert answer.status_code == 409
    assert "somebody has changed the list" in words_of(answer.text)
    profile = re.search(r'name="seen" value="([\w-]+)"', (await owner.get("/profiles/worker")).text)
    assert profile is not None
    await call(owner, "set_profile_tools", profile="worker", disallowed=["ping"])
    answer = await owner.post("/profiles/worker", {"list": "only", "tool": ["ping"], "seen": profile[1]})
    assert answer.status_code == 409


async def test_an_unknown_tool_and_an_unknown_profile_are_refused(owner: Guest) -> None:
    answer = await owner.post("/agents/default", {"list": "own", "tool": ["no_such_tool"]})
    assert "names unknown tools: no_such_tool" in words_of(answer.text)
    assert (await owner.get("/profiles/nobody")).status_code == 404
    assert (await owner.get("/agents/default?tool=no_such_tool")).status_code == 404


async def test_a_profile_keeps_only_what_is_ticked_or_loses_what_is_not(owner: Guest) -> None:
    await owner.post("/profiles/judge", {"list": "only", "tool": ["approve_pr", "list_issues"]})
    judge = next(each for each in (await call(owner, "list_profiles"))["profiles"] if each["profile"] == "judge")
    assert (judge["allowed"], judge["disallowed"]) == (["approve_pr", "list_issues"], None)
    page = (await owner.get("/profiles/judge")).text
    assert ticked(page) == {"approve_pr", "list_issues"}
    assert re.search(r'value="only" checked', page)
    offered = sorted(set(re.findall(r'name="tool" value="(\w+)"', page)))
    await owner.post("/profiles/judge", {"list": "rest", "tool": [name for name in offered if name != "ping"]})
    judge = next(each for each in (await call(owner, "list_profiles"))["profiles"] if each["profile"] == "judge")
    assert (judge["allowed"], judge["disallowed"]) == (None, ["ping"])
    assert "only 2 allowed" not in await owner.words("/agents?tab=profiles")
    assert "1 taken away" in await owner.words("/agents?tab=profiles")


async def test_each_tool_says_which_layer_gives_or_takes_it(owner: Guest) -> None:
    await call(owner, "create_agent", name="ada", permissions=["ping"])
    await call(owner, "grant_tool", agent="ada", tool="create_issue")
    await call(owner, "assign_bundle", bundle="preset-analyst", agent="ada")
    page = await owner.words("/agents/ada")
    assert "named in the agent's own list" in page
    assert "granted by the owner" in page
    assert "in a bundle of the agent" in page
    assert "is not among the tools of this agent" in page
    assert "in the defaults of the profile worker" in await owner.words("/agents/default?as=worker")


async def test_a_tool_is_explained_layer_by_layer(owner: Guest) -> None:
    part = words_of((await owner.part("/agents/default?tool=list_issues&as=worker&scheduled=1", "explain")).text)
    assert part.index("Set up here") < part.index("Held by list") < part.index("Trust") < part.index("Approval")
    assert "in the defaults of the profile worker" in part
    refused = words_of((await owner.part("/agents/default?tool=grant_credits", "explain")).text)
    assert "refused grant_credits : grant_credits is not among the tools of this agent" in refused


async def test_a_live_session_is_seen_with_its_tools_before_and_after(owner: Guest) -> None:
    platform = owner.fleet.platform
    await call(owner, "create_agent", name="ada", permissions=["ping", "list_issues"])
    hub = Hub(platform)
    session = await open_session(platform, Binding(agent="ada"))
    hub.join(session)
    try:
        found = (await asked(owner, list_live_sessions, agent="ada"))["sessions"]
        assert [(each["agent_name"], each["tools"]) for each in found] == [("ada", ["list_issues", "ping"])]
        assert (await asked(owner, list_live_sessions, agent="default"))["sessions"] == []
        assert "1 live session notices it at once" in await looked(owner, "/agents/ada", list="own", tool=["ping"])
        saved = words_of((await owner.post("/agents/ada", {"list": "own", "tool": ["ping"]})).text)
        assert "1 live session was told at once" in saved
        assert "lost list_issues" in saved
        settings = await owner.part("/agents/ada/settings", "sessions")
        assert session.id in settings.text
        assert "connected" in await owner.words("/agents")
    finally:
        hub.leave(session)
        await hub.close()
    assert (await asked(owner, list_live_sessions))["sessions"] == []


@pytest.mark.parametrize("path", ["/agents/default", "/profiles/worker", "/bundles/new"])
async def test_grouping_anew_keeps_what_was_ticked(owner: Guest, path: str) -> None:
    page = (await owner.post(f"{path}/look?by=domain", {"list": "own", "tool": ["ping"], "name": "x"})).text
    assert "ping" in ticked(page)
    assert 'id="domain-tracker"' in page
    if path != "/profiles/worker":
        assert ticked(page) == {"ping"}
