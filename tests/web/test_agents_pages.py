"""The page Agents and the settings of one: who is there, how it acts, what pauses it, and who may not change that."""

import pytest

from tests.web.fleet_of_agents import agent_elsewhere, call, person
from tests.web.guest import Guest, words_of
from tests.web.site import Viewer

PAGES = (
    "/agents",
    "/agents?tab=profiles",
    "/agents?tab=bundles",
    "/agents?tab=grants",
    "/agents?tab=tokens",
    "/agents/default",
    "/agents/default/settings",
    "/agents/default/reputation",
    "/agents/default/credits",
    "/profiles/worker",
    "/bundles/new",
    "/bundles/preset-devops",
)
CHANGES = (
    ("/agents", {"name": "eve"}),
    ("/agents/default/settings", {"mode": "ask"}),
    ("/agents/default/bundles", {"bundle": "preset-devops"}),
    ("/bundles/new", {"name": "mine", "tool": ["ping"]}),
    ("/bundles/preset-devops/assign", {"holder": "agent:default"}),
)


@pytest.mark.parametrize("path", PAGES)
async def test_nobody_looks_at_agents_without_signing_in(guest: Guest, path: str) -> None:
    answer = await guest.get(path)
    assert answer.status_code == 303
    assert answer.headers["location"].startswith("/sign-in")


async def test_a_viewer_sees_every_page_and_no_way_to_change_anything(owner: Guest) -> None:
    viewer = person(owner, "viewer")
    for path in PAGES:
        answer = await viewer.get(path)
        assert answer.status_code == 200, path
        content = answer.text.partition('<main id="content"')[2]
        assert 'id="save"' not in content, path
        assert ">Create<" not in content, path
        assert "Publish the score" not in content, path


@pytest.mark.parametrize("role", ["viewer", "operator"])
async def test_others_than_the_owner_change_nothing(owner: Guest, role: str) -> None:
    guest = person(owner, role)
    for path, fields in CHANGES:
        assert (await guest.post(path, fields)).status_code == 403, path
    if role == "viewer":
        assert (await guest.post("/agents/default/pause", {"reason": "no"})).status_code == 403
    agents = (await call(owner, "list_agent_settings"))["agents"]
    assert [(each["name"], each["mode"], each["bundles"]) for each in agents] == [("default", "autonomy", [])]


async def test_a_form_without_its_token_changes_nothing(owner: Guest) -> None:
    assert (await owner.client.post("/agents", data={"name": "eve"})).status_code == 403
    assert "eve" not in await owner.words("/agents")


async def test_an_agent_of_another_tenant_is_not_there(owner: Guest) -> None:
    other = agent_elsewhere(owner)
    for path in ("", "/settings", "/reputation", "/credits"):
        answer = await owner.get(f"/agents/{other}{path}")
        assert answer.status_code == 404
        assert "mallory" not in answer.text
    assert "mallory" not in await owner.words("/agents")
    assert (await owner.post(f"/agents/{other}/settings", {"mode": "ask"})).status_code == 404
    assert (await owner.post(f"/agents/{other}", {"list": "own", "tool": ["ping"]})).status_code == 404


async def test_a_new_agent_starts_with_the_list_that_was_chosen(owner: Guest) -> None:
    assert (await owner.post("/agents", {"name": "ada", "start": "nothing"})).headers["location"] == "/agents/ada"
    await call(owner, "update_agent", agent="ada", permissions=["ping"])
    ada = next(each for each in (await call(owner, "list_agent_settings"))["agents"] if each["name"] == "ada")
    await owner.post("/agents", {"name": "bob", "start": f"same:{ada['id']}"})
    await owner.post("/agents", {"name": "cyd", "start": "default"})
    found = {each["name"]: each["permissions"] for each in (await call(owner, "list_agent_settings"))["agents"]}
    assert (found["ada"], found["bob"], found["cyd"]) == (["ping"], ["ping"], None)
    again = await owner.post("/agents", {"name": "ADA"})
    assert again.status_code == 409
    assert "the agent ADA exists already" in words_of(again.text)


async def test_the_list_says_what_each_agent_has_and_what_keeps_it(owner: Guest) -> None:
    await call(owner, "create_agent", name="ada", permissions=["ping", "list_issues"])
    await call(owner, "update_agent", agent="ada", mode="act", trust=3)
    fleet = owner.fleet
    await fleet.call(fleet.actor(agent="ada"), "ping")
    await owner.post("/agents/ada/pause", {"reason": "it loops"})
    page = await owner.words("/agents")
    assert "ada paused own list act 3 of 4 2" in page
    assert "now" in page or "ago" in page
    assert "default autonomy not set" in page
    found = await owner.words("/agents?q=AD")
    assert "ada" in found
    assert "default autonomy" not in found
    assert "No agent is called so." in await owner.words("/agents?q=zzz")
    rows = await owner.part("/agents", "rows")
    assert rows.text.lstrip().startswith('<div id="agents"')


