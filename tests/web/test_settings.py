"""The page Settings: how a project is worked on, the channels, credits, and what is shown of the server."""

from typing import Any

import pytest

from rookery.domains.owner.channel_reading import show_channels
from rookery.domains.tracker.project_reading import show_project_settings
from tests.web.guest import Guest, words_of
from tests.web.site import Viewer

TABS = ("/settings", "/settings/channels", "/settings/credits", "/settings/server")
FORMS: dict[str, dict[str, Any]] = {
    "/settings/project/work": {"base_branch": "evil"},
    "/settings/project/gates": {"command": "evil", "label": "evil"},
    "/settings/project/risk": {"sensitive_paths": "evil"},
    "/settings/project/instructions": {"worker_instructions": "evil"},
    "/settings/vault": {"on": "on"},
    "/settings/channels/set": {"kind": "webhook", "url": "https://evil.example"},
    "/settings/channels/change": {"channel": "webhook", "change": "remove"},
    "/settings/channels/test": {},
    "/settings/credits/rates": {"credits_per_turn": "7"},
    "/settings/credits/grant": {"wallet": "evil", "amount": "5"},
}


async def project_settings(guest: Guest) -> dict[str, Any]:
    fleet = guest.fleet
    return (await fleet.platform.calls.run(fleet.owner, show_project_settings, {})).structured["settings"]


async def channels(guest: Guest) -> list[dict[str, Any]]:
    fleet = guest.fleet
    return (await fleet.platform.calls.run(fleet.owner, show_channels, {})).structured["channels"]


@pytest.mark.parametrize("role", ["operator", "viewer"])
async def test_others_than_an_owner_see_the_settings_and_change_none(owner: Guest, role: str) -> None:
    await owner.post("/people/add", {"name": "pat", "role": role})
    pat = owner.signed_in("pat")
    for path in TABS:
        answer = await pat.get(path)
        assert answer.status_code == 200, (path, words_of(answer.text))
        forms = [part.partition(">")[0] for part in answer.text.split("<form")[1:]]
        assert [each for each in forms if "post" in each and "/sign-out" not in each] == [], path
    before = await project_settings(owner), await channels(owner)
    for path, fields in FORMS.items():
        if (role, path) != ("operator", "/settings/channels/test"):
            assert (await pat.post(path, fields)).status_code == 403, path
    assert (await project_settings(owner), await channels(owner)) == before


async def test_a_project_is_set_up_part_by_part_and_the_rest_stays(owner: Guest) -> None:
    work = {"prefix": "shop", "base_branch": "trunk", "pipeline": ["grooming"], "unjudged": ["grooming"]}
    gates = {"command": ["make test", "make lint", ""], "label": ["tests", "lint", ""], "required": ["0"]}
    risk = {"sensitive_paths": "auth/\r\n\r\n*.sql\r\n", "lowLines": "10", "highLines": "100"}
    told = {"worker_instructions": "Be kind.\r\nTwice.", "judge_instructions": "Be strict."}
    for section, fields in {"work": work, "gates": gates, "risk": risk, "instructions": told}.items():
        answer = await owner.post(f"/settings/project/{section}", fields)
        assert answer.status_code == 303, words_of(answer.text)
    found = await project_settings(owner)
    assert (found["prefix"], found["base_branch"], found["pipeline"]) == ("SHOP", "trunk", ["grooming", "ready"])
    assert [(each["command"], each["required"]) for each in found["gates"]] == [
        ("make test", True),
        ("make lint", False),
    ]
    assert found["sensitive_paths"] == ["auth/", "*.sql"]
    assert found["risk_thresholds"] == {"lowLines": 10, "highLines": 100, "lowFiles": 3, "highFiles": 15}
    assert found["worker_instructions"] == "Be kind.\nTwice."
    page = (await owner.get("/settings")).text
    assert 'value="make lint"' in page
    assert "Be kind.\nTwice.</textarea>" in page


async def test_what_is_refused_stands_beside_what_was_typed(owner: Guest) -> None:
    fields = {"sensitive_paths": "auth/", "lowLines": "500", "highLines": "50"}
    answer = await owner.post("/settings/project/risk", fields)
    assert answer.status_code == 400
    assert "lowLines 500 is not below highLines 50" in words_of(answer.text)
    assert 'name="lowLines" value="500"' in answer.text
    assert "auth/</textarea>" in answer.text
    twice = {"command": ["make", "make"], "label": ["a", "b"], "required": ["1"]}
    answer = await owner.post("/settings/project/gates", twice)
    assert "stands there twice" in words_of(answer.text)
    assert answer.text.count('value="make"') == 2
    assert (await owner.post("/settings/project/nothing")).status_code == 404
    assert (await project_settings(owner))["sensitive_paths"] == []


