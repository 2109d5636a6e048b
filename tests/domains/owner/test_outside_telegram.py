"""Answers in a Telegram chat: whose count, what they mean, and that each is taken once whatever happens."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from typing import Any

import pytest
import sqlalchemy as sa

from rookery.asks.tables import asks
from rookery.domains.owner import outside_jobs, outside_telegram
from rookery.domains.owner.outside_tables import channel_listeners
from rookery.jobs.tables import jobs
from tests.domains.owner.outside import Outside, until
from tests.domains.owner.services import Telegram, said
from tests.domains.owner.telling import HERE
from tests.jobs.working import running_worker, settled
from tests.outgoing.loopback import web_server
from tests.platform_fixtures import Fleet


@pytest.fixture
def outside(prepared_database_url: str, make_fleet: Callable[..., Fleet], monkeypatch: pytest.MonkeyPatch) -> Outside:
    monkeypatch.setattr(outside_telegram, "BUSY_S", 0.02)
    monkeypatch.setattr(outside_jobs, "PAUSE_S", 0.02)
    return Outside(make_fleet(prepared_database_url, extra={}, outgoing_allow=HERE))


@pytest.fixture
async def telegram(outside: Outside) -> AsyncGenerator[Telegram]:
    """The owner's bot, set up for all agents."""
    async with web_server() as web:
        bot = Telegram(web)
        await outside.configure(outside.owner, "set", "telegram", config=bot.config)
        yield bot


def listeners(outside: Outside) -> Any:
    return outside.platform.database.direct(lambda tx: tx.all(sa.select(channel_listeners)))


async def test_what_others_say_is_no_answer(outside: Outside, telegram: Telegram) -> None:
    async with running_worker(outside.platform):
        ask_id = outside.ask()
        await until(lambda: telegram.sent)
        telegram.replies(1, "1", chat=8)
        telegram.replies(1, "1", chat="7 ")
        telegram.replies(1, "1", sender={"id": 9, "is_bot": True})
        telegram.replies(1, "1", sender={"id": 9})
        telegram.replies(1, "1", sender_chat={"id": 7})
        telegram.presses(1, 1, chat=8)
        telegram.hears(text="1")
        telegram.hears(text=f"/answer {ask_id} 1", chat=8)
        telegram.hears(text="/answer")
        telegram.hears(photo=[])
        telegram.updates += [{"update_id": 5000, "poll": {}}, {"update_id": 5001, "message": "x"}, {"x": 1}]  # pyright: ignore
        telegram.updates += [{"update_id": 5002, "callback_query": {"data": None, "message": {}}}]
        await until(lambda: 5003 in telegram.offsets)
        assert outside.row(ask_id).status == "open"
        assert len(telegram.sent) == 1
        outside.answer(ask_id, "2")
        await settled(outside.platform)
    assert outside.row(ask_id).answered_via == "cli"


async def test_the_first_button_is_the_first_option(outside: Outside, telegram: Telegram) -> None:
    async with running_worker(outside.platform):
        ask_id = outside.ask()
        await until(lambda: telegram.sent)
        assert telegram.sent[0]["link_preview_options"] == {"is_disabled": True}
        telegram.presses(1, 1)
        await settled(outside.platform)
    row = outside.row(ask_id)
    assert (row.answer, row.answered_by, row.answered_via) == ({"text": "red", "option": 1}, "owner", "telegram")
    assert [sent["text"] for sent in telegram.sent[1:]] == ["Noted. Option 1: red"]
    assert telegram.pressed == [{"callback_query_id": "cb", "text": "Noted. Option 1: red"}]
    assert [event.subject for event in outside.answers()] == [ask_id]


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("1", {"text": "red", "option": 1}),
        ("2", {"text": "blue", "option": 2}),
        ("BLUE", {"text": "blue", "option": 2}),
        ("0", {"text": "0", "option": None}),
        ("neither ✓", {"text": "neither ✓", "option": None}),
    ],
)
async def test_a_reply_is_an_answer(outside: Outside, telegram: Telegram, text: str, answer: Any) -> None:
    async with running_worker(outside.platform):
        other, ask_id = outside.ask(question="Other?"), outside.ask()
        await until(lambda: outside.noted() == 2)
        number = next(n for n, sent in enumerate(telegram.sent, 1) if ask_id in sent["text"])
        telegram.replies(number, text)
        await until(lambda: outside.row(ask_id).status == "answered")
        telegram.hears(text=f"/answer@rookery_bot {other[:8]} {text}")
        await settled(outside.platform)
    assert outside.row(ask_id).answer == answer
    assert outside.row(other).answer == answer


