"""Reviews: a comment unless said, an approval or a request for changes."""

from typing import Any

import pytest

from rookery.core.errors import InvalidParams, ValidationFailed
from tests.domains.github.desk import Desk
from tests.domains.github.fake_github import Repo
from tests.domains.github.fake_server import BROKEN


async def review(desk: Desk, **given: Any) -> dict[str, Any]:
    return await desk.call("github_review_pr", **{"pr_number": 1, "body": "Mend line 3.", **given})


@pytest.mark.parametrize("wrong", [{"event": "MERGE"}, {"event": ""}, {"body": ""}, {"pr_number": -1}])
async def test_what_makes_no_sense_is_refused_before_anybody_is_asked(desk: Desk, wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidParams, match=next(iter(wrong))):
        await review(desk, **wrong)
    assert desk.server.asked == []


async def test_ones_own_is_not_approved(desk: Desk) -> None:
    own = Repo("robot/shop", issues=[{"number": 1}], pulls=[{"number": 1}])
    desk.github.repos["robot/shop"] = own
    with pytest.raises(ValidationFailed, match="Can not approve your own pull request"):
        await review(desk, repo="robot/shop", event="APPROVE")


@pytest.mark.parametrize(
    ("said", "event"),
    [(None, "COMMENT"), ("COMMENT", "COMMENT"), ("APPROVE", "APPROVE"), ("request_changes", "REQUEST_CHANGES")],
)
async def test_a_review_is_posted_with_its_event(desk: Desk, said: str | None, event: str) -> None:
    number = desk.github.pull()
    told = await review(desk, **({} if said is None else {"event": said}))
    url = "https://github.example/acme/shop/pull/1#pullrequestreview-1"
    assert told == {"url": url, "repeated": False, "event": event}
    (kept,) = desk.github.shop.reviews[number]
    assert kept["event"] == event
    assert kept["body"].startswith("*Posted by default (claude-code 2.1) through Rookery.*\n<!--")
    assert kept["body"].endswith("\n\nMend line 3.")


@pytest.mark.parametrize("older", [0, 99, 100, 250])
async def test_a_lost_answer_is_looked_for_among_the_newest(desk: Desk, older: int) -> None:
    number = desk.github.pull()
    desk.github.shop.reviews[number] = [{"body": "old", "html_url": "old"}] * older
    desk.server.fail(BROKEN, method="POST", after=True)
    assert (await review(desk))["url"].endswith(f"#pullrequestreview-{older + 1}")
    assert len(desk.asked("POST")) == 1


async def test_another_event_is_another_review(desk: Desk) -> None:
    number = desk.github.pull()
    await review(desk)
    assert (await review(desk, event="APPROVE"))["repeated"] is False
    assert (await review(desk))["repeated"] is True
    assert len(desk.github.shop.reviews[number]) == 2
