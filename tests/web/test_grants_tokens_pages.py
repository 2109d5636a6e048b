"""Single tools for a time, and tokens that are shown once."""

import re

import pytest

from tests.web.fleet_of_agents import call, person
from tests.web.guest import Guest, words_of
from tests.web.site import Viewer

CHANGES = (
    ("/grants", {"agent": "default", "tool": "create_issue", "lasts": "1h"}),
    ("/grants/revoke", {"id": "grt-1"}),
    ("/tokens", {"name": "ci", "lasts": "1d"}),
    ("/tokens/revoke", {"id": "tok-1"}),
)


@pytest.mark.parametrize("role", ["viewer", "operator"])
async def test_others_than_the_owner_give_nothing_and_see_no_form(owner: Guest, role: str) -> None:
    guest = person(owner, role)
    for path, fields in CHANGES:
        assert (await guest.post(path, fields)).status_code == 403, path
    assert "Give the tool" not in await guest.words("/agents?tab=grants")
    assert "Create the token" not in await guest.words("/agents?tab=tokens")
    assert (await call(owner, "list_grants"))["grants"] == []
    assert (await call(owner, "list_tokens"))["tokens"] == []


@pytest.mark.parametrize(("path", "fields"), CHANGES)
async def test_a_form_without_its_token_is_refused(owner: Guest, path: str, fields: dict[str, str]) -> None:
    assert (await owner.client.post(path, data=fields)).status_code == 403


async def test_a_grant_ends_when_it_was_said_or_when_it_is_revoked(owner: Guest) -> None:
    fields = {"agent": "default", "tool": "create_issue", "reason": "for <b>today</b>", "lasts": "8h"}
    assert (await owner.post("/grants", fields)).headers["location"] == "/agents?tab=grants"
    fleet = owner.fleet
    assert "create_issue" in fleet.names(fleet.actor(agent="default"))
    page = await owner.words("/agents?tab=grants")
    assert "default create_issue tool for <b>today</b> in 8 h" in page
    grant = (await call(owner, "list_grants"))["grants"][0]
    back = await owner.post("/grants/revoke", {"id": grant["id"], "back": "default"})
    assert back.headers["location"] == "/agents/default/settings"
    assert "create_issue" not in fleet.names(fleet.actor(agent="default"))
    assert "No grant is in force." in await owner.words("/agents?tab=grants")
    assert "revoked" in await owner.words("/agents?tab=grants&ended=1")


async def test_a_grant_may_spare_approvals_and_lasts_no_unknown_time(owner: Guest) -> None:
    odd = await owner.post("/grants", {"agent": "default", "tool": "ping", "lasts": "a while"})
    assert odd.status_code == 400
    people = await owner.post("/grants", {"agent": "default", "tool": "create_agent", "lasts": "revoked"})
    assert "is for people" in words_of(people.text)
    fields = {"agent": "default", "tool": "grant_credits", "lasts": "revoked", "without_approval": "1"}
    await owner.post("/grants", fields)
    assert "grant_credits without approval when revoked" in " ".join((await owner.words("/agents?tab=grants")).split())
    assert "grant_credits" in (await owner.words("/agents/default/settings"))


async def test_where_a_form_leads_back_to_is_a_page_of_ours(owner: Guest) -> None:
    fields = {"agent": "default", "tool": "ping", "lasts": "1h", "back": "//elsewhere.example/x"}
    assert (await owner.post("/grants", fields)).headers["location"] == "/agents?tab=grants"


async def test_a_token_is_shown_once_and_works_until_it_is_revoked(owner: Guest) -> None:
    fields = {"name": "ci <b>", "agent": "default", "scopes": "tracker:* tool:ping", "agent_type": "worker"}
    made = await owner.post("/tokens", {**fields, "in_project": "default", "lasts": "30d"})
    assert made.status_code == 200
    assert made.headers["cache-control"] == "no-store"
    secret = re.search(r'id="secret">(rk_[\w-]+)<', made.text)
    assert secret is not None
    fleet = owner.fleet
    actor = fleet.actor(token=secret[1])
    assert (actor.agent_name, actor.profile, actor.scopes) == ("default", "worker", {"tracker:*", "tool:ping"})
    again = await owner.get("/tokens")
    assert again.headers["location"] == "/agents?tab=tokens"
    page = await owner.words("/agents?tab=tokens")
    assert "ci <b> default tracker:* tool:ping worker, project default in 30 d" in page
    assert secret[1] not in page
    token = (await call(owner, "list_tokens"))["tokens"][0]
    await owner.post("/tokens/revoke", {"id": token["id"]})
    assert "No token is in force." in await owner.words("/agents?tab=tokens")
    assert (await owner.post("/tokens/revoke", {"id": token["id"]})).status_code == 404


async def test_a_token_of_ones_own_says_so(owner: Guest) -> None:
    await owner.post("/tokens", {"name": "mine", "agent": "", "scopes": "", "lasts": "revoked"})
    assert "mine a person *" in await owner.words("/agents?tab=tokens")


def test_a_tool_is_given_and_a_token_made_and_copied(viewer: Viewer) -> None:
    viewer.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = viewer.open("/agents?tab=grants")
    page.locator("select[name=tool]").select_option("create_issue")
    page.get_by_label("Reason").fill("for today")
    page.get_by_role("button", name="Give the tool").click()
    page.get_by_role("cell", name="for today").wait_for()
    viewer.check()
    page.get_by_role("button", name="Revoke").click()
    page.get_by_role("button", name="Yes").click()
    page.get_by_text("No grant is in force.").wait_for()
    viewer.open("/agents?tab=tokens")
    page.get_by_label("What it is for").fill("ci runner")
    page.get_by_role("button", name="Create the token").click()
    secret = page.locator("#secret").inner_text()
    page.get_by_role("button", name="Copy").click()
    page.get_by_text("Copied.").wait_for()
    assert page.evaluate("() => navigator.clipboard.readText()") == secret
    viewer.check()