async def test_settings_are_saved_and_a_pause_is_told_on_every_page_of_the_agent(owner: Guest) -> None:
    fields = {"mode": "ask", "trust": "2", "restrict_networking": "1"}
    assert (await owner.post("/agents/default/settings", fields)).status_code == 303
    settings = (await call(owner, "list_agent_settings"))["agents"][0]
    assert (settings["mode"], settings["trust"], settings["restrict_networking"]) == ("ask", 2, True)
    await owner.post("/agents/default/settings", {"mode": "act", "trust": ""})
    settings = (await call(owner, "list_agent_settings"))["agents"][0]
    assert (settings["mode"], settings["trust"], settings["restrict_networking"]) == ("act", 2, False)
    await owner.post("/agents/default/pause", {"reason": "it loops"})
    assert "This agent is paused by owner" in await owner.words("/agents/default/credits")
    assert "it loops" in await owner.words("/agents/default")
    await owner.post("/agents/default/pause", {"resume": "1"})
    assert "paused by" not in await owner.words("/agents/default")


async def test_bundles_are_made_changed_given_and_deleted(owner: Guest) -> None:
    tools = {"name": "triage", "description": "sorts", "prompt": "be brief", "tool": ["ping", "list_issues"]}
    made = await owner.post("/bundles/new", tools)
    path = made.headers["location"]
    await owner.post(path, {**tools, "name": "another", "tool": ["ping"]})
    page = await owner.words(path)
    assert "triage" in page
    assert "1 tools" in page
    looked = await owner.client.post(
        f"{path}/look?part=preview",
        data={"csrf": (await owner.get(path)).text.partition('name="csrf" content="')[2].partition('"')[0], **tools},
        headers={"HX-Request": "true"},
    )
    assert "2 tools" in words_of(looked.text)
    await owner.post(f"{path}/assign", {"holder": "agent:default"})
    await owner.post(f"{path}/assign", {"holder": "project:default"})
    shown = await owner.words(path)
    assert "default Take away" in shown
    assert "all agents of default" in shown
    assert "default , project default" in await owner.words("/agents?tab=bundles")
    await owner.post("/agents/default/bundles", {"bundle": path.rpartition("/")[2], "remove": "1"})
    assert (await call(owner, "list_agent_settings"))["agents"][0]["bundles"] == []
    assert (await owner.post("/bundles/preset-devops", {"tool": ["ping"]})).status_code == 409
    assert (await owner.post("/bundles/preset-devops/delete")).status_code == 409
    assert (await owner.post(f"{path}/delete")).status_code == 303
    assert (await owner.get(path)).status_code == 404


async def test_a_bundle_offers_no_privileged_tool_and_is_refused_one(owner: Guest) -> None:
    page = (await owner.get("/bundles/new")).text
    assert 'value="ping"' in page
    assert 'value="grant_credits"' not in page
    answer = await owner.post("/bundles/new", {"name": "sly", "tool": ["grant_credits"]})
    assert answer.status_code == 400
    assert "bundles carry no privileged tools" in words_of(answer.text)


def test_the_pages_of_agents_are_for_everybody_on_every_screen(viewer: Viewer) -> None:
    site = viewer.site
    site.call("save_bundle", name="<script>alert(1)</script>" + "w" * 70, tools=["ping"], description="\u202eevil" * 50)
    site.call("create_agent", name="x" * 64)
    page = viewer.open("/agents")
    page.get_by_label("Name", exact=True).fill("ada")
    page.get_by_label("Name", exact=True).press("Enter")
    page.wait_for_url("**/agents/ada")
    page.get_by_role("navigation", name="About ada").get_by_role("link", name="Settings").click()
    page.get_by_label("Mode").select_option("ask")
    page.get_by_role("button", name="Save").click()
    page.get_by_text("mode ask").wait_for()
    viewer.check()
    page.get_by_label("Reason").first.fill("it loops")
    page.get_by_role("button", name="Pause this agent").click()
    page.get_by_role("button", name="Yes").click()
    page.get_by_text("This agent is paused").wait_for()
    for path in (*PAGES, "/agents/" + "x" * 64):
        viewer.open(path)
        viewer.check()