async def test_a_long_or_odd_text_is_saved_as_it_was_shown(owner: Guest) -> None:
    text = "</textarea><script>alert(1)</script> \u202e " + "x" * 30_000
    await owner.post("/settings/project/instructions", {"worker_instructions": text, "judge_instructions": ""})
    page = (await owner.get("/settings")).text
    assert "<script>alert" not in page
    shown = page.partition('name="worker_instructions"')[2].partition(">")[2].partition("</textarea>")[0]
    assert shown.strip().endswith("x" * 30_000)
    assert (await project_settings(owner))["worker_instructions"] == text


async def test_the_vault_is_switched_and_its_folder_stays_unless_it_is_changed(owner: Guest) -> None:
    assert (await owner.post("/settings/vault", {"on": "on", "folders": "docs", "globs": "*.tmp"})).status_code == 303
    assert "docs</textarea>" in (await owner.get("/settings")).text
    answer = await owner.post("/settings/vault", {"folders": "docs", "root": "relative"})
    assert (answer.status_code, "must be an absolute path" in words_of(answer.text)) == (400, True)


async def test_a_channel_is_set_up_switched_off_and_removed_and_tells_no_secret(owner: Guest) -> None:
    answer = await owner.post("/settings/channels/set", {"kind": "slack", "bot_token": "xoxb-secret", "enabled": "on"})
    assert answer.status_code == 400
    assert "slack also needs channel" in words_of(answer.text)
    assert "xoxb-secret" not in answer.text
    fields = {"kind": "slack", "bot_token": "xoxb-secret", "channel": "#rookery", "links": "no", "enabled": "on"}
    assert (await owner.post("/settings/channels/set", fields)).status_code == 303
    page = (await owner.get("/settings/channels?kind=slack")).text
    assert "bot_token, channel, links" in words_of(page)
    assert "#rookery" not in page
    assert "xoxb-secret" not in page
    for change, enabled in (("disable", False), ("enable", True)):
        await owner.post("/settings/channels/change", {"channel": "slack", "change": change})
        assert [each["enabled"] for each in await channels(owner)] == [enabled]
    await owner.post("/settings/channels/change", {"channel": "slack", "change": "remove"})
    assert await channels(owner) == []
    assert "No channels" in await owner.words("/settings/channels")


async def test_a_test_without_channels_says_so(owner: Guest) -> None:
    answer = await owner.post("/settings/channels/test")
    assert answer.status_code == 303
    assert "no channel is on" in await owner.words("/settings/channels") or "channel" in answer.headers["set-cookie"]


async def test_rates_are_set_and_credits_given(owner: Guest) -> None:
    rates = dict.fromkeys(
        ("credits_per_algo", "low_credit_threshold", "reserve_per_group_message", "credits_per_agent_message"), "9"
    )
    fields = {**rates, "credits_per_turn": "3", "free_credits_on_first_message": "0"}
    assert (await owner.post("/settings/credits/rates", fields)).status_code == 303
    assert 'name="credits_per_turn" value="3"' in (await owner.get("/settings/credits")).text
    refused = await owner.post("/settings/credits/rates", {**fields, "credits_per_turn": "-1"})
    assert (refused.status_code, 'name="credits_per_turn" value="-1"' in refused.text) == (400, True)
    wallet = f"agent:{owner.fleet.actor().agent}"
    page = (await owner.get("/settings/credits")).text
    assert f'<option value="{wallet}"' in page
    assert (await owner.post("/settings/credits/grant", {"wallet": wallet, "amount": "120"})).status_code == 303
    assert "default 120 0" in await owner.words("/settings/credits")


async def test_the_server_shows_no_secret_and_no_address_of_its_database(owner: Guest) -> None:
    page = await owner.words("/settings/server")
    settings = owner.fleet.platform.settings
    assert settings.home in page
    assert ("PostgreSQL" if settings.database.startswith("postgres") else "SQLite") in page
    assert settings.database not in page
    for name in ("auth_secret", "mnemonic", "github_token", "oidc_client_secret", "outgoing_allow"):
        assert name not in page


def test_an_owner_sets_up_the_gates_of_a_project(viewer: Viewer) -> None:
    page = viewer.open("/settings")
    page.get_by_label("Command").first.fill("make test")
    page.get_by_label("Name", exact=True).first.fill("tests")
    page.get_by_role("button", name="Save the gates").press("Enter")
    page.get_by_text("The quality gates: saved.").wait_for()
    assert page.get_by_label("Command").first.input_value() == "make test"
    viewer.check()
    for path in (*TABS[1:], "/settings/channels?kind=telegram"):
        viewer.open(path)
        viewer.check()