async def test_who_answers_late_is_told_whose_answer_counts(outside: Outside, telegram: Telegram) -> None:
    async with running_worker(outside.platform):
        ask_id, other = outside.ask(), outside.ask(question="Other?")
        await until(lambda: outside.noted() == 2)
        outside.answer(ask_id, "2")
        number = next(n for n, sent in enumerate(telegram.sent, 1) if ask_id in sent["text"])
        telegram.presses(number, 1)
        await until(lambda: len(telegram.sent) == 3)
        outside.answer(other, "2")
        await settled(outside.platform)
    assert "already answered by owner via cli" in telegram.sent[2]["text"]
    assert outside.row(ask_id).answer["option"] == 2


async def test_a_decision_is_clear_or_refused_and_later_waits(outside: Outside, telegram: Telegram) -> None:
    async with running_worker(outside.platform):
        ask_id = outside.ask(kind="approval", question="May it?")
        await until(lambda: telegram.sent)
        telegram.replies(1, "hm")
        telegram.presses(1, 3)
        await until(lambda: len(telegram.sent) == 3)
        assert outside.row(ask_id).status == "open"
        told = " ".join(sent["text"] for sent in telegram.sent[1:])
        assert "is no decision" in told
        assert "stays open" in told
        telegram.replies(1, "no: too late")
        await settled(outside.platform)
    assert outside.row(ask_id).status == "answered"


async def test_only_the_named_person_of_a_group_answers(outside: Outside, telegram: Telegram) -> None:
    config = {**telegram.config, "user_id": "77"}
    await outside.configure(outside.owner, "set", "telegram", config=config)
    async with running_worker(outside.platform):
        ask_id = outside.ask()
        await until(lambda: telegram.sent)
        telegram.presses(1, 1)
        telegram.presses(1, 2, sender={"id": 77, "is_bot": False})
        await settled(outside.platform)
    assert outside.row(ask_id).answer["option"] == 2


async def test_trouble_at_the_other_side_loses_nothing(outside: Outside, telegram: Telegram) -> None:
    telegram.faults += [
        said(500, b"oops"),
        said(200, b"<html>"),
        said(200, {"ok": True, "result": "x"}),
        said(200, {"ok": False}),
        said(409, {"ok": False, "error_code": 409}),
        said(429, {"ok": False, "parameters": {"retry_after": 1}}),
        said(401, {"ok": False}),
        said(200, b"[" * 100_000),
    ]
    async with running_worker(outside.platform):
        ask_id = outside.ask()
        await until(lambda: telegram.sent)
        telegram.presses(1, 2)
        await settled(outside.platform)
    assert telegram.faults == []
    assert outside.row(ask_id).answer["option"] == 2


async def test_an_update_that_comes_again_is_taken_once(outside: Outside, telegram: Telegram) -> None:
    telegram.repeats = True
    async with running_worker(outside.platform):
        ask_id, other = outside.ask(), outside.ask(question="Other?")
        await until(lambda: outside.noted() == 2)
        number = next(n for n, sent in enumerate(telegram.sent, 1) if ask_id in sent["text"])
        telegram.presses(number, 2)
        await until(lambda: outside.row(ask_id).status == "answered")
        seen = len(telegram.offsets)
        await until(lambda: len(telegram.offsets) > seen + 2)
        outside.answer(other, "1")
        await settled(outside.platform)
    assert len(telegram.sent) == 3
    assert len(outside.answers()) == 1


async def test_one_of_two_servers_listens_and_the_other_goes_on_after_it(
    outside: Outside, telegram: Telegram, prepared_database_url: str, make_fleet: Callable[..., Fleet]
) -> None:
    other = Outside(make_fleet(prepared_database_url, extra={}, outgoing_allow=HERE))
    async with running_worker(other.platform):
        async with running_worker(outside.platform):
            asked = [outside.ask(question=f"{number}?") for number in range(3)]
            await until(lambda: len(telegram.sent) == 3)
            await until(lambda: len(telegram.offsets) > 2)
            wanted = sa.select(sa.func.count()).where(jobs.c.kind == "owner.listen", jobs.c.state == "running")
            assert outside.platform.database.direct(lambda tx: tx.scalar(wanted)) == 1
        for number, ask_id in enumerate(asked, 1):
            telegram.hears(text=f"/answer {ask_id} {number}")
        await settled(other.platform)
    assert [outside.row(ask_id).answer["text"] for ask_id in asked] == ["red", "blue", "3"]
    assert len(telegram.sent) == 6


@pytest.mark.parametrize("action", ["disable", "remove"])
async def test_a_channel_that_is_taken_away_is_heard_no_more(outside: Outside, telegram: Telegram, action: str) -> None:
    async with running_worker(outside.platform):
        ask_id = outside.ask()
        await until(lambda: telegram.offsets)
        await outside.configure(outside.owner, action, "telegram")
        telegram.presses(1, 1)
        await settled(outside.platform)
        assert outside.row(ask_id).status == "open"
        if action == "disable":
            await outside.configure(outside.owner, "enable", "telegram")
            await settled(outside.platform)
            assert outside.row(ask_id).answer["option"] == 1


