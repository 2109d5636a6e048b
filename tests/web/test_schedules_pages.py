"""Schedules on the console: who sees what, who may decide, and what the forms say before they save."""

import json
import re
from typing import Any

import sqlalchemy as sa

from rookery.domains.schedules.overview import run_schedule_now, show_schedule
from rookery.domains.schedules.tables import executions
from rookery.identity.store import IdentityStore
from tests.web.crew import person
from tests.web.guest import Guest, words_of

NIGHTLY = {
    "name": "Nightly look",
    "cron_expression": "30 2 * * MON-FRI",
    "timezone": "Europe/Berlin",
    "schedule_actions": [{"type": "work_task", "description": "Look at the failing tests."}],
}
FORM = {
    "name": "Weekly",
    "when": "cron",
    "cron_expression": "0 9 * * MON",
    "timezone": "UTC",
    "approval_policy": "auto",
    "missed": "skip",
    "actions": "1",
    "a0:type": "custom",
    "a0:prompt": "Say what changed.",
}


async def make(owner: Guest, **given: Any) -> str:
    fleet = owner.fleet
    made = await fleet.call(fleet.owner, "manage_schedule", action="create", **(NIGHTLY | given))
    return made.schedules[0]["id"]


async def waiting(owner: Guest, schedule_id: str) -> str:
    """The id of an execution that awaits approval."""
    fleet = owner.fleet
    done = await fleet.platform.calls.run(fleet.owner, run_schedule_now, {"schedule_id": schedule_id})
    return done.structured["execution"]["id"]


def executed(owner: Guest) -> list[str]:
    wanted = sa.select(executions.c.status).order_by(executions.c.due_ms)
    return [row.status for row in owner.fleet.platform.database.direct(lambda tx: tx.all(wanted))]


async def test_whoever_is_not_signed_in_sees_no_schedules(guest: Guest, owner: Guest) -> None:
    schedule_id = await make(owner)
    for path in ("/automation", f"/automation/schedules/{schedule_id}", "/automation/schedules/new"):
        answer = await guest.get(path)
        assert answer.status_code == 303
        assert answer.headers["location"].startswith("/sign-in")


async def test_a_viewer_sees_schedules_and_no_way_to_change_them(owner: Guest) -> None:
    schedule_id = await make(owner)
    execution = await waiting(owner, schedule_id)
    viewer = person(owner, "viewer")
    page = (await viewer.get("/automation")).text
    assert "Nightly look" in page
    assert "Awaits approval" in page
    assert "/pause" not in page
    assert "/approve" not in page
    at = f"/automation/schedules/{schedule_id}"
    for path in (f"{at}/pause", f"{at}/run", f"{at}/delete", f"{at}/executions/{execution}/approve"):
        assert (await viewer.post(path)).status_code == 403
    assert (await viewer.post("/automation/schedules/form", FORM | {"do": "save:"})).status_code == 403
    assert executed(owner) == ["awaiting_approval"]
    assert len((await owner.words("/automation")).split("Weekly")) == 1


async def test_an_operator_pauses_and_runs_but_does_not_approve(owner: Guest) -> None:
    schedule_id = await make(owner)
    operator = person(owner, "operator", "Otto")
    at = f"/automation/schedules/{schedule_id}"
    assert (await operator.post(f"{at}/run")).status_code == 303
    execution = (await shown(owner, schedule_id))["executions"][0]["id"]
    assert "/approve" not in (await operator.get(at)).text
    assert (await operator.post(f"{at}/executions/{execution}/approve")).status_code == 403
    assert (await operator.post(f"{at}/pause")).status_code == 303
    assert "paused" in await operator.words(at)


async def shown(owner: Guest, schedule_id: str) -> dict[str, Any]:
    fleet = owner.fleet
    return (await fleet.platform.calls.run(fleet.owner, show_schedule, {"schedule_id": schedule_id})).structured


