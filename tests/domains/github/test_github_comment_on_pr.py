"""Comments on pull requests."""

from typing import Any

import pytest

from rookery.core.errors import InvalidParams, NotFound, PermissionDenied
from tests.domains.github.desk import Desk
from tests.domains.github.fake_server import BROKEN, Said


async def comment(desk: Desk, **given: Any) -> dict[str, Any]:
    return await desk.call("github_comment_on_pr", **{"pr_number": 1, "body": "Looks fine.", **given})


@pytest.mark.parametrize("wrong", [{"body": ""}, {"body": " \n"}, {"body": "x" * 65_001}, {"pr_number": 0}])
async def test_what_makes_no_sense_is_refused_before_anybody_is_asked(desk: Desk, wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidParams, match=next(iter(wrong))):
        await comment(desk, **wrong)
    assert desk.server.asked == []


async def test_what_is_not_there_or_locked_cannot_be_commented_on(desk: Desk) -> None:
    with pytest.raises(NotFound, match="pull request 1 of acme/shop"):
        await comment(desk)
    desk.github.pull()
    desk.server.fail(Said(403, {"message": "Unable to create comment because issue is locked."}), method="POST")
    with pytest.raises(PermissionDenied, match="issue is locked"):
        await comment(desk)


async def test_a_comment_is_posted_and_signed(desk: Desk) -> None:
    number = desk.github.pull()
    told = await comment(desk)
    assert told == {"url": "https://github.example/acme/shop/pull/1#issuecomment-1", "repeated": False}
    (kept,) = desk.github.shop.comments[number]
    assert kept["body"].startswith("*Posted by default (claude-code 2.1) through Rookery.*\n<!--")
    assert kept["body"].endswith("\n\nLooks fine.")


async def test_a_lost_answer_is_looked_for_among_the_newest(desk: Desk) -> None:
    number = desk.github.pull()
    old = {"created_at": "2020-01-01T00:00:00Z", "body": "old", "html_url": "old"}
    desk.github.shop.comments[number] = [old] * 250
    desk.server.fail(BROKEN, method="POST", after=True)
    assert (await comment(desk))["url"].endswith("#issuecomment-251")
    (asked,) = desk.asked("GET")
    assert asked.query["since"] > "2020-01-01T00:00:00Z"
    assert len(desk.asked("POST")) == 1
