"""Bars on an axis of time."""

from itertools import pairwise
from typing import Any

import pytest

from rookery.web.waterfall import BREAK, WIDTH, clock, precise, waterfall

HOUR_MS = 3_600_000


def step(number: int, at_ms: int, end_ms: int | None, kind: str = "tool") -> dict[str, Any]:
    return {"number": number, "kind": kind, "at_ms": at_ms, "end_ms": end_ms}


def test_without_steps_there_is_an_empty_axis() -> None:
    drawn = waterfall([], None, None)
    assert (list(drawn.bars), drawn.end_ms - drawn.start_ms) == ([], 1)


def test_a_bar_stands_where_its_time_is() -> None:
    first, second = waterfall([step(1, 1000, 2000), step(2, 2000, 5000)], 1000, 5000).bars
    assert (first.x, first.width) == (0, WIDTH / 4)
    assert (second.x, second.width) == (WIDTH / 4, WIDTH * 3 / 4)
    assert (second.since, second.took) == ("1 s", "3.0 s")


def test_what_takes_no_time_is_still_seen_and_inside_the_axis() -> None:
    bars = waterfall([step(1, 0, 0, "text"), step(2, 9000, 9000, "text")], 0, 9000).bars
    assert all(bar.width >= 3 and bar.x + bar.width <= WIDTH for bar in bars)


def test_a_step_under_way_reaches_to_now() -> None:
    (bar,) = waterfall([step(1, 500, None)], 0, 1000).bars
    assert (bar.open, bar.x, bar.width, bar.took) == (True, WIDTH / 2, WIDTH / 2, "500 ms")


def test_a_long_wait_for_a_person_is_drawn_short_and_marked() -> None:
    steps = [step(1, 0, 4000), step(2, 1000, 1000 + HOUR_MS, "ask"), step(3, 1000 + HOUR_MS, 6000 + HOUR_MS)]
    steps[0]["end_ms"] = 1500 + HOUR_MS
    drawn = waterfall(steps, 0, 6000 + HOUR_MS)
    (idle,) = drawn.idle
    assert (idle.width, idle.words) == (BREAK, "1 h")
    assert drawn.bars[1].waits
    assert drawn.bars[2].width == pytest.approx((WIDTH - BREAK) * 5 / 6, abs=1)


def test_a_gap_in_which_nothing_was_heard_is_drawn_short_too() -> None:
    drawn = waterfall([step(1, 0, 1000), step(2, HOUR_MS, HOUR_MS + 1000)], 0, HOUR_MS + 1000)
    assert [each.words for each in drawn.idle] == ["59 min 59 s"]
    assert drawn.bars[1].x > drawn.bars[0].x + drawn.bars[0].width


def test_short_gaps_keep_their_length() -> None:
    assert not waterfall([step(1, 0, 10_000), step(2, 12_000, 20_000)], 0, 20_000).idle


def test_the_time_of_the_model_leads_to_what_it_says_and_not_to_what_others_do() -> None:
    steps = [step(1, 0, 1000), step(2, 3000, 3000, "text"), step(3, 4000, 4000, "error")]
    said, wrong = waterfall(steps, 0, 4000).bars[1:]
    assert (said.lead_x, said.x) == (WIDTH / 4, WIDTH * 3 / 4)
    assert wrong.lead_x >= wrong.x


def test_ticks_are_round_in_order_and_have_room() -> None:
    ticks = waterfall([step(1, 7, 61_007)], 7, 61_007).ticks
    assert [tick.label for tick in ticks] == ["0", "15 s", "30 s", "45 s"]
    assert all(later.x - tick.x >= 90 for tick, later in pairwise(ticks))


def test_a_thousand_gaps_leave_room_for_what_happened() -> None:
    steps = [step(n, n * HOUR_MS, n * HOUR_MS + 1000) for n in range(1000)]
    drawn = waterfall(steps, 0, 1000 * HOUR_MS)
    assert len(drawn.idle) <= 12
    assert all(0 <= bar.x <= WIDTH for bar in drawn.bars)


@pytest.mark.parametrize(
    ("ms", "length", "moment"),
    [
        (0, "0", "0"),
        (850, "850 ms", "850 ms"),
        (4100, "4.1 s", "4.1 s"),
        (125_000, "2 min 5 s", "2:05"),
        (120_000, "2 min", "2:00"),
        (5_414_000, "1 h 30 min", "1:30:14"),
    ],
)
def test_times_are_read_off_as_they_are(ms: int, length: str, moment: str) -> None:
    assert (precise(ms), clock(ms)) == (length, moment)
