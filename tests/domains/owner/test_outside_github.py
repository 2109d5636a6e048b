"""Answers in comments on GitHub: the owner's alone, each once, and the issue is told how it went."""

import json
from collections.abc import AsyncGenerator, Callable
from typing import Any

import pytest
import sqlalchemy as sa

from rookery.domains.owner import outside_github, outside_jobs
from rookery.domains.owner.outside_tables import channel_listeners
from tests.domains.owner.outside import Outside, until
from tests.domains.owner.services import GitHub, said
from tests.domains.owner.telling import HERE
from tests.jobs.working import running_worker, settled
from tests.outgoing.loopback import web_server
from tests.platform_fixtures import Fleet


@pytest.fixture
def outside(prepared_database_url: str, make_fleet: Callable[..., Fleet], monkeypatch: pytest.MonkeyPatch) -> Outside:
    monkeypatch.setattr(outside_github, "POLL_S", 0.05)
    monkeypatch.setattr(outside_jobs, "PAUSE_S", 0.02)
    return Outside(make_fleet(prepared_database_url, extra={}, outgoing_allow=HERE))


@pytest.fixture
async def github(outside: Outside) -> AsyncGenerator[GitHub]:
    """The owner's repository, set up for all agents."""
    async with web_server() as web:
        repository = GitHub(web)
        await outside.configure(outside.owner, "set", "github", config=repository.config)
        yield repository


def cursor(outside: Outside) -> dict[str, Any]:
    kept = outside.platform.database.direct(lambda tx: tx.scalar(sa.select(channel_listeners.c.cursor)))
    return json.loads(kept or '{"id": 0, "etag": null}')


async def test_what_others_write_is_no_answer(outside: Outside, github: GitHub) -> None:
    async with running_worker(outside.platform):
        ask_id = outside.ask()
        await until(lambda: github.issues)
        github.writes(1, "1", "eve")
        github.writes(1, "1", "ada-bot")
        github.writes(99, "1")
        github.writes(1, "> 1\n> 2")
        github.writes(1, "Noted.\n\n<!-- rookery -->")
        github.writes(1, "1\n\n<!-- rookery:0f3a -->")
        github.writes(1, "1\n\n> <!-- rookery:0f3a -->")
        github.writes(1, None)
        github.comments += [{"id": "x", "updated_at": "2999-01-02T00:00:00Z"}]
        await until(lambda: cursor(outside)["id"] >= 9008)
        assert outside.row(ask_id).status == "open"
        assert len(github.comments) == 9
        outside.answer(ask_id, "2")
        await settled(outside.platform)
    assert outside.row(ask_id).answered_via == "cli"


@pytest.mark.parametrize(
    ("body", "answer"),
    [
        ("1", {"text": "red", "option": 1}),
        ("> Which one?\n\nblue\n", {"text": "blue", "option": 2}),
        ("neither\nof them", {"text": "neither\nof them", "option": None}),
    ],
)
async def test_the_owners_comment_is_the_answer(outside: Outside, github: GitHub, body: str, answer: Any) -> None:
    # Comments of ours are the owner's as well where the token is.
    github.author = "ada"
    async with running_worker(outside.platform):
        ask_id = outside.ask()
        await until(lambda: github.issues)
        assert "hooks/asks" not in github.issues[0]["body"]
        assert "answer with a comment" in github.issues[0]["body"]
        github.writes(1, body)
        await settled(outside.platform)
    row = outside.row(ask_id)
    assert (row.answer, row.answered_by, row.answered_via) == (answer, "owner", "github")
    assert [comment["body"].splitlines()[1][:6] for comment in github.comments[1:]] == ["Noted."]
    assert github.issues[0]["state"] == "closed"
    assert len(outside.answers()) == 1


async def test_a_login_that_is_the_tokens_own_account_is_warned_of(outside: Outside) -> None:
    async with web_server() as web:
        github = GitHub(web)
        for author, login, warned in (("ADA", "ada", True), ("rookery-bot", "ada", False), ("ada", None, False)):
            github.author = author
            config = {key: value for key, value in {**github.config, "login": login}.items() if value is not None}
            given = {"action": "set", "channel_type": "github", "config": config}
            done = await outside.fleet.call(outside.owner, "configure_notifications", **given)
            told = (done.model_extra or {}).get("warning", "")
            assert ("own account" in told) == warned
        web.act = None
        web.says("/user", 500)
        given = {"action": "set", "channel_type": "github", "config": github.config}
        done = await outside.fleet.call(outside.owner, "configure_notifications", **given)
        assert "warning" not in (done.model_extra or {})


