"""GitHub's limits: short ones are waited for, long ones are told with the time, and no server of ours ignores them."""

import re
import time
from itertools import pairwise
from typing import Any

import pytest
import sqlalchemy as sa

from rookery.core.errors import RateLimited
from rookery.domains.github.limits import Limit, limit_reached, limit_told
from rookery.domains.github.tables import limits
from rookery.outgoing.client import Answer
from tests.domains.github.desk import Desk
from tests.domains.github.fake_server import Said

SECONDARY = {"message": "You have exceeded a secondary rate limit. Please wait a few minutes before you try again."}


async def test_a_used_up_limit_is_told_with_the_time_and_asked_of_nobody_again(desk: Desk) -> None:
    desk.github.remaining = 0
    for _ in range(2):
        with pytest.raises(RateLimited, match=r"primary rate limit is used up until 20\d\d-.* UTC \(in (60|59) min\)"):
            await desk.call("github_repo_info")
    assert len(desk.server.asked) == 1
    other = desk.with_settings()
    with pytest.raises(RateLimited):
        await other.call("github_star_repo")
    assert len(desk.server.asked) == 1


async def test_the_last_request_of_the_limit_is_known_to_be_the_last(desk: Desk) -> None:
    desk.github.remaining = 1
    assert (await desk.call("github_repo_info"))["name"] == "shop"
    with pytest.raises(RateLimited):
        await desk.call("github_repo_info")
    assert len(desk.server.asked) == 1


async def test_another_credential_has_limits_of_its_own(desk: Desk) -> None:
    desk.github.tokens.add("ghp_other")
    desk.server.fail(Said(429, SECONDARY, {"Retry-After": "3600"}))
    with pytest.raises(RateLimited, match="secondary"):
        await desk.call("github_repo_info")
    assert (await desk.with_settings(github_token="ghp_other").call("github_repo_info"))["name"] == "shop"


@pytest.mark.parametrize(
    "said",
    [
        Said(403, SECONDARY, {"Retry-After": "1"}),
        Said(429, {"message": "Too many"}, {"Retry-After": "1"}),
        Said(403, {"message": "API rate limit exceeded"}, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "soon"}),
    ],
)
async def test_a_short_limit_is_sat_out_and_shown(desk: Desk, said: Said) -> None:
    if said.headers.get("X-RateLimit-Reset"):
        said = Said(said.status, said.body, {**said.headers, "X-RateLimit-Reset": str(int(time.time()) + 2)})
    desk.server.fail(said)
    begun = time.monotonic()
    assert (await desk.call("github_repo_info"))["name"] == "shop"
    assert 0.9 < time.monotonic() - begun < 10
    told = desk.client.shown[0]["message"]
    assert re.fullmatch(r"waiting for GitHub's (primary|secondary) rate limit: \d s left", told)


async def test_progress_only_ever_grows_also_over_several_waits(desk: Desk) -> None:
    desk.server.fail(Said(429, SECONDARY, {"Retry-After": "1"}), times=2)
    assert (await desk.call("github_repo_info"))["name"] == "shop"
    steps = [shown["progress"] for shown in desk.client.shown]
    assert len(steps) >= 2
    assert all(before < after for before, after in pairwise(steps))


async def test_a_change_that_a_limit_refused_is_made_afterwards_once(desk: Desk) -> None:
    desk.server.fail(Said(403, SECONDARY, {"Retry-After": "1"}), method="POST")
    assert (await desk.call("github_create_issue", title="login fails"))["number"] == 1
    assert len(desk.github.shop.issues) == 1


async def test_a_limit_that_never_ends_is_not_waited_for_for_ever(desk: Desk) -> None:
    desk.server.fail(Said(429, SECONDARY, {"Retry-After": "0"}), times=9)
    with pytest.raises(RateLimited):
        await desk.call("github_repo_info")
    assert len(desk.server.asked) == 3


async def test_who_comes_while_others_wait_waits_as_well(desk: Desk) -> None:
    desk.server.fail(Said(429, SECONDARY, {"Retry-After": "3600"}))
    with pytest.raises(RateLimited):
        await desk.call("github_repo_info")
    soon = int(time.time() * 1000) + 1200
    desk.change(sa.update(limits).values(until_ms=soon))
    assert (await desk.call("github_repo_info"))["name"] == "shop"
    assert time.time() * 1000 >= soon - 50
    assert desk.client.shown


async def test_another_tenant_is_not_held_back_by_what_it_cannot_see(desk: Desk) -> None:
    desk.server.fail(Said(429, SECONDARY, {"Retry-After": "3600"}))
    with pytest.raises(RateLimited):
        await desk.call("github_repo_info")
    assert (await desk.call("github_repo_info", desk.stranger))["name"] == "shop"


def answer(status: int, said: str = "{}", **headers: str) -> Answer:
    return Answer(status, {name.replace("_", "-"): value for name, value in headers.items()}, said.encode())


DATE = "Mon, 16 Nov 2026 10:00:00 GMT"
AT = 1_794_823_200
SPENT = {"x_ratelimit_remaining": "0", "date": DATE}


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (answer(200), None),
        (answer(403), None),
        (answer(404, retry_after="5"), None),
        (answer(403, retry_after="5"), Limit("secondary", 5.1)),
        (answer(403, retry_after="Mon, 16 Nov 2026 10:00:07 GMT", date=DATE), Limit("secondary", 7.1)),
        (answer(403, retry_after="soon"), Limit("secondary", 60.0)),
        (answer(429), Limit("secondary", 60.0)),
        (answer(403, '{"message":"Abuse detection mechanism"}'), Limit("secondary", 60.0)),
        (answer(403, x_ratelimit_reset=str(AT + 30), **SPENT), Limit("primary", 30.1)),
        (answer(403, x_ratelimit_reset=str(AT - 30), **SPENT), Limit("primary", 0.1)),
        (answer(403, x_ratelimit_reset="never", **SPENT), Limit("primary", 60.0)),
        (answer(429, x_ratelimit_reset="9" * 12, **SPENT), Limit("primary", 86400.0)),
        (answer(403, retry_after="9" * 50), Limit("secondary", 60.0)),
    ],
)
def test_limits_are_read_from_their_headers_by_githubs_own_clock(given: Answer, told: Any) -> None:
    assert limit_told(given) == told


def test_a_limit_can_be_used_up_by_an_answer_that_is_good() -> None:
    assert limit_reached(answer(200, x_ratelimit_reset=str(AT + 30), **SPENT)) == Limit("primary", 30.1)
    assert limit_reached(answer(200, x_ratelimit_remaining="1", x_ratelimit_reset=str(AT + 30))) is None
    assert limit_reached(answer(200, **SPENT)) is None
