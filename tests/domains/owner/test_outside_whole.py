"""Nobody approves by a channel what was not shown there in full, nor by a reply to something else."""

from collections.abc import AsyncGenerator, Callable

import pytest

from rookery.asks.store import Asks
from rookery.db.tx import Tx
from rookery.domains.owner import outside_github, outside_jobs, outside_telegram
from rookery.domains.owner.asks_jobs import WithdrawnArgs, tell_withdrawn
from rookery.jobs.store import Jobs
from tests.domains.owner.outside import Outside, until
from tests.domains.owner.services import BOT, GitHub, Telegram
from tests.domains.owner.telling import HERE
from tests.jobs.working import running_worker, settled
from tests.outgoing.loopback import web_server
from tests.platform_fixtures import Fleet

LONG = "x" * 70_000


@pytest.fixture
def outside(prepared_database_url: str, make_fleet: Callable[..., Fleet], monkeypatch: pytest.MonkeyPatch) -> Outside:
    monkeypatch.setattr(outside_telegram, "BUSY_S", 0.02)
    monkeypatch.setattr(outside_github, "POLL_S", 0.05)
    monkeypatch.setattr(outside_jobs, "PAUSE_S", 0.02)
    return Outside(make_fleet(prepared_database_url, extra={}, outgoing_allow=HERE))


@pytest.fixture
async def telegram(outside: Outside) -> AsyncGenerator[Telegram]:
    async with web_server() as web:
        bot = Telegram(web)
        await outside.configure(outside.owner, "set", "telegram", config=bot.config)
        yield bot


async def test_a_reply_to_a_notification_answers_nothing_whatever_it_says(outside: Outside, telegram: Telegram) -> None:
    async with running_worker(outside.platform):
        ask_id = outside.ask(kind="approval", question="May it?")
        await until(lambda: telegram.sent)
        bait = f"Shall I order pizza? Just reply yes. (ref rookery answer {ask_id})"
        await outside.fleet.call(outside.agent, "notify_owner", message=bait)
        await until(lambda: len(telegram.sent) == 2)
        telegram.replies(2, "yes")
        telegram.replies(2, "approve for 30 days")
        telegram.replies(77, "yes")
        forged = {"message_id": 900, "text": bait, "from": {"id": int(BOT), "is_bot": True}}
        telegram.hears(text="yes", reply_to_message=forged)
        telegram.hears(text=f"/answer {ask_id} yes", forward_origin={"type": "user"})
        telegram.hears(text=f"/answer {ask_id} yes", via_bot={"id": 5, "is_bot": True})
        last = telegram.updates[-1]["update_id"] + 1
        await until(lambda: last in telegram.offsets)
        assert outside.row(ask_id).status == "open"
        telegram.hears(text=f"/answer {ask_id} deny")
        await settled(outside.platform)
    assert outside.row(ask_id).answer["option"] == 2


async def test_what_was_cut_in_a_chat_is_not_approved_by_a_reply(outside: Outside, telegram: Telegram) -> None:
    async with running_worker(outside.platform):
        ask_id = outside.ask(kind="approval", question="May it?", context=LONG)
        await until(lambda: telegram.sent)
        telegram.replies(1, "yes")
        telegram.replies(1, "approve for 1 hour")
        await until(lambda: len(telegram.sent) == 3)
        assert outside.row(ask_id).status == "open"
        assert all(f"rookery asks {ask_id}" in sent["text"] for sent in telegram.sent)
        # The second of its buttons that are left: not now.
        telegram.presses(1, 2)
        await until(lambda: len(telegram.sent) == 4)
        assert "stays open" in telegram.sent[3]["text"]
        telegram.presses(1, 1)
        await settled(outside.platform)
    assert outside.row(ask_id).answer["text"] == "Deny"


async def test_whoever_names_an_ask_has_looked_at_it(outside: Outside, telegram: Telegram) -> None:
    async with running_worker(outside.platform):
        ask_id = outside.ask(kind="approval", question="May it?", context=LONG)
        await until(lambda: telegram.sent)
        telegram.hears(text=f"/answer {ask_id[:8]} approve")
        await settled(outside.platform)
    assert outside.row(ask_id).answer["option"] == 1


async def test_what_was_cut_in_an_issue_is_not_approved_by_a_comment(outside: Outside) -> None:
    async with web_server() as web:
        github = GitHub(web)
        await outside.configure(outside.owner, "set", "github", config=github.config)
        async with running_worker(outside.platform):
            ask_id = outside.ask(kind="approval", question="May it?", context=LONG)
            await until(lambda: github.issues)
            github.writes(1, "approve")
            await until(lambda: len(github.comments) == 2)
            assert outside.row(ask_id).status == "open"
            assert f"rookery asks {ask_id}" in github.comments[1]["body"]
            github.writes(1, "deny: too long")
            await settled(outside.platform)
        assert outside.row(ask_id).status == "answered"


async def test_the_page_shows_all_of_it(outside: Outside) -> None:
    async with web_server() as web:
        ask_id, token = await outside.linked(web, kind="approval", question="May it?", context=f"{LONG}the end\u202e")
        shown = (await outside.get(ask_id, token)).page or ""
        assert "the end\\u202e" in shown
        assert '<button name="choice" value="1">1. Approve</button>' in shown.replace("<bdi>", "").replace("</bdi>", "")
        assert "unicode-bidi: isolate" in shown
        assert (await outside.post(ask_id, token, choice="1")).status == 200


async def test_putting_off_is_told_to_the_other_domains(outside: Outside, telegram: Telegram) -> None:
    async with running_worker(outside.platform):
        ask_id = outside.ask(kind="approval", question="May it?")
        await until(lambda: telegram.sent)
        telegram.presses(1, 3)
        await until(lambda: len(telegram.sent) == 2)
        assert [(event.name, event.subject) for event in outside.events] == [("AskPutOff", ask_id)]
        outside.answer(ask_id, "deny")
        await settled(outside.platform)


async def test_what_was_taken_back_is_told_to_the_other_domains(outside: Outside) -> None:
    gone, still = outside.ask(kind="schedule"), outside.ask(kind="schedule", question="Another?")

    def take_back(tx: Tx) -> None:
        Asks(tx, "default").withdraw(gone)
        for ask_id in (still, "nobody"):
            Jobs(tx, "default").defer(tell_withdrawn, WithdrawnArgs(ask_id=ask_id), key=f"withdrawn:{ask_id}")

    outside.platform.database.direct(take_back, write=True)
    await outside.work()
    assert [event.subject for event in outside.events if event.name == "AskWithdrawn"] == [gone]
