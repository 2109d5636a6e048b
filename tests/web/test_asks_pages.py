"""The pages of asks: who may see and answer them, what they show, and what an answer does."""

import json
import re

import pytest
import sqlalchemy as sa

from rookery.db.tx import Tx
from rookery.domains.owner.ask_details import look_at_asks
from rookery.domains.owner.notify_tables import notification_channels
from rookery.domains.owner.outside_links import make_link
from rookery.web.ask_view import exact_input, shown_ask
from tests.web.asking import approval, looking_on, question, row
from tests.web.guest import Guest, words_of

HX = {"HX-Request": "true"}


async def test_whoever_is_not_signed_in_is_sent_to_sign_in_and_comes_back(guest: Guest) -> None:
    ask_id = question(guest.fleet)
    for path in ("/asks", f"/asks/{ask_id}", f"/asks/{ask_id}/input"):
        answer = await guest.get(path)
        assert (answer.status_code, answer.headers["location"]) == (303, f"/sign-in?next={path}")
    assert (await guest.post(f"/asks/{ask_id}/answer", {"choice": "1"})).status_code == 303
    assert row(guest.fleet, ask_id).status == "open"


async def test_a_viewer_sees_asks_without_forms_and_is_refused(owner: Guest) -> None:
    ask_id, vera = question(owner.fleet), looking_on(owner)
    page = (await vera.get("/asks")).text
    assert "Which one?" in page
    assert f"/asks/{ask_id}/answer" not in page
    assert 'id="batch"' not in page
    assert "Your role looks on" in page
    assert (await vera.post(f"/asks/{ask_id}/answer", {"choice": "1"})).status_code == 403
    answer = await vera.post("/asks/batch", {"id": ask_id, "verdict": "dismiss"}, headers=HX)
    assert "Not done" in answer.headers["hx-trigger"]
    assert row(owner.fleet, ask_id).status == "open"


async def test_an_answer_without_the_token_of_its_form_counts_for_nothing(owner: Guest) -> None:
    ask_id = question(owner.fleet)
    for path in (f"/asks/{ask_id}/answer", "/asks/batch"):
        assert (await owner.client.post(path, data={"choice": "1", "id": ask_id})).status_code == 403
    assert row(owner.fleet, ask_id).status == "open"


async def test_asks_of_another_tenant_are_not_there(owner: Guest) -> None:
    ask_id = question(owner.fleet, "other", question="Secret?")
    assert "Secret?" not in (await owner.get("/asks")).text
    for path in (f"/asks/{ask_id}", f"/asks/{ask_id}/input", "/asks/nothing"):
        assert (await owner.get(path)).status_code == 404
    assert (await owner.post(f"/asks/{ask_id}/answer", {"choice": "1"})).status_code == 404
    assert row(owner.fleet, ask_id).status == "open"


async def test_a_question_is_answered_by_an_option_by_words_or_by_both(owner: Guest) -> None:
    said = [({"choice": "2"}, "blue"), ({"text": "green"}, "green"), ({"choice": "1", "text": "dark"}, "red: dark")]
    for number, (fields, answer) in enumerate(said):
        ask_id = question(owner.fleet, question=f"Which {number}?")
        page = await owner.words("/asks")
        assert f"Which {number}?" in page
        done = await owner.post(f"/asks/{ask_id}/answer", fields)
        assert (done.status_code, done.headers["location"]) == (303, "/asks")
        found = row(owner.fleet, ask_id)
        assert (found.answer["text"], found.answered_by, found.answered_via) == (answer, "owner", "web")
    empty = question(owner.fleet, question="Nothing?")
    assert (await owner.post(f"/asks/{empty}/answer", {"text": " "})).status_code == 400


async def test_nothing_waits_is_said_with_what_to_expect(owner: Guest) -> None:
    assert "Nothing waits for you When an agent asks" in await owner.words("/asks")


async def test_an_approval_shows_its_exact_input_its_tier_and_why_it_asks(owner: Guest) -> None:
    ask_id = await approval(owner.fleet, content="first\n" * 40)
    page = await owner.words(f"/asks/{ask_id}")
    assert "May default run save_memory (act)?" in page
    assert "Layer gate: save_memory is act and the session's mode is ask" in page
    assert re.search(r"content 240 characters, 41 lines first first", page)
    exact = (await owner.get(f"/asks/{ask_id}/input")).text
    assert json.loads(exact) == {"key": "colour", "content": "first\n" * 40}
    kept = row(owner.fleet, ask_id).context
    assert kept.endswith(exact)