async def test_a_schedule_of_another_tenant_is_not_there(owner: Guest) -> None:
    fleet = owner.fleet
    fleet.platform.database.direct(lambda tx: IdentityStore(tx, "other").set_up(), write=True)
    stranger = fleet.actor(tenant="other", as_owner=True)
    theirs = (await fleet.call(stranger, "manage_schedule", action="create", **NIGHTLY)).schedules[0]["id"]
    assert (await owner.get(f"/automation/schedules/{theirs}")).status_code == 404
    assert (await owner.post(f"/automation/schedules/{theirs}/delete")).status_code == 404
    assert "Nightly look" not in await owner.words("/automation")


async def test_a_form_without_its_token_pauses_nothing(owner: Guest) -> None:
    schedule_id = await make(owner)
    answer = await owner.client.post(f"/automation/schedules/{schedule_id}/pause", data={})
    assert answer.status_code == 403
    assert "active" in await owner.words(f"/automation/schedules/{schedule_id}")


async def test_without_schedules_the_page_says_what_they_are(owner: Guest) -> None:
    words = await owner.words("/automation")
    assert "There are no schedules yet" in words
    assert "New schedule" in words


async def test_the_list_shows_when_in_words_and_the_next_time(owner: Guest) -> None:
    await make(owner)
    page = (await owner.get("/automation")).text
    assert "At 02:30, Monday to Friday" in words_of(page)
    assert "Europe/Berlin" in page
    assert "data-local" in page


async def test_a_schedule_shows_its_next_five_times_in_its_zone(owner: Guest) -> None:
    schedule_id = await make(owner)
    page = (await owner.get(f"/automation/schedules/{schedule_id}")).text
    assert page.count("<strong>20") == 5
    assert page.count('data-elsewhere="Europe/Berlin"') == 5, "who is there is shown no second time"
    assert "02:30" in page
    assert "Look at the failing tests." in page


async def test_the_owner_approves_an_execution_and_its_history_says_so(owner: Guest) -> None:
    schedule_id = await make(owner)
    execution = await waiting(owner, schedule_id)
    at = f"/automation/schedules/{schedule_id}"
    words = await owner.words(f"{at}/executions/{execution}")
    assert "1. Make a work task" in words
    assert "Description Look at the failing tests." in words
    answer = await owner.client.post(
        f"{at}/executions/{execution}/approve",
        headers={"HX-Request": "true", "X-CSRF-Token": token(owner)},
    )
    assert answer.status_code == 204
    assert {"automation", "waiting", "asks", "notice"} == set(json.loads(answer.headers["hx-trigger"]))
    assert executed(owner) == ["approved"]
    assert (await owner.post(f"{at}/executions/{execution}/deny")).status_code == 409


def token(owner: Guest) -> str:
    from rookery.web.signed_in import form_token

    return form_token(owner.token or "")


async def test_the_owner_denies_an_execution(owner: Guest) -> None:
    schedule_id = await make(owner)
    execution = await waiting(owner, schedule_id)
    await owner.post(f"/automation/schedules/{schedule_id}/executions/{execution}/deny")
    assert executed(owner) == ["denied"]
    assert "denied" in (await owner.part(f"/automation/schedules/{schedule_id}", "schedule")).text


async def test_an_execution_is_found_below_its_own_schedule_only(owner: Guest) -> None:
    first, second = await make(owner), await make(owner, name="Another")
    execution = await waiting(owner, first)
    assert (await owner.get(f"/automation/schedules/{second}/executions/{execution}")).status_code == 404


async def test_the_form_previews_and_saves_nothing_until_it_is_told(owner: Guest) -> None:
    words = words_of((await owner.post("/automation/schedules/form", FORM | {"do": "show:"})).text)
    assert "At 09:00, on Monday" in words
    wrong = FORM | {"do": "show:", "cron_expression": "*/2 * * * *"}
    assert "the shortest is 5" in words_of((await owner.post("/automation/schedules/form", wrong)).text)
    assert "There are no schedules yet" in await owner.words("/automation")