async def test_a_reply_of_ours_mentions_nobody(outside: Outside, github: GitHub) -> None:
    async with running_worker(outside.platform):
        outside.ask(options=["@bob <!--\n```\nsee", "blue"])
        await until(lambda: github.issues)
        github.writes(1, "1")
        await settled(outside.platform)
    lines = github.comments[1]["body"].split("\n")
    assert (set(lines[0]), lines[0]) == ({"`"}, lines[2])
    assert lines[1] == "Noted. Option 1: @bob <!-- ``` see"
    assert lines[0] not in lines[1]


async def test_of_two_comments_the_first_counts_and_the_second_is_told_so(outside: Outside, github: GitHub) -> None:
    async with running_worker(outside.platform):
        ask_id = outside.ask()
        other = outside.ask(question="Other?")
        await until(lambda: len(github.issues) == 2)
        number = next(issue["number"] for issue in github.issues if ask_id in issue["body"])
        github.writes(number, "2")
        github.writes(number, "1")
        await until(lambda: len(github.comments) == 4)
        outside.answer(other, "1")
        await settled(outside.platform)
    assert outside.row(ask_id).answer["option"] == 2
    told = " ".join(comment["body"] for comment in github.comments[2:])
    assert "Noted. Option 2: blue" in told
    assert "already answered by owner via github" in told


async def test_an_old_comment_that_was_changed_is_no_new_answer(outside: Outside, github: GitHub) -> None:
    async with running_worker(outside.platform):
        ask_id = outside.ask(kind="approval", question="May it?")
        await until(lambda: github.issues)
        first = github.writes(1, "hm, let me think")
        await until(lambda: len(github.comments) == 2)
        first["body"], first["updated_at"] = "approve", "2999-06-01T00:00:00Z"
        github.writes(1, "deny")["updated_at"] = "2999-07-01T00:00:00Z"
        await settled(outside.platform)
    assert outside.row(ask_id).answer["option"] == 2


async def test_trouble_and_limits_lose_nothing(
    outside: Outside, github: GitHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outside_github, "LONGEST_S", 0.05)
    github.faults += [
        said(502, b"oops"),
        said(200, b"<html>"),
        said(200, {"message": "x"}),
        said(403, {"message": "rate limit"}, x_ratelimit_remaining="0", x_ratelimit_reset="99999999999"),
        said(429, {}, retry_after="9999"),
        said(403, {}, retry_after="soon"),
        said(401, {}),
    ]
    async with running_worker(outside.platform):
        ask_id = outside.ask()
        await until(lambda: github.issues)
        github.writes(1, "2")
        await settled(outside.platform)
    assert github.faults == []
    assert outside.row(ask_id).answer["option"] == 2


async def test_what_has_not_changed_is_not_sent_again(outside: Outside, github: GitHub) -> None:
    async with running_worker(outside.platform):
        ask_id = outside.ask()
        await until(lambda: github.issues)
        github.writes(1, "hello", "eve")
        await until(lambda: github.unchanged > 2)
        github.writes(1, "2")
        await settled(outside.platform)
    assert outside.row(ask_id).answer["option"] == 2


async def test_many_comments_come_in_pages(outside: Outside, github: GitHub) -> None:
    async with running_worker(outside.platform):
        ask_id = outside.ask()
        await until(lambda: github.issues)
        for number in range(230):
            github.writes(1, f"{number}", "eve")
        github.writes(1, "2")
        await settled(outside.platform)
    assert outside.row(ask_id).answer["option"] == 2


async def test_without_a_login_and_in_a_repository_of_an_agent_nobody_answers(outside: Outside) -> None:
    async with web_server() as web:
        github = GitHub(web)
        config = {key: value for key, value in github.config.items() if key != "login"}
        for actor in (outside.owner, outside.agent):
            await outside.configure(actor, "set", "github", config=config)
        ask_id = outside.ask()
        await outside.work()
        github.writes(1, "1")
        await outside.work()
        assert len(github.issues) == 2
        assert [seen.method for seen in web.seen] == ["POST", "POST"]
        assert outside.row(ask_id).status == "open"