async def test_what_is_too_long_for_the_list_is_approved_where_all_of_it_is_shown(owner: Guest) -> None:
    ask_id = await approval(owner.fleet, content="x" * 9000 + "THE END")
    listed = (await owner.get("/asks")).text
    assert "Read all of it to approve" in listed
    assert 'value="approve"' not in listed.split('id="batch"')[0]
    assert "THE END" not in listed
    whole = (await owner.get(f"/asks/{ask_id}")).text
    assert "THE END" in whole
    assert 'value="approve"' in whole


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"verdict": "approve"}, "Approve"),
        ({"verdict": "deny", "reason": "too early"}, "deny: too early"),
        ({"verdict": "deny"}, "Deny"),
        ({"verdict": "approve-for", "length": "8 hours"}, "approve for 8 hours"),
    ],
)
async def test_a_decision_is_taken_as_it_was_meant(owner: Guest, fields: dict[str, str], said: str) -> None:
    ask_id = await approval(owner.fleet)
    assert (await owner.post(f"/asks/{ask_id}/answer", fields)).status_code == 303
    assert row(owner.fleet, ask_id).answer["text"] == said


async def test_a_yes_for_a_while_lets_the_agent_go_on_without_asking(owner: Guest) -> None:
    ask_id = await approval(owner.fleet)
    assert "30 days" in await owner.words(f"/asks/{ask_id}")
    await owner.post(f"/asks/{ask_id}/answer", {"verdict": "approve-for", "length": "30 days"})
    await owner.fleet.call(owner.fleet.actor(), "save_memory", key="shape", content="round")


async def test_a_yes_has_no_conditions_and_a_length_is_one_that_counts(owner: Guest) -> None:
    ask_id = await approval(owner.fleet)
    for fields in (
        {"verdict": "approve", "reason": "but not today"},
        {"verdict": "approve-for", "length": "99 days"},
        {"text": "hm"},
    ):
        assert (await owner.post(f"/asks/{ask_id}/answer", fields)).status_code == 400, fields
    assert row(owner.fleet, ask_id).status == "open"


async def test_what_is_put_off_stays_open_and_comes_last(owner: Guest) -> None:
    first, second = await approval(owner.fleet, "first"), await approval(owner.fleet, "second")
    page = (await owner.get("/asks")).text
    assert page.index(first) < page.index(second)
    await owner.post(f"/asks/{first}/answer", {"verdict": "later"})
    page = (await owner.get("/asks")).text
    assert page.index(second) < page.index(first)
    assert "put off" in page


async def test_whoever_comes_second_is_told_kindly_who_was_first_and_what_they_said(owner: Guest) -> None:
    ask_id = question(owner.fleet)
    await owner.post(f"/asks/{ask_id}/answer", {"choice": "1"})
    late = await owner.post(f"/asks/{ask_id}/answer", {"choice": "2"}, headers=HX)
    heard = json.loads(late.headers["hx-trigger"])
    assert heard["notice"].startswith("Somebody was faster. Answered by owner via web: red, ")
    assert heard["asks"] is True
    plain = await owner.post(f"/asks/{ask_id}/answer", {"choice": "2"})
    assert plain.headers["location"] == f"/asks/{ask_id}"
    assert "Answered by owner via web: red" in await owner.words(f"/asks/{ask_id}")


async def test_several_are_decided_together_and_what_cannot_be_is_named(owner: Guest) -> None:
    wanted = [await approval(owner.fleet, f"number-{n}") for n in range(3)]
    asked = question(owner.fleet)
    await owner.post(f"/asks/{wanted[0]}/answer", {"verdict": "deny"})
    fields = {"id": [*wanted, asked], "verdict": "approve"}
    heard = json.loads((await owner.post("/asks/batch", fields, headers=HX)).headers["hx-trigger"])
    assert heard["notice"].startswith(
        f"2 approved. Not done: {wanted[0][:8]}: ask {wanted[0][:8]} was already answered"
    )
    assert "a question wants an answer" in heard["notice"]
    assert [row(owner.fleet, each).answer["text"] for each in wanted] == ["Deny", "Approve", "Approve"]
    assert (await owner.post("/asks/batch", {"verdict": "approve"})).status_code == 400
    assert (await owner.post("/asks/batch", {"id": asked, "verdict": "maybe"})).status_code == 400


