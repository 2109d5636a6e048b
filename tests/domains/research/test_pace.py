"""Turns: how far apart requests are, and for how long nobody asks."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rookery.core.errors import RateLimited
from rookery.domains.research.engines.brave import ENGINE
from rookery.domains.research.pace import HOLD_S, PATIENCE_S, Pace
from rookery.domains.research.port import Window


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_who_would_wait_too_long_is_refused_and_takes_no_turn() -> None:
    clock = Clock()
    pace = Pace(clock)
    pace.answered([Window(1, 1, 0, 1)])
    assert pace.turn("Brave's rate limit", PATIENCE_S) == 1
    with pytest.raises(RateLimited):
        pace.turn("Brave's rate limit", 1.5)
    assert pace.turn("Brave's rate limit", PATIENCE_S) == 2


def test_five_at_once_that_were_refused_go_one_after_the_other() -> None:
    pace = Pace(Clock())
    for _ in range(4):
        assert pace.refused([Window(1, 1, 0, 1), Window(15_000, 2_592_000, 9, 99)], None) == 1
    assert [pace.turn("Brave's rate limit", PATIENCE_S) for _ in range(4)] == [1, 2, 3, 4]


def test_a_used_up_month_is_tried_again_after_a_minute() -> None:
    clock = Clock()
    pace = Pace(clock)
    assert pace.refused([Window(1, 1, 1, 1), Window(2000, 2_592_000, 0, 90_000)], None) == 90_000
    with pytest.raises(RateLimited, match="in 1500 min"):
        pace.turn("Brave's rate limit", PATIENCE_S)
    clock.now += HOLD_S
    assert pace.turn("Brave's rate limit", PATIENCE_S) == 0
    pace.answered([])
    clock.now += 1
    assert pace.turn("Brave's rate limit", PATIENCE_S) == 0


@settings(deadline=None)
@given(st.lists(st.tuples(*[st.integers(0, 10**6)] * 4)), st.none() | st.floats(0, 10**6))
def test_no_limit_makes_anybody_wait_past_the_hold(told: list[tuple[int, int, int, int]], after: float | None) -> None:
    pace = Pace(Clock())
    windows = [Window(*each) for each in told]
    pace.answered(windows)
    assert pace.refused(windows, after) >= 0
    assert 0 <= pace.turn("Brave's rate limit", 10**9) <= HOLD_S


@settings(deadline=None)
@given(st.text(), st.text(), st.text())
def test_headers_of_any_kind_are_read_or_left(policy: str, remaining: str, reset: str) -> None:
    headers = {"x-ratelimit-policy": policy, "x-ratelimit-remaining": remaining, "x-ratelimit-reset": reset}
    assert all(isinstance(window, Window) for window in ENGINE.windows(headers))


def test_the_headers_that_brave_documents_are_understood() -> None:
    headers = {
        "x-ratelimit-policy": "1;w=1, 15000;w=2592000",
        "x-ratelimit-remaining": "1, 1000",
        "x-ratelimit-reset": "1, 1419704",
    }
    assert ENGINE.windows(headers) == [Window(1, 1, 1, 1), Window(15_000, 2_592_000, 1000, 1_419_704)]
    assert ENGINE.windows({}) == []