async def test_the_form_saves_a_schedule_and_changes_it(owner: Guest) -> None:
    made = await owner.post("/automation/schedules/form", FORM | {"do": "save:", "max_budget_per_run": "0.50"})
    assert made.status_code == 303, made.text
    at = made.headers["location"]
    words = await owner.words(at)
    assert "Weekly" in words
    assert "$0.50" in words
    schedule_id = at.rpartition("/")[2]
    form = (await owner.get(f"{at}/edit")).text
    assert 'value="0 9 * * MON"' in form
    changed = FORM | {"do": "save:", "id": schedule_id, "when": "interval", "interval_minutes": "90"}
    assert (await owner.post("/automation/schedules/form", changed)).status_code == 303
    words = await owner.words(at)
    assert "Every 90 minutes" in words
    assert "no limit" in words


async def test_what_is_wrong_is_said_in_the_form_and_nothing_is_lost(owner: Guest) -> None:
    fields = FORM | {"do": "save:", "name": "", "a0:prompt": "a <b>long</b> story", "max_executions": "many"}
    answer = await owner.post("/automation/schedules/form", fields)
    assert "max_executions: is not a whole number" in words_of(answer.text)
    assert "a &lt;b&gt;long&lt;/b&gt; story" in answer.text


async def test_actions_are_added_and_removed_in_the_form(owner: Guest) -> None:
    more = await owner.post("/automation/schedules/form", FORM | {"do": "add_action:"})
    assert 'name="a1:type"' in more.text
    both = FORM | {"actions": "2", "a1:type": "review_prs", "a1:repos": "ada/shop", "do": "remove_action:0"}
    left = (await owner.post("/automation/schedules/form", both)).text
    assert 'value="ada/shop"' in left
    assert "Say what changed." not in left


def chosen(page: str) -> list[str]:
    """What the selects of a form have chosen that are for projects."""
    selects = re.findall(r'<select id="[^"]*" name="a\d:project_id">(.*?)</select>', page, re.S)
    return [each for select in selects for each in re.findall(r'<option value="([^"]*)" selected>', select)]


async def test_the_project_is_chosen_from_those_there_are(owner: Guest) -> None:
    await owner.fleet.call(owner.fleet.owner, "create_project", slug="shop", name="The shop <b>")
    page = (await person(owner, "operator").get("/automation/schedules/new")).text
    assert '<option value="shop">The shop &lt;b&gt;</option>' in page
    assert chosen(page) == [""]
    made = await owner.post("/automation/schedules/form", FORM | {"do": "save:", "a0:project_id": "shop"})
    assert chosen((await owner.get(f"{made.headers['location']}/edit")).text) == ["shop"]


async def test_a_project_of_another_tenant_is_not_offered(owner: Guest) -> None:
    fleet = owner.fleet
    fleet.platform.database.direct(lambda tx: IdentityStore(tx, "other").set_up(), write=True)
    await fleet.call(fleet.actor(tenant="other", as_owner=True), "create_project", slug="theirs", name="Theirs")
    assert "theirs" not in (await owner.get("/automation/schedules/new")).text


async def test_a_project_that_is_not_there_is_refused_and_stays_in_the_form(owner: Guest) -> None:
    page = (await owner.post("/automation/schedules/form", FORM | {"do": "save:", "a0:project_id": "gone"})).text
    assert "there is no project gone" in words_of(page)
    assert chosen(page) == ["gone"]
    assert "There are no schedules yet" in await owner.words("/automation")


async def test_a_refused_form_keeps_the_project_that_was_chosen(owner: Guest) -> None:
    await owner.fleet.call(owner.fleet.owner, "create_project", slug="shop", name="Shop")
    fields = FORM | {"do": "save:", "max_executions": "many", "a0:project_id": "shop"}
    assert chosen((await owner.post("/automation/schedules/form", fields)).text) == ["shop"]


async def test_deleting_takes_the_history_along(owner: Guest) -> None:
    schedule_id = await make(owner)
    await waiting(owner, schedule_id)
    assert (await owner.post(f"/automation/schedules/{schedule_id}/delete")).headers["location"] == "/automation"
    assert executed(owner) == []
