"""The page of the orchestrator: how it stands, why issues wait, and what is set for a project."""

from pathlib import Path
from typing import Any

import pytest

from rookery.core.errors import ValidationFailed
from rookery.engine.owner_commands import configure_orchestrator
from rookery.web.orchestrator_view import settings_from, shown_waits
from tests.domains.tracker.desk import Desk
from tests.platform_fixtures import Fleet
from tests.web.guest import Guest, words_of
from tests.web.site import Viewer

FORM = {
    "max_agents": "7",
    "max_retries": "2",
    "run_limit_s": "900",
    "gate_limit_s": "60",
    "scan_batch": "5",
    "scan_every_s": "600",
    "intake_batch": "3",
    "daily_budget_usd": "12,50",
    "cap-worker": "3",
    "agent-judge": "default",
    "model-worker": "small",
    "merge": "ff",
    "auto_merge": "yes",
    "scan_concepts": "error_handling\n\nsecrets",
    "scan_paths": "src/**",
    "hook-before_run": "make deps",
    "hook-limit_s": "30",
    "prompt-issue": "4000",
}


async def settings(fleet: Fleet, project: str = "default") -> dict[str, Any]:
    actor = fleet.actor(as_owner=True, project=project)
    return (await fleet.platform.calls.run(actor, configure_orchestrator, {})).structured


async def test_whoever_is_not_signed_in_sees_and_sets_nothing(guest: Guest) -> None:
    assert (await guest.get("/orchestrator")).status_code == 303
    assert (await guest.post("/orchestrator/enabled", {"enabled": "yes"})).status_code == 303
    assert not (await settings(guest.fleet))["enabled"]


@pytest.mark.parametrize("role", ["viewer", "operator"])
async def test_others_than_an_owner_see_how_it_stands_and_set_nothing(owner: Guest, role: str) -> None:
    await owner.post("/people/add", {"name": "pat", "role": role})
    pat = owner.signed_in("pat")
    assert "Settings of" not in await pat.words("/orchestrator")
    assert (await pat.post("/orchestrator/enabled", {"enabled": "yes"})).status_code == 403
    assert (await pat.post("/orchestrator/settings", FORM)).status_code == 403
    assert not (await settings(owner.fleet))["enabled"]


async def test_a_form_without_its_token_sets_nothing(owner: Guest) -> None:
    assert (await owner.client.post("/orchestrator/enabled", data={"enabled": "yes"})).status_code == 403
    assert not (await settings(owner.fleet))["enabled"]


async def test_a_project_is_switched_on_and_off_and_what_hinders_it_is_said(owner: Guest, fleet: Fleet) -> None:
    await fleet.call(fleet.owner, "create_project", slug="shop")
    answer = await owner.post("/orchestrator/enabled?project=shop", {"enabled": "yes"})
    assert answer.headers["location"] == "/orchestrator?project=shop"
    assert (await settings(fleet, "shop"))["enabled"]
    words = await owner.words("/orchestrator?project=shop")
    assert "Nothing begins yet: the setting runtime is none" in words
    await owner.post("/orchestrator/enabled?project=shop", {"enabled": "no"})
    assert not (await settings(fleet, "shop"))["enabled"]


async def test_all_settings_of_the_form_are_kept_and_shown_again(owner: Guest, fleet: Fleet) -> None:
    assert (await owner.post("/orchestrator/settings", FORM)).status_code == 303
    kept = (await settings(fleet))["settings"]
    assert (kept["max_agents"], kept["daily_budget_usd"], kept["run_budget_usd"]) == (7, 12.5, None)
    assert kept["role_caps"] == {"worker": 3}
    assert kept["agents"] == {"judge": "default"}
    assert kept["models"] == {"worker": "small"}
    assert (kept["merge"], kept["auto_merge"]) == ("ff", True)
    assert kept["scan_concepts"] == ["error_handling", "secrets"]
    assert (kept["hooks"]["before_run"], kept["hooks"]["limit_s"]) == ("make deps", 30)
    assert kept["prompt"]["issue"] == 4000
    page = (await owner.get("/orchestrator")).text
    assert 'name="daily_budget_usd" inputmode="decimal" value="12.5"' in page
    again = {**FORM, "daily_budget_usd": "", "cap-worker": "", "agent-judge": "", "auto_merge": ""}
    await owner.post("/orchestrator/settings", again)
    kept = (await settings(fleet))["settings"]
    assert (kept["daily_budget_usd"], kept["role_caps"], kept["agents"], kept["auto_merge"]) == (None, {}, {}, False)


@pytest.mark.parametrize(
    "wrong", [{"max_agents": "many"}, {"max_agents": "-1"}, {"cap-worker": "1.5"}, {"run_budget_usd": "nan"}]
)
async def test_what_is_no_number_or_out_of_bounds_is_refused(owner: Guest, wrong: dict[str, str]) -> None:
    assert (await owner.post("/orchestrator/settings", {**FORM, **wrong})).status_code == 400
    assert (await settings(owner.fleet))["settings"]["max_agents"] == 4


def test_a_form_that_says_nonsense_is_refused_in_words() -> None:
    with pytest.raises(ValidationFailed, match="max_agents is no whole number"):
        settings_from({"max_agents": "x"}.get)  # type: ignore[arg-type]


async def test_it_is_said_why_an_issue_waits(owner: Guest, fleet: Fleet, tmp_path: Path) -> None:
    issue = await Desk(fleet, tmp_path).issue(status="todo")
    words = await owner.words(f"/orchestrator?issue={issue.identifier}")
    assert f"{issue.identifier} : the orchestrator does not work on default" in words
    assert "There is no issue NO-1" in await owner.words("/orchestrator?issue=NO-1")


def test_issues_that_wait_can_be_narrowed_to_one_reason() -> None:
    waits = [{"code": code, "issue": f"A-{at}"} for at, code in enumerate(("cap_role", "cap_role", "retry", "next"))]
    found = shown_waits({"waiting": waits, "waits": {"cap_role": 2, "retry": 1, "next": 1}}, "cap_role")
    assert [each["issue"] for each in found["waits"]] == ["A-0", "A-1"]
    assert [(name, many) for name, _, many in found["wait_counts"]] == [("cap_role", 2), ("next", 1)]
    assert found["waits_in_all"] == 2


async def test_a_live_part_has_how_it_stands_without_the_form(owner: Guest) -> None:
    part = (await owner.part("/orchestrator", "standing")).text
    assert 'id="standing"' in part
    assert "Settings of" not in words_of(part)


def test_a_person_switches_a_project_on_and_sees_it_listed_without_loading_the_page_anew(viewer: Viewer) -> None:
    viewer.site.call("create_project", slug="shop", path="/srv/shop")
    page = viewer.open("/orchestrator?project=shop")
    page.get_by_text("No project is worked on yet").wait_for()
    viewer.check()
    viewer.site.call(configure_orchestrator, as_={"as_owner": True, "project": "shop"}, enabled=True)
    page.locator("#standing").get_by_role("cell", name="enabled").wait_for()
    page.get_by_label("Agents at once", exact=True).fill("2")
    page.get_by_role("button", name="Keep the settings").press("Enter")
    page.locator("#notices").get_by_text("Kept.").wait_for()
    assert page.get_by_label("Agents at once", exact=True).input_value() == "2"
    viewer.check()
