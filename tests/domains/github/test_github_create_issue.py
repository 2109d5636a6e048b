"""Issues: signed, and posted once, however often answers get lost and agents ask again."""

import asyncio
import re
from typing import Any

import pytest
import sqlalchemy as sa

from rookery.core.errors import (
    Conflict,
    DatabaseError,
    InvalidParams,
    NotFound,
    PermissionDenied,
    RateLimited,
    ServiceUnavailable,
    TimedOut,
    ValidationFailed,
)
from rookery.domains.github import client, posting
from rookery.domains.github.answer_store import Answers
from rookery.domains.github.tables import posts
from tests.domains.github.desk import Desk
from tests.domains.github.fake_server import BROKEN, SILENT, Said

FAILED = Said(503, b"<html>no server is available</html>", {"Content-Type": "text/html"})
UNTOLD = [
    BROKEN, SILENT, Said(502), Said(504), Said(201, b"<html>hm</html>"), Said(201, {}), Said(201, flood=9_000_000),
]  # fmt: skip
"""Nobody can know from these whether it arrived."""
DOUBT = "call again with the same input"


async def create(desk: Desk, **given: Any) -> dict[str, Any]:
    return await desk.call("github_create_issue", **{"title": "login fails", **given})


@pytest.mark.parametrize(
    "wrong",
    [
        {"title": ""},
        {"title": " \n"},
        {"title": "x" * 257},
        {"body": "x" * 65_001},
        {"labels": ["x"] * 21},
        {"model": "x" * 51},
        {"assignee": "ada"},
    ],
)
async def test_what_github_would_not_take_is_refused_before_it_is_asked(desk: Desk, wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidParams, match=next(iter(wrong))):
        await create(desk, **wrong)
    assert desk.server.asked == []


@pytest.mark.parametrize(
    ("said", "error", "told"),
    [
        (Said(404, {"message": "Not Found"}), NotFound, "acme/shop"),
        (Said(410, {"message": "Issues are disabled for this repo"}), Conflict, "Issues are disabled"),
        (
            Said(422, {"message": "Validation Failed", "errors": [{"field": "labels", "code": "invalid"}]}),
            ValidationFailed,
            "Validation Failed; labels invalid",
        ),
        (Said(403, {"message": "Repository was archived so is read-only."}), PermissionDenied, "archived"),
        (Said(451, {"message": "Unavailable"}), PermissionDenied, "Unavailable"),
    ],
)
async def test_a_refusal_is_told_and_is_not_held_against_the_next_try(
    desk: Desk, said: Said, error: type[Exception], told: str
) -> None:
    desk.server.fail(said, method="POST")
    with pytest.raises(error, match=told):
        await create(desk)
    assert (len(desk.asked("POST")), desk.count("posts")) == (1, 0)
    assert (await create(desk))["repeated"] is False


async def test_an_issue_is_posted_and_signed_by_agent_and_model(desk: Desk) -> None:
    told = await create(desk, body="It says no.", labels=["bug"], model="claude-sonnet-5")
    assert told == {"number": 1, "url": "https://github.example/acme/shop/issues/1", "repeated": False}
    (issue,) = desk.github.shop.issues
    assert issue["labels"] == [{"name": "bug"}]
    signed, marker, nothing, text = issue["body"].split("\n")
    assert signed == "*Posted by default (claude-sonnet-5) through Rookery.*"
    assert marker.startswith("<!-- rookery:")
    assert (nothing, text) == ("", "It says no.")
    (asked,) = desk.asked("POST")
    assert asked.headers["authorization"] == "Bearer ghp_s3cr3t"


async def test_the_same_again_within_minutes_is_the_same_issue(desk: Desk) -> None:
    first = await create(desk, model="one")
    again = await create(desk, model="another")
    assert again == {**first, "repeated": True}
    assert (await create(desk, title="search fails"))["number"] == 2
    assert len(desk.github.shop.issues) == 2


async def test_another_agent_and_another_tenant_post_their_own(desk: Desk) -> None:
    await create(desk)
    await desk.fleet.call(desk.fleet.owner, "create_agent", name="ada")
    for actor in (desk.fleet.actor(agent="ada"), desk.stranger):
        told = await desk.call("github_create_issue", actor, title="login fails")
        assert told["repeated"] is False
    assert len(desk.github.shop.issues) == 3


async def test_the_same_after_a_while_is_meant_as_another(desk: Desk) -> None:
    await create(desk)
    desk.change(sa.update(posts).values(done_ms=posts.c.done_ms - 600_001))
    assert (await create(desk))["number"] == 2
    markers = {issue["body"].split("\n")[1] for issue in desk.github.shop.issues}
    assert len(markers) == 2


