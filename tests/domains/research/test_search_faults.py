"""A search engine that refuses, breaks, floods or leads astray: a clear error each, and no word of the key."""

import gzip
import time
import tracemalloc
from typing import Any

import pytest

from rookery.core.errors import (
    ConfigurationError,
    RateLimited,
    RookeryError,
    ServiceUnavailable,
    TimedOut,
    ValidationFailed,
)
from rookery.domains.research.searching import MAX_ANSWER
from tests.domains.research.desk import Desk
from tests.domains.research.fake_brave import FLOOD, KEY, Said, fault

SEARCH = "web_search"
HTML = {"Content-Type": "text/html"}


async def failure(desk: Desk, kind: type[RookeryError], **arguments: Any) -> RookeryError:
    with pytest.raises(kind) as caught:
        await desk.call(SEARCH, **{"query": "rooks", **arguments})
    assert KEY not in f"{caught.value.message} {caught.value.hint}"
    assert "Brave" in caught.value.message
    return caught.value


async def test_a_refused_key_is_the_owners_to_change(desk: Desk) -> None:
    wrong = desk.with_settings(search_api_key="BSA-wrong")
    error = await failure(wrong, ConfigurationError)
    assert "HTTP 422: SUBSCRIPTION_TOKEN_INVALID" in error.message
    assert "BSA-wrong" not in error.message
    assert "search_api_key" in (error.hint or "")
    desk.brave.fail(Said(401, fault(401, "UNAUTHORIZED", "no")))
    await failure(desk, ConfigurationError)


async def test_a_refused_request_says_why(desk: Desk) -> None:
    desk.brave.fail(Said(422, fault(422, "VALIDATION", "<b>Unable</b> to validate\n## now")))
    error = await failure(desk, ValidationFailed)
    assert "HTTP 422: VALIDATION: Unable to validate ## now" in error.message
    desk.brave.fail(Said(403, b"<html>forbidden</html>", HTML))
    assert "HTTP 403" in (await failure(desk, ValidationFailed)).message
    assert len(desk.brave.asked) == 2, "nothing was asked twice"


@pytest.mark.parametrize("fails", [Said(503, b"<h1>busy</h1>", HTML), Said(how="broken")], ids=["503", "broken"])
async def test_a_passing_fault_is_tried_again_once(desk: Desk, fails: Said) -> None:
    desk.brave.find("Rooks")
    desk.brave.fail(fails)
    assert len((await desk.call(SEARCH, query="rooks"))["results"]) == 1
    desk.brave.fail(fails, times=2)
    error = await failure(desk, ServiceUnavailable)
    assert error.retryable
    assert len(desk.brave.asked) == 4


async def test_a_lasting_fault_tells_its_status(desk: Desk) -> None:
    desk.brave.fail(Said(500, b"oops"), times=2)
    assert "HTTP 500" in (await failure(desk, ServiceUnavailable)).message


async def test_a_silent_engine_is_waited_for_no_longer_than_the_settings_say(desk: Desk) -> None:
    hasty = desk.with_settings(search_timeout_s=0.3)
    desk.brave.fail(Said(how="silent"))
    begun = time.monotonic()
    assert "0.3 s" in (await failure(hasty, TimedOut)).message
    assert time.monotonic() - begun < 15
    assert len(desk.brave.asked) == 1


@pytest.mark.parametrize("body", [b"<html>hello</html>", b"", b"[]", b'"web"', b'{"web": 7}', b"{}", b"[" * 100_000])
async def test_what_is_no_answer_of_brave_is_called_so(desk: Desk, body: bytes) -> None:
    desk.brave.fail(Said(200, body, HTML))
    error = await failure(desk, ServiceUnavailable)
    assert "something else (text/html)" in error.message
    assert "search_url" in (error.hint or "")


async def test_results_of_any_shape_break_nothing(desk: Desk) -> None:
    results: list[Any] = [None, 7, [], {}, {"url": {}}, {"url": "https://a.example", "title": 3, "description": None}]
    desk.brave.fail(Said(200, {"web": {"results": results}}))
    found = (await desk.call(SEARCH, query="rooks"))["results"]
    assert found == [{"title": "https://a.example", "url": "https://a.example", "description": "", "age": None}]


