"""The link that answers an ask: for the owner's channels alone, good once, and silent to whoever guesses."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import sqlalchemy as sa

from rookery.asks.tables import asks
from rookery.domains.owner.hooks import answer_by_link
from rookery.domains.owner.notify_tables import notification_deliveries
from rookery.domains.owner.outside_links import LASTS_MS, TOKEN_BYTES, link_base
from rookery.domains.owner.outside_tables import ask_links
from rookery.settings import Settings
from tests.domains.owner.outside import LINK, Outside
from tests.domains.owner.telling import HERE
from tests.outgoing.loopback import web_server
from tests.platform_fixtures import Fleet


@pytest.fixture
def outside(prepared_database_url: str, make_fleet: Callable[..., Fleet]) -> Outside:
    return Outside(make_fleet(prepared_database_url, extra={}, outgoing_allow=HERE))


async def test_whoever_guesses_learns_nothing(outside: Outside) -> None:
    async with web_server() as web:
        ask_id, token = await outside.linked(web)
        other = outside.ask(question="Another?")
        before = outside.state()
        guesses = [
            (ask_id, "x"), (ask_id, token[:-1]), (ask_id, token + "A"), (ask_id, token.swapcase()), (other, token),
            ("nobody", token), ("nobody", "x"), (ask_id[:8], token), (ask_id, "ü\ud800"), ("a\0b", token),
        ]  # fmt: skip
        said = [await outside.get(*guess) for guess in guesses]
        said += [await outside.post(*guess, choice="1") for guess in guesses]
        assert {(answer.status, answer.page) for answer in said} == {(404, said[0].page)}
        assert outside.state() == before


async def test_only_channels_of_people_carry_a_link_and_only_asks_do(outside: Outside) -> None:
    async with web_server() as web:
        for actor, path in ((outside.owner, "people"), (outside.agent, "agent")):
            await outside.configure(actor, "set", "webhook", config={"url": f"{web.url}/{path}"})
        ask_id = outside.ask()
        await outside.work()
        by_path = {seen.path: seen.body.decode() for seen in web.seen}
        assert LINK.search(json.loads(by_path["/people"])["link"])
        assert "hooks/asks" not in by_path["/agent"]
        assert json.loads(by_path["/agent"])["id"] == ask_id
        web.seen.clear()
        await outside.tell(outside.agent)
        assert [seen for seen in web.seen if b"hooks/asks" in seen.body] == []


@pytest.mark.parametrize("kind", ["approval", "schedule", "verdict"])
async def test_what_gives_rights_is_told_to_the_owner_alone(outside: Outside, kind: Any) -> None:
    async with web_server() as web:
        for actor, path in ((outside.owner, "people"), (outside.agent, "agent")):
            await outside.configure(actor, "set", "webhook", config={"url": f"{web.url}/{path}"})
        outside.ask(kind=kind)
        await outside.work()
        assert [seen.path for seen in web.seen] == ["/people"]
        assert len(outside.rows("deliveries")) == 1


async def test_a_repository_and_a_channel_that_says_so_have_no_link(outside: Outside) -> None:
    async with web_server() as web:
        github = {"repo": "a/b", "token": "x", "api_url": f"{web.url}/github"}
        await outside.configure(outside.owner, "set", "github", config=github)
        ntfy = {"topic": "t", "server_url": web.url, "links": "no"}
        await outside.configure(outside.owner, "set", "ntfy", config=ntfy)
        outside.ask()
        await outside.work()
        assert len(web.seen) == 2
        assert [seen for seen in web.seen if b"hooks/asks" in seen.body] == []


async def test_looking_changes_nothing(outside: Outside) -> None:
    async with web_server() as web:
        ask_id, token = await outside.linked(web, context="The <button>.")
        before = outside.state()
        pages = [await outside.get(ask_id, token) for _ in range(3)]
        assert {page.status for page in pages} == {200}
        shown = pages[0].page or ""
        assert "Question from default" in shown
        assert "The &lt;button&gt;." in shown
        assert '<button name="choice" value="2">2. <bdi>blue</bdi></button>' in shown
        assert "<script" not in shown
        assert outside.state() == before


async def test_the_first_option_is_one_and_the_answer_is_the_owners(outside: Outside) -> None:
    async with web_server() as web:
        ask_id, token = await outside.linked(web)
        done = await outside.post(ask_id, token, choice="1", text="")
        assert done.status == 200
        assert "Noted. Option 1: red" in (done.page or "")
        row = outside.row(ask_id)
        assert (row.status, row.answer) == ("answered", {"text": "red", "option": 1})
        assert (row.answered_by, row.answered_via) == ("owner", "link")
        assert [event.subject for event in outside.answers()] == [ask_id]
        audited = sa.text("SELECT kind, subject, source, outcome FROM audit_log WHERE tool = 'answer_ask'")
        owner = outside.owner.subject
        found = outside.platform.database.direct(lambda tx: [tuple(row) for row in tx.all(audited)])
        assert found == [("human", owner, "link", "done")]


async def test_a_link_is_good_once(outside: Outside) -> None:
    async with web_server() as web:
        ask_id, token = await outside.linked(web)
        await outside.post(ask_id, token, text="green")
        before = outside.state()
        for answer in (await outside.get(ask_id, token), await outside.post(ask_id, token, choice="2")):
            assert answer.status == 410
            assert "answered already by owner via link" in (answer.page or "")
        assert outside.state() == before
        assert outside.row(ask_id).answer == {"text": "green", "option": None}


async def test_of_many_at_once_one_counts(outside: Outside) -> None:
    async with web_server() as web:
        ask_id, token = await outside.linked(web)
        said = await asyncio.gather(*(outside.post(ask_id, token, choice=str(1 + n % 2)) for n in range(6)))
        assert sorted(answer.status for answer in said) == [200, 410, 410, 410, 410, 410]
        assert len(outside.answers()) == 1


async def test_who_comes_late_is_told_so(outside: Outside) -> None:
    async with web_server() as web:
        ask_id, token = await outside.linked(web)
        outside.answer(ask_id, "2")
        late = await outside.post(ask_id, token, choice="1")
        assert (late.status, "answered already by owner via cli" in (late.page or "")) == (410, True)
        for change, said in (
            ({"status": "withdrawn"}, "was withdrawn"),
            ({"status": "expired"}, "time for an answer is over"),
            ({"status": "open", "expires_ms": 5}, "time for an answer is over"),
        ):
            outside.change(sa.update(asks).values(**change))
            for answer in (await outside.get(ask_id, token), await outside.post(ask_id, token, choice="1")):
                assert (answer.status, said in (answer.page or "")) == (410, True)


@pytest.mark.parametrize("action", ["disable", "remove"])
async def test_a_channel_that_was_taken_away_takes_its_links_along(outside: Outside, action: str) -> None:
    async with web_server() as web:
        ask_id, token = await outside.linked(web)
        await outside.configure(outside.owner, action, "webhook")
        for answer in (await outside.get(ask_id, token), await outside.post(ask_id, token, choice="1")):
            assert (answer.status, "turned off or removed" in (answer.page or "")) == (410, True)
        assert outside.row(ask_id).status == "open"


async def test_what_is_no_answer_uses_nothing_up(outside: Outside) -> None:
    async with web_server() as web:
        ask_id, token = await outside.linked(web)
        for form in ({}, {"choice": "", "text": "  "}, {"text": "x" * 20_001}, {"text": "a\0b"}):
            refused = await outside.post(ask_id, token, **form)
            assert (refused.status, 'role="alert"' in (refused.page or "")) == (400, True)
        assert outside.row(ask_id).status == "open"
        assert (await outside.post(ask_id, token, text="2")).status == 200
        assert outside.row(ask_id).answer == {"text": "blue", "option": 2}


async def test_words_beside_a_button_are_never_left_out(outside: Outside) -> None:
    async with web_server() as web:
        ask_id, token = await outside.linked(web, kind="approval", question="May it?")
        for choice in ("1", "3", "4"):
            refused = await outside.post(ask_id, token, choice=choice, text="only on staging")
            assert (refused.status, "without a condition" in (refused.page or "")) == (400, True)
        assert outside.row(ask_id).status == "open"
        assert outside.row(ask_id).later_ms is None
        ask_id, token = await outside.linked(web)
        assert (await outside.post(ask_id, token, choice="2", text="but darker")).status == 200
        assert outside.row(ask_id).answer == {"text": "blue: but darker", "option": None}


@pytest.mark.parametrize("config", [{"links": "yes"}, {"secret": "s3cr3t"}])
async def test_a_link_that_was_sent_before_the_channel_was_set_anew_is_over(outside: Outside, config: Any) -> None:
    async with web_server() as web:
        ask_id, token = await outside.linked(web, kind="schedule")
        await outside.configure(outside.owner, "disable", "webhook")
        await outside.configure(outside.owner, "enable", "webhook")
        assert (await outside.get(ask_id, token)).status == 200
        await outside.configure(outside.owner, "set", "webhook", config={"url": f"{web.url}/new", **config})
        for answer in (await outside.get(ask_id, token), await outside.post(ask_id, token, choice="1")):
            assert (answer.status, "answers nothing any more" in (answer.page or "")) == (410, True)
        assert outside.row(ask_id).status == "open"
        other, fresh = await outside.linked(web, question="Another?")
        await outside.configure(outside.agent, "set", "webhook", config={"url": web.url})
        assert (await outside.get(other, fresh)).status == 200


async def test_a_link_is_over_after_a_week_however_long_the_ask_is_open(outside: Outside) -> None:
    async with web_server() as web:
        ask_id, token = await outside.linked(web, kind="schedule", open_for_ms=10**12)
        outside.change(sa.update(ask_links).values(created_ms=ask_links.c.created_ms - LASTS_MS + 60_000))
        assert (await outside.get(ask_id, token)).status == 200
        outside.change(sa.update(ask_links).values(created_ms=ask_links.c.created_ms - 60_000))
        assert (await outside.post(ask_id, token, choice="1")).status == 410


async def test_later_is_not_no_and_a_refusal_has_its_reason(outside: Outside) -> None:
    async with web_server() as web:
        ask_id, token = await outside.linked(web, kind="approval", question="May it?")
        later = await outside.post(ask_id, token, choice="3")
        assert (later.status, "stays open" in (later.page or "")) == (200, True)
        assert (outside.row(ask_id).status, [event.name for event in outside.events]) == ("open", ["AskPutOff"])
        assert (await outside.post(ask_id, token, text="perhaps")).status == 400
        assert (await outside.post(ask_id, token, choice="2", text="not on Fridays")).status == 200
        assert outside.row(ask_id).answer["text"] == "deny: not on Fridays"


async def test_each_attempt_has_a_link_and_no_token_is_kept(outside: Outside) -> None:
    async with web_server() as web:
        web.says("/", 503)
        ask_id, first = await outside.linked(web)
        await outside.try_again()
        second = LINK.findall(web.seen[-1].body.decode())[0][1]
        assert first != second
        assert len(first) >= TOKEN_BYTES
        dumped = outside.everything()
        assert first not in dumped
        assert second not in dumped
        assert {(await outside.get(ask_id, token)).status for token in (first, second)} == {200}
        await outside.post(ask_id, first, choice="1")
        assert (await outside.get(ask_id, second)).status == 410


async def test_the_owner_of_another_tenant_has_nothing_of_it(outside: Outside) -> None:
    async with web_server() as web:
        ask_id, token = await outside.linked(web)
        outside.change(sa.update(asks).values(tenant="other"))
        assert (await outside.get(ask_id, token)).status == 404


async def test_an_ask_is_titled_by_its_question(outside: Outside) -> None:
    async with web_server() as web:
        await outside.linked(web, subject="iss-123")
        assert json.loads(web.seen[-1].body)["title"] == "Question from default: Which one?"


def test_the_server_has_the_address(outside: Outside) -> None:
    assert answer_by_link in outside.platform.hooks


def test_links_lead_to_the_address_that_others_use(tmp_path: Any) -> None:
    plain = Settings(home=str(tmp_path))
    assert link_base(plain) == "http://127.0.0.1:4242"
    assert link_base(replace(plain, public_url="https://rookery.example.org")) == "https://rookery.example.org"
    assert link_base(replace(plain, port=0)) is None


async def test_slow_channels_of_an_agent_take_one_place(outside: Outside) -> None:
    async with web_server() as web:
        for channel, config in (
            ("webhook", {"url": web.url}),
            ("ntfy", {"topic": "t", "server_url": web.url}),
            ("github", {"repo": "a/b", "token": "x", "api_url": web.url}),
        ):
            await outside.configure(outside.agent, "set", channel, config=config)
        await outside.configure(outside.owner, "set", "webhook", config={"url": web.url})
        outside.leave(outside.agent)
        outside.ask()
        await outside.work()
        locks = outside.platform.database.direct(
            lambda tx: [row[0] for row in tx.all(sa.text("SELECT lock_key FROM jobs WHERE kind = 'owner.deliver'"))]
        )
        assert len(locks) == 8
        assert len(set(locks)) == 4
        sent = sa.select(sa.func.count()).where(notification_deliveries.c.status == "sent")
        assert outside.platform.database.direct(lambda tx: tx.scalar(sent)) == 8