@pytest.mark.parametrize("said", [FAILED, *UNTOLD])
async def test_a_lost_answer_is_looked_for_and_nothing_is_posted_twice(
    desk: Desk, said: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "REQUEST_S", 1.0)
    desk.server.fail(said, method="POST", after=True)
    assert await create(desk) == {
        "number": 1,
        "url": "https://github.example/acme/shop/issues/1",
        "repeated": False,
    }
    assert (len(desk.asked("POST")), len(desk.github.shop.issues)) == (1, 1)


async def test_what_failed_over_there_is_posted_again_once_it_is_known_to_be_absent(desk: Desk) -> None:
    desk.server.fail(FAILED, method="POST")
    assert (await create(desk))["number"] == 1
    kinds = [(asked.method, asked.query.get("state")) for asked in desk.server.asked]
    assert kinds == [("POST", None), ("GET", "all"), ("GET", "all"), ("POST", None)]


@pytest.mark.parametrize("said", UNTOLD)
async def test_what_may_still_arrive_is_not_posted_again_by_the_same_call(
    desk: Desk, said: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "REQUEST_S", 1.0)
    desk.server.fail(said, method="POST")
    with pytest.raises((ServiceUnavailable, TimedOut, ValidationFailed)) as caught:
        await create(desk)
    assert DOUBT in (caught.value.hint or "")
    assert len(desk.asked("POST")) == 1
    assert (await create(desk))["number"] == 1


async def looked(desk: Desk, times: int) -> None:
    while len(desk.asked("GET")) < times:
        await asyncio.sleep(0.01)


