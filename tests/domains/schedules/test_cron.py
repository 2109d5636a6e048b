"""When schedules are due, compared with a reference that looks at every minute."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise, takewhile
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rookery.core.errors import ValidationFailed
from rookery.domains.schedules.cron import (
    MIN_GAP_MS,
    MINUTE_MS,
    Timing,
    check_timing,
    latest_due,
    min_gap,
    next_due,
    parse,
)

BERLIN = "Europe/Berlin"


def at(text: str, zone: str = "UTC", fold: int = 0) -> int:
    local = datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone), fold=fold)
    return int(local.timestamp() * 1000)


def due(expression: str, zone: str, after: str, number: int) -> list[str]:
    """The next due times, as UTC."""
    found = islice(parse(expression, zone).due_after(at(after)), number)
    return [datetime.fromtimestamp(each / 1000, UTC).strftime("%d %H:%M") for each in found]


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("60 * * * *", "bad minute '60'"),
        ("*/0 * * * *", "bad minute '*/0'"),
        ("0 24 * * *", "bad hour '24'"),
        ("0 0 32 * *", "bad day-of-month '32'"),
        ("0 0 30 2 *", "bad day-of-month '30'"),
        ("0 0 * 13 *", "bad month '13'"),
        ("0 0 * JANUARY *", "bad month 'JANUARY'"),
        ("0 0 * * 8", "bad day-of-week '8'"),
        ("0 0 * * FRI-MON", "bad day-of-week 'FRI-MON'"),
        ("0 0 * * FR\u0131", "bad day-of-week 'FR\u0131'"),
        ("9" * 5000 + " * * * *", "bad minute '999"),
        ("0 0 * *", "has 4 fields, not 5"),
        ("0 0 0 * * *", "has 6 fields, not 5"),
        ("", "has 0 fields"),
        ("@reboot", "there is no @reboot"),
        ("0 0 */31 2 MON#5", "is never due"),
    ],
)
def test_a_bad_expression_is_refused_by_the_name_of_its_field(expression: str, said: str) -> None:
    with pytest.raises(ValidationFailed) as refused:
        check_timing(expression, None, "UTC", 0)
    assert refused.value.message.startswith("cron_expression: ")
    assert said in refused.value.message
    assert refused.value.hint


@pytest.mark.parametrize(
    "zone", ["", "europe/berlin", "Europe", "../etc/passwd", "right/Europe/Berlin", "Mars/Olympus"]
)
def test_a_zone_that_is_none_is_refused(zone: str) -> None:
    with pytest.raises(ValidationFailed, match="timezone: there is no"):
        check_timing("@daily", None, zone, 0)


@pytest.mark.parametrize(
    "expression", ["*/4 * * * *", "* * * * *", "0,1 9 * * *", "0,59 0,23 * * *", "0,4 0 29 2 *", "58,2 * * * *"]
)
def test_less_than_five_minutes_between_any_two_due_times_is_refused(expression: str) -> None:
    with pytest.raises(ValidationFailed, match="is due again after"):
        check_timing(expression, None, "UTC", 0)


@pytest.mark.parametrize("expression", ["*/5 * * * *", "0,5 9 * * *", "@hourly", "@annually", "0 0 29 2 *"])
def test_five_minutes_and_more_are_accepted(expression: str) -> None:
    assert check_timing(expression, None, BERLIN, 0).zone == BERLIN
    least = min_gap(expression)
    assert least is not None
    assert least >= MIN_GAP_MS


def test_an_interval_has_five_minutes_at_least_and_excludes_an_expression() -> None:
    for minutes in (4, 0, -5, 10**9):
        with pytest.raises(ValidationFailed, match="interval_minutes"):
            check_timing(None, minutes, "UTC", 0)
    assert check_timing(None, 5, "UTC", 0).interval_ms == MIN_GAP_MS
    for cron, minutes in ((None, None), ("@daily", 60)):
        with pytest.raises(ValidationFailed, match="either cron_expression or interval_minutes"):
            check_timing(cron, minutes, "UTC", 0)


def test_an_interval_counts_from_its_anchor_and_does_not_drift() -> None:
    timing = Timing(None, 600_000, "UTC", 1_000)
    assert next_due(timing, 0) == 601_000
    assert next_due(timing, 1_000) == 601_000
    assert next_due(timing, 601_000) == 1_201_000
    assert next_due(timing, 5_000_123) == 5_401_000
    assert latest_due(timing, 601_000, 5_000_123) == 4_801_000
    assert latest_due(timing, 601_000, 602_000) == 601_000


def test_names_and_presets_mean_what_their_numbers_mean() -> None:
    assert parse("0 9 * jan-mar mon,wed", "UTC").expression == "0 9 * jan-mar mon,wed"
    after = "2026-01-01T00:00"
    assert due("0 9 * jan-mar mon,wed", "UTC", after, 20) == due("0 9 * 1-3 1,3", "UTC", after, 20)
    assert due("@weekly", "UTC", after, 9) == due("0 0 * * 0", "UTC", after, 9) == due("0 0 * * 7", "UTC", after, 9)
    assert due("@MONTHLY", "UTC", after, 2) == ["01 00:00", "01 00:00"]


def test_day_of_month_and_day_of_week_are_alternatives_if_both_are_restricted() -> None:
    after = "2026-02-01T12:00"
    assert due("0 0 13 * FRI", "UTC", after, 5) == ["06 00:00", "13 00:00", "20 00:00", "27 00:00", "06 00:00"]
    assert due("0 0 */2 * FRI", "UTC", after, 3) == ["13 00:00", "27 00:00", "13 00:00"]


def test_a_local_time_that_does_not_exist_comes_an_hour_later() -> None:
    before = "2026-03-28T12:00"
    assert due("30 2 * * *", BERLIN, before, 3) == ["29 01:30", "30 00:30", "31 00:30"]
    assert due("*/30 2 * * *", BERLIN, before, 4) == ["29 01:00", "29 01:30", "30 00:00", "30 00:30"]
    assert due("0 2,3 * * *", BERLIN, before, 3) == ["29 01:00", "30 00:00", "30 01:00"]


def test_a_local_time_that_comes_twice_is_due_the_first_time_only() -> None:
    before = "2026-10-24T12:00"
    assert due("30 2 * * *", BERLIN, before, 3) == ["25 00:30", "26 01:30", "27 01:30"]
    assert due("*/30 2 * * *", BERLIN, before, 3) == ["25 00:00", "25 00:30", "26 01:00"]
    timing = Timing("30 2 * * *", None, BERLIN)
    assert next_due(timing, at("2026-10-25T02:10", BERLIN, fold=1)) == at("2026-10-26T02:30", BERLIN)


def test_a_schedule_for_every_hour_goes_on_through_both_hours() -> None:
    assert due("0 * * * *", BERLIN, "2026-10-24T23:00", 3) == ["25 00:00", "25 01:00", "25 02:00"]
    assert due("0 0-23 * * *", BERLIN, "2026-03-29T00:00", 2) == ["29 01:00", "29 02:00"]


def test_midnight_is_due_where_clocks_change_at_midnight() -> None:
    assert due("0 0 * * *", "America/Havana", "2026-03-07T12:00", 2) == ["08 05:00", "09 04:00"]


def test_of_missed_times_the_latest_is_left() -> None:
    for expression in ("*/5 * * * *", "0 9 * * *", "0 0 1 * *", "0 0 29 2 *"):
        timing = Timing(expression, None, BERLIN)
        first = next_due(timing, at("2020-01-01T00:00"))
        assert first is not None
        latest = latest_due(timing, first, at("2026-07-01T10:02"))
        following = next_due(timing, latest)
        assert following is not None
        assert latest <= at("2026-07-01T10:02") < following
        assert latest_due(timing, latest, latest + 1) == latest


def _values(low: int, high: int) -> st.SearchStrategy[str]:
    some = st.lists(st.integers(low, high), min_size=1, max_size=3).map(lambda them: ",".join(map(str, them)))
    ranges = st.tuples(st.integers(low, high), st.integers(low, high)).map(lambda two: f"{min(two)}-{max(two)}")
    return st.one_of(st.just("*"), st.integers(2, 20).map(lambda step: f"*/{step}"), some, ranges)


EXPRESSIONS = st.tuples(_values(0, 59), _values(0, 23), _values(1, 28), _values(1, 12), _values(0, 7)).map(" ".join)


def _matches(word: str, value: int, low: int) -> bool:
    if word.startswith("*"):
        return (value - low) % int(word[2:] or 1) == 0
    ends = [tuple(map(int, part.split("-"))) for part in word.split(",")]
    return any(each[0] <= value <= each[-1] for each in ends)


def _reference(expression: str, moment: datetime) -> bool:
    minute, hour, day, month, weekday = expression.split()
    by_day = _matches(day, moment.day, 1)
    by_weekday = any(_matches(weekday, each, 0) for each in {moment.isoweekday(), moment.isoweekday() % 7})
    days = (by_day and by_weekday) if "*" in day[0] + weekday[0] else (by_day or by_weekday)
    clock = _matches(minute, moment.minute, 0) and _matches(hour, moment.hour, 0)
    return clock and days and _matches(month, moment.month, 1)


@given(EXPRESSIONS, st.integers(0, 40 * 365 * 24 * 60))
@settings(deadline=None)
def test_the_next_due_time_is_the_first_minute_that_matches(expression: str, minutes: int) -> None:
    after = datetime(2000, 1, 1, tzinfo=UTC) + timedelta(minutes=minutes)
    steps: Iterator[datetime] = (after + timedelta(minutes=step) for step in range(1, 3 * 24 * 60))
    expected = next((int(each.timestamp() * 1000) for each in steps if _reference(expression, each)), None)
    found = next_due(Timing(expression, None, "UTC"), int(after.timestamp() * 1000) + 1)
    if expected is None:
        assert found is None or found > (after + timedelta(days=3)).timestamp() * 1000 - MINUTE_MS
    else:
        assert found == expected


ZONES = st.sampled_from([BERLIN, "America/New_York", "America/Havana", "Australia/Lord_Howe", "Asia/Kathmandu"])
CHANGES = st.sampled_from(["2026-03-08", "2026-03-29", "2026-04-05", "2026-10-04", "2026-10-25", "2026-11-01"])


def _expected(expression: str, zone: ZoneInfo, start: int, minutes: int, every_hour: bool) -> list[int]:
    """What is due, found by a look at every minute: those that are, and those that a clock skips."""
    found: set[int] = set()
    for at_ms in range(start, start + minutes * MINUTE_MS, MINUTE_MS):
        moment = datetime.fromtimestamp(at_ms / 1000, zone)
        if _reference(expression, moment) and (moment.fold == 0 or every_hour):
            found.add(at_ms)
    first = datetime.fromtimestamp(start / 1000, zone).replace(tzinfo=None)
    for minute in range(-300, minutes):
        local = (first + timedelta(minutes=minute)).replace(tzinfo=zone)
        moment = int(local.timestamp() * 1000)
        is_real = datetime.fromtimestamp(moment / 1000, zone).replace(tzinfo=None) == local.replace(tzinfo=None)
        if not is_real and _reference(expression, local) and not every_hour:
            found.add(moment)
    return sorted(each for each in found if start < each < start + minutes * MINUTE_MS)


@given(EXPRESSIONS, ZONES, CHANGES)
@settings(deadline=None, max_examples=50)
def test_around_a_change_of_clocks_every_minute_is_due_as_the_reference_says(
    expression: str, zone: str, day: str
) -> None:
    cron = parse(expression, zone)
    start, minutes = at(day) - 4 * 60 * MINUTE_MS, 32 * 60
    found = list(takewhile(lambda each: each < start + minutes * MINUTE_MS, cron.due_after(start)))
    assert found == _expected(expression, ZoneInfo(zone), start, minutes, cron.every_hour)
    for each, following in islice(pairwise(found), 5):
        assert next_due(Timing(expression, None, zone), each) == following


@given(st.text(max_size=40))
@settings(deadline=None)
def test_any_text_is_an_expression_or_is_refused(text: str) -> None:
    try:
        timing = check_timing(text, None, "UTC", 0)
    except ValidationFailed:
        return
    assert next_due(timing, 0) is not None
