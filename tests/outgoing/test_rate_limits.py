"""What services say about their limits, whatever they say."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rookery.outgoing.rate_limits import LONGEST_S, told_wait_s, used_up, whole

DATE = "Mon, 16 Nov 2026 10:00:00 GMT"


@pytest.mark.parametrize("said", ["", "soon", "-1", "1.5", "9" * 13, "٣", "Mon, 99 Nov 2026 10:00:00 GMT", "1 "])
def test_what_is_neither_a_number_nor_a_date_says_nothing(said: str) -> None:
    assert told_wait_s({"retry-after": said}) is None


def test_without_the_header_nothing_is_said() -> None:
    assert told_wait_s({}) is None


@pytest.mark.parametrize(
    ("said", "seconds"),
    [
        ("0", 0.0),
        ("30", 30.0),
        ("Mon, 16 Nov 2026 10:00:07 GMT", 7.0),
        ("Mon, 16 Nov 2026 09:00:00 GMT", 0.0),
        ("Mon, 16 Nov 2026 11:00:07 +0100", 7.0),
    ],
)
def test_a_wait_is_a_number_or_a_date_by_their_own_clock(said: str, seconds: float) -> None:
    assert told_wait_s({"retry-after": said, "date": DATE}) == seconds


@given(st.text(), st.text())
def test_headers_of_any_kind_are_read_or_left(said: str, date: str) -> None:
    wait_s = told_wait_s({"retry-after": said, "date": date})
    assert wait_s is None or wait_s >= 0


@pytest.mark.parametrize(
    ("wait_s", "left"),
    [(0.4, "0 s"), (45.0, "45 s"), (89.0, "89 s"), (120.0, "2 min"), (1e12, f"{LONGEST_S / 60:.0f} min")],
)
def test_who_would_wait_for_long_is_told_until_when(wait_s: float, left: str) -> None:
    error = used_up("Brave's rate limit", wait_s)
    assert error.message.startswith("Brave's rate limit is used up until 20")
    assert error.message.endswith(f" UTC (in {left})")
    assert error.retryable


def test_only_a_number_that_a_clock_can_show_is_a_number() -> None:
    assert [whole(text) for text in ("0", "1794823200", "x", None, "9" * 13)] == [0, 1_794_823_200, None, None, None]