async def test_what_arrives_after_the_first_look_is_found_by_the_second(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(posting, "LOOKS_S", (0.02, 1.0))
    desk.server.fail(BROKEN, method="POST")
    creating = asyncio.ensure_future(create(desk))
    await looked(desk, 1)
    desk.github.answer(desk.asked("POST")[0])
    assert (await creating)["number"] == 1
    assert (len(desk.asked("POST")), len(desk.github.shop.issues)) == (1, 1)


@pytest.fixture
def unsettled(monkeypatch: pytest.MonkeyPatch) -> None:
    """What got no answer may arrive for as long as in earnest."""
    monkeypatch.setattr(posting, "SETTLE_S", 120.0)
    monkeypatch.setattr(client, "REQUEST_S", 0.3)


def as_if_later(desk: Desk, seconds: int) -> None:
    desk.change(sa.update(posts).values(until_ms=posts.c.until_ms - seconds * 1000))


@pytest.mark.usefixtures("unsettled")
async def test_what_github_finishes_long_after_our_time_out_is_found_and_not_doubled(desk: Desk) -> None:
    desk.server.fail(SILENT, method="POST")
    with pytest.raises(TimedOut) as caught:
        await create(desk)
    assert DOUBT in (caught.value.hint or "")
    with pytest.raises(Conflict, match="has not shown up on GitHub, and still may") as waiting:
        await create(desk)
    assert re.search(r"after \d\d:\d\d:\d\d UTC \(in (120|11\d) s\)", waiting.value.hint or "")
    desk.github.answer(desk.asked("POST")[0])
    assert (await create(desk))["repeated"] is True
    assert (len(desk.asked("POST")), len(desk.github.shop.issues)) == (1, 1)


@pytest.mark.usefixtures("unsettled")
async def test_what_has_not_shown_up_in_two_minutes_is_posted_however_often_it_was_looked_for(desk: Desk) -> None:
    desk.server.fail(BROKEN, method="POST")
    with pytest.raises(ServiceUnavailable):
        await create(desk)
    for _ in range(2):
        as_if_later(desk, 50)
        with pytest.raises(Conflict, match="still may"):
            await create(desk)
    as_if_later(desk, 21)
    assert (await create(desk))["repeated"] is False
    assert (len(desk.asked("POST")), len(desk.github.shop.issues)) == (2, 1)


@pytest.mark.usefixtures("unsettled")
async def test_what_github_itself_says_has_failed_can_be_posted_by_the_next_call(desk: Desk) -> None:
    desk.server.fail(FAILED, method="POST", times=2)
    with pytest.raises(ServiceUnavailable) as caught:
        await create(desk)
    assert DOUBT in (caught.value.hint or "")
    assert (await create(desk))["repeated"] is False
    assert len(desk.github.shop.issues) == 1


async def test_what_could_not_be_looked_for_is_not_posted_again_and_the_first_error_is_told(desk: Desk) -> None:
    desk.server.fail(Said(500, {"message": "boom"}), method="POST", after=True)
    desk.server.fail(Said(404, {"message": "Not Found"}), times=2)
    with pytest.raises(ServiceUnavailable, match="answered 500 for acme/shop: boom") as caught:
        await create(desk)
    assert DOUBT in (caught.value.hint or "")
    assert (await create(desk))["repeated"] is True
    assert (len(desk.asked("POST")), len(desk.github.shop.issues)) == (1, 1)


@pytest.mark.usefixtures("unsettled")
async def test_a_refusal_after_a_doubtful_try_leaves_the_doubt(desk: Desk) -> None:
    desk.server.fail(BROKEN, method="POST")
    with pytest.raises(ServiceUnavailable):
        await create(desk)
    as_if_later(desk, 121)
    desk.server.fail(Said(403, {"message": "Repository was archived"}), method="POST")
    with pytest.raises(PermissionDenied, match="archived"):
        await create(desk)
    desk.github.answer(desk.asked("POST")[0])
    assert (await create(desk))["repeated"] is True
    assert (len(desk.asked("POST")), len(desk.github.shop.issues)) == (2, 1)


async def test_a_limit_that_cannot_be_noted_does_not_undo_what_was_posted(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*given: object) -> None:
        raise DatabaseError("the disk is full")

    monkeypatch.setattr(Answers, "hold_back", full)
    desk.github.remaining = 1
    assert (await create(desk))["number"] == 1
    assert (await create(desk))["repeated"] is True
    assert len(desk.github.shop.issues) == 1


async def test_who_comes_back_after_a_doubtful_failure_finds_what_was_posted(desk: Desk) -> None:
    desk.server.fail(BROKEN, method="POST", after=True)
    desk.server.fail(Said(503, {"message": "down"}), part="/issues", times=6)
    with pytest.raises(ServiceUnavailable) as caught:
        await create(desk)
    assert DOUBT in (caught.value.hint or "")
    told = await create(desk)
    assert (told["number"], told["repeated"]) == (1, True)
    assert (len(desk.asked("POST")), len(desk.github.shop.issues)) == (1, 1)


async def test_who_comes_back_after_a_doubtful_failure_posts_what_is_not_there(desk: Desk) -> None:
    desk.server.fail(FAILED, method="POST", times=2)
    with pytest.raises(ServiceUnavailable):
        await create(desk)
    told = await create(desk)
    assert (told["number"], told["repeated"]) == (1, False)


async def test_a_limit_is_no_doubt(desk: Desk) -> None:
    said = Said(403, {"message": "You have exceeded a secondary rate limit"}, {"Retry-After": "3600"})
    desk.server.fail(said, method="POST")
    with pytest.raises(RateLimited):
        await create(desk)
    assert desk.count("posts") == 0


async def test_of_two_at_once_one_posts_and_the_other_is_told_to_wait(desk: Desk) -> None:
    both = await asyncio.gather(create(desk), create(desk), return_exceptions=True)
    assert len(desk.github.shop.issues) == 1
    told = [each for each in both if isinstance(each, dict)]
    assert all(isinstance(each, Conflict) for each in both if not isinstance(each, dict))
    assert {each["number"] for each in told} == {1}


async def test_a_call_that_died_leaves_its_post_to_the_next_one_when_its_time_is_over(desk: Desk) -> None:
    desk.server.fail(Said(how="silent"), method="POST", after=True)
    dying = asyncio.ensure_future(create(desk))
    while not desk.github.shop.issues:
        await asyncio.sleep(0.01)
    dying.cancel()
    with pytest.raises(asyncio.CancelledError):
        await dying
    with pytest.raises(Conflict, match="by another call right now"):
        await create(desk)
    desk.change(sa.update(posts).values(until_ms=0))
    told = await create(desk)
    assert (told["repeated"], len(desk.github.shop.issues)) == (True, 1)


async def test_the_issue_is_found_among_hundreds_of_newer_ones(desk: Desk) -> None:
    desk.server.fail(BROKEN, method="POST", after=True)
    desk.server.fail(Said(503), part="/issues", times=6)
    with pytest.raises(ServiceUnavailable):
        await create(desk)
    for _ in range(220):
        desk.github.issue()
    assert (await create(desk))["number"] == 1


async def test_an_issue_is_told_to_the_other_domains_once(desk: Desk) -> None:
    heard: list[Any] = []
    desk.fleet.platform.events.subscribe(heard.append)
    for _ in range(2):
        await create(desk)
    (event,) = [each for each in heard if each.name == "GithubPosted"]
    assert (event.subject, event.payload) == ("https://github.example/acme/shop/issues/1", {"kind": "issue"})


async def test_an_issue_that_was_found_again_is_told_to_the_other_domains_as_well(desk: Desk) -> None:
    heard: list[Any] = []
    desk.fleet.platform.events.subscribe(heard.append)
    desk.server.fail(BROKEN, method="POST", after=True)
    desk.server.fail(Said(503), part="/issues", times=6)
    with pytest.raises(ServiceUnavailable):
        await create(desk)
    for _ in range(2):
        assert (await create(desk))["repeated"] is True
    assert [each.name for each in heard].count("GithubPosted") == 1