@pytest.mark.parametrize("packing", ["identity", "gzip"])
async def test_an_answer_of_half_a_gigabyte_is_cut_off_and_never_held(desk: Desk, packing: str) -> None:
    await desk.call(SEARCH, query="rooks")
    desk.brave.fail(Said(200, b"{", {"Content-Encoding": packing}, how="flood"))
    tracemalloc.start()
    try:
        assert f"more than {MAX_ANSWER} bytes" in (await failure(desk, ValidationFailed)).message
        assert tracemalloc.get_traced_memory()[1] < 8 * MAX_ANSWER
    finally:
        tracemalloc.stop()
    assert desk.brave.flooded < FLOOD / 4, "we hung up"


@pytest.mark.parametrize(
    "body",
    [gzip.compress(b" " * 50_000_000), gzip.compress(b'{"web":')[:-9], b"no gzip at all", b""],
    ids=["bomb", "cut", "none", "empty"],
)
async def test_packed_answers_unfold_only_so_far(desk: Desk, body: bytes) -> None:
    desk.brave.fail(Said(200, body, {"Content-Encoding": "gzip"}))
    assert "broken, or has more than" in (await failure(desk, ServiceUnavailable)).message


async def test_a_packing_that_nobody_asked_for_is_refused(desk: Desk) -> None:
    desk.brave.fail(Said(200, b"x", {"Content-Encoding": "br"}))
    await failure(desk, ServiceUnavailable)


@pytest.mark.parametrize("where", ["http://169.254.169.254/latest", "https://evil.example/", "/res/v1/web/elsewhere"])
async def test_no_redirect_is_followed(desk: Desk, where: str) -> None:
    desk.brave.fail(Said(302, b"", {"Location": where}))
    assert "not followed" in (await failure(desk, ValidationFailed)).message
    assert len(desk.brave.asked) == 1


async def test_a_limit_of_a_second_is_kept_and_not_run_into(desk: Desk) -> None:
    desk.brave.find("Rooks")
    desk.brave.per_second = 1
    begun = time.monotonic()
    for _ in range(2):
        assert (await desk.call(SEARCH, query="rooks"))["results"]
    assert time.monotonic() - begun >= 0.9
    assert len(desk.brave.asked) == 2, "the second waited instead of being refused"


async def test_who_does_not_know_the_limit_yet_learns_it_from_the_refusal_and_is_seen_waiting(desk: Desk) -> None:
    desk.brave.find("Rooks")
    refused = {"X-RateLimit-Policy": "1;w=1", "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1"}
    desk.brave.fail(Said(429, fault(429, "RATE_LIMITED", "slower"), refused))
    desk.brave.fail(Said(429, b"busy", {"Retry-After": "0"}))
    assert (await desk.call(SEARCH, query="rooks"))["results"]
    assert len(desk.brave.asked) == 3
    assert "waiting for Brave's rate limit: 1 s left" in [each["message"] for each in desk.client.progress]


@pytest.mark.parametrize("after", ["9" * 12, "Fri, 31 Dec 9999 23:59:59 GMT"])
async def test_an_engine_that_wants_to_be_left_alone_for_ages_is_told_so(desk: Desk, after: str) -> None:
    desk.brave.fail(Said(429, b"", {"Retry-After": after}))
    assert "(in 527040 min)" in (await failure(desk, RateLimited)).message
    await failure(desk, RateLimited)
    assert len(desk.brave.asked) == 1


async def test_the_longer_of_two_waits_counts(desk: Desk) -> None:
    refused = {"X-RateLimit-Policy": "1;w=1", "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1"}
    desk.brave.fail(Said(429, b"", {**refused, "Retry-After": "45"}))
    assert "(in 45 s)" in (await failure(desk, RateLimited)).message


async def test_a_quota_that_is_used_up_is_told_with_the_time_and_not_asked_again(desk: Desk) -> None:
    desk.brave.quota = 0
    for _ in range(3):
        error = await failure(desk, RateLimited)
        assert " UTC (in 236" in error.message
    assert len(desk.brave.asked) == 1


async def test_an_engine_that_always_refuses_is_left_alone_at_last(desk: Desk) -> None:
    desk.brave.fail(Said(429, b"", {"Retry-After": "0"}), times=20)
    await failure(desk, RateLimited)
    assert len(desk.brave.asked) == 6


async def test_a_plan_that_is_paid_by_use_has_no_quota_to_use_up(desk: Desk) -> None:
    desk.brave.find("Rooks")
    paid = {"X-RateLimit-Policy": "50;w=1, 0;w=2592000", "X-RateLimit-Remaining": "49, 0", "X-RateLimit-Reset": "1, 9"}
    for _ in range(3):
        desk.brave.fail(Said(200, {"type": "search"}, paid))
        await desk.call(SEARCH, query="rooks")
    assert len(desk.brave.asked) == 3