async def test_those_alike_are_decided_along_but_none_that_came_after_the_page(owner: Guest) -> None:
    first, second = await approval(owner.fleet, "first"), await approval(owner.fleet, "second")
    page = (await owner.get("/asks")).text
    assert "1 more like this: save_memory" in words_of(page)
    seen = re.search(r'name="seen_ms" value="(\d+)"', page)
    assert seen is not None
    fields = {"verdict": "approve", "similar": "1", "seen_ms": str(row(owner.fleet, first).created_ms - 1)}
    await owner.post(f"/asks/{first}/answer", fields)
    assert (row(owner.fleet, first).status, row(owner.fleet, second).status) == ("answered", "open")
    third = await approval(owner.fleet, "third")
    await owner.post(f"/asks/{second}/answer", {"verdict": "deny", "similar": "1", "seen_ms": "9" * 14})
    assert [row(owner.fleet, each).answer["text"] for each in (second, third)] == ["Deny", "Deny"]


async def test_what_is_over_is_found_again_by_filters_page_by_page(owner: Guest) -> None:
    for number in range(52):
        ask_id = question(owner.fleet, question=f"Old {number:02}?", session=f"s{number}")
        await owner.post(f"/asks/{ask_id}/answer", {"choice": "1"})
    dismissed = question(owner.fleet, question="Gone?")
    await owner.post(f"/asks/{dismissed}/answer", {"verdict": "dismiss"})
    page = await owner.get("/asks?tab=answered")
    assert "Dismissed by owner via web" in words_of(page.text)
    assert "Old 02?" not in page.text
    older = re.search(r'href="(/asks\?[^"]*cursor=[^"]+)"', page.text)
    assert older is not None
    assert "Old 00?" in await owner.words(older[1].replace("&amp;", "&"))
    assert "Gone?" not in await owner.words("/asks?tab=answered&status=answered")
    assert "Gone?" in await owner.words("/asks?tab=answered&q=gone&kind=question&agent=default")
    assert "Nothing here" in await owner.words("/asks?tab=answered&kind=approval")
    assert (await owner.get("/asks?tab=answered&cursor=nonsense")).status_code == 400


async def test_a_live_part_comes_by_itself(owner: Guest) -> None:
    ask_id = question(owner.fleet)
    rows = await owner.part("/asks", "rows")
    assert "<html" not in rows.text
    assert "Which one?" in rows.text
    card = await owner.part(f"/asks/{ask_id}", "card")
    assert card.text.count("<article") == 1
    assert "Which one?" in card.text


async def test_hostile_words_are_shown_and_do_nothing(owner: Guest) -> None:
    evil = "<script>alert(1)</script>\u202eevil\x1b[31m"
    question(owner.fleet, question=evil, options=[f"{evil} one", "two"], context=evil * 500)
    await approval(owner.fleet, content=evil)
    for path in ("/asks", *(f"/asks/{each['id']}" for each in (await look(owner)))):
        page = (await owner.get(path)).text
        assert "<script>alert" not in page
        assert "\u202e" not in page
        assert "\x1b" not in page
        assert "&lt;script&gt;alert(1)" in page


async def look(owner: Guest) -> list[dict[str, str]]:
    """The tool look_at_asks, which is in no list."""
    found = await owner.fleet.platform.calls.run(owner.fleet.owner, look_at_asks, {})
    return found.structured["asks"]


def test_an_input_that_cannot_be_taken_apart_unchanged_is_shown_as_it_is() -> None:
    card = 'Write\ninput (sha256 0123456789ab):\n{"a": 1,"a": 2}'
    ask = {"kind": "approval", "context": card, "issue": None}
    shown = shown_ask(ask, whole=True)
    assert shown["input"].parts is None
    assert exact_input(ask) == '{"a": 1,"a": 2}'
    assert "{&#34;a&#34;: 1,&#34;a&#34;: 2}" in shown["input"].exact


async def test_a_one_time_link_leads_into_the_console_for_whoever_is_signed_in(owner: Guest) -> None:
    fleet, ask_id = owner.fleet, question(owner.fleet)
    hook = {"url": "https://hooks.example.org/asks"}
    await fleet.call(fleet.owner, "configure_notifications", action="set", channel_type="webhook", config=hook)

    def linked(tx: Tx) -> str:
        channel = tx.scalar(sa.select(notification_channels.c.id))
        return make_link(tx, tenant="default", ask_id=ask_id, channel_id=channel, delivery_id="one")

    path = f"/hooks/asks/{ask_id}/{fleet.platform.database.direct(linked, write=True)}"
    stranger = await Guest(fleet, owner.web).get(path)
    assert (stranger.status_code, "console" in stranger.text) == (200, False)
    way = f'<a href="/asks/{ask_id}">Open it in the console</a>'
    assert way in (await owner.get(path)).text
    assert way in (await owner.client.post(path, data={"choice": "1"})).text
    assert row(fleet, ask_id).answered_via == "link"