async def test_an_agents_own_bot_is_never_asked(outside: Outside) -> None:
    async with web_server() as web:
        bot = Telegram(web)
        await outside.configure(outside.agent, "set", "telegram", config=bot.config)
        async with running_worker(outside.platform):
            ask_id = outside.ask()
            await until(lambda: bot.sent)
            bot.replies(1, "1")
            bot.hears(text=f"/answer {ask_id} 1")
            await settled(outside.platform)
        assert (bot.offsets, outside.row(ask_id).status, listeners(outside)) == ([], "open", [])
        assert "reply_markup" not in bot.sent[0]
        assert "hooks/asks" not in bot.sent[0]["text"]


async def test_who_wants_no_answers_there_is_not_listened_to(outside: Outside, telegram: Telegram) -> None:
    await outside.configure(outside.owner, "set", "telegram", config={**telegram.config, "answers": "no"})
    outside.ask()
    await outside.work()
    assert (len(telegram.sent), telegram.offsets, listeners(outside)) == (1, [], [])


async def test_nobody_listens_when_nothing_is_asked(outside: Outside, telegram: Telegram) -> None:
    async with running_worker(outside.platform):
        ask_id = outside.ask()
        await until(lambda: telegram.offsets)
        outside.change(sa.update(asks).where(asks.c.id == ask_id).values(expires_ms=5))
        await settled(outside.platform)
        count = len(telegram.offsets)
        await outside.fleet.call(outside.agent, "notify_owner", message="x")
        await settled(outside.platform)
    assert len(telegram.offsets) == count
    assert [row.turn for row in listeners(outside)] == [2]


async def test_a_turn_that_is_over_is_followed_by_another(
    outside: Outside, telegram: Telegram, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outside_jobs, "TURN_S", 0.05)
    async with running_worker(outside.platform):
        ask_id = outside.ask()
        await until(lambda: listeners(outside) and listeners(outside)[0].turn > 3)
        telegram.presses(1, 2)
        await settled(outside.platform)
    assert outside.row(ask_id).answer["option"] == 2


async def test_a_bug_in_listening_is_tried_again_and_then_follows_a_pause(
    outside: Outside, telegram: Telegram, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: Any) -> Any:
        raise RuntimeError("a bug")

    broken = {"telegram": outside_jobs.Listener(hear=fail, reply=fail, source=outside_telegram.source)}
    with monkeypatch.context() as patched:
        patched.setattr(outside_jobs, "LISTENERS", broken)
        ask_id = outside.ask()
        for _ in range(4):
            await outside.try_again()
        assert listeners(outside)[0].turn >= 2
    telegram.presses(1, 2)
    await outside.try_again()
    assert outside.row(ask_id).answer["option"] == 2


async def test_a_message_whose_number_was_never_written_down_has_buttons_all_the_same(
    outside: Outside, telegram: Telegram
) -> None:
    async with running_worker(outside.platform):
        ask_id = outside.ask()
        await until(lambda: telegram.offsets)
        outside.change(sa.text("UPDATE notification_deliveries SET external_ref = NULL"))
        telegram.replies(1, "1")
        telegram.presses(1, 2)
        await settled(outside.platform)
    assert outside.row(ask_id).answer["option"] == 2


async def test_another_bot_is_read_from_its_own_beginning(outside: Outside, telegram: Telegram) -> None:
    async with running_worker(outside.platform):
        outside.ask()
        await until(lambda: telegram.sent)
        telegram.presses(1, 2)
        await settled(outside.platform)
        telegram.updates.clear()
        outside.change(sa.update(channel_listeners).values(source="telegram:43", cursor="99999"))
        ask_id = outside.ask(question="Other?")
        await until(lambda: len(telegram.sent) == 3)
        telegram.presses(3, 1)
        await settled(outside.platform)
        assert outside.row(ask_id).answer["option"] == 1
        telegram.updates.clear()
        outside.change(sa.update(channel_listeners).values(cursor="99999", heard_ms=5))
        last = outside.ask(question="The last?")
        await until(lambda: len(telegram.sent) == 5)
        telegram.presses(5, 1)
        await settled(outside.platform)
    assert outside.row(last).answer["option"] == 1


async def test_an_asker_that_waits_hears_the_answer(outside: Outside, telegram: Telegram) -> None:
    async with running_worker(outside.platform):
        asking = asyncio.create_task(
            outside.fleet.call(outside.agent, "ask_owner", question="Red?", options=["a", "b"])
        )
        await until(lambda: telegram.sent)
        telegram.presses(1, 2)
        answer = await asyncio.wait_for(asking, 20)
        assert (answer.answer, answer.option, answer.via) == ("b", 2, "telegram")
        await settled(outside.platform)
