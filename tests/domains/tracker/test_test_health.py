"""The rule for test bloat, exact at its borders."""

import pytest

from rookery.domains.tracker.test_health import TestRun as Run
from rookery.domains.tracker.test_health import trend


def bloat(*runs: Run) -> bool:
    found = trend(runs)
    assert found is not None
    return found.bloat


def grown(tests: tuple[int, int], lines: tuple[int | None, int | None]) -> bool:
    return bloat(Run(tests[0], source_lines=lines[0]), Run(tests[1], source_lines=lines[1]))


def test_without_runs_there_is_no_trend() -> None:
    assert trend([]) is None


def test_a_single_run_shows_no_growth_and_no_bloat() -> None:
    found = trend([Run(150, 30_000, 400)])
    assert found is not None
    assert (found.runs, found.test_count, found.bloat) == (1, 150, False)
    assert (found.test_growth_percent, found.source_growth_percent, found.time_growth_percent) == (0, 0, 0)


@pytest.mark.parametrize(
    ("tests", "lines", "expected"),
    [
        ((100, 120), (1000, 1000), False),
        ((100, 121), (1000, 1000), True),
        ((100, 121), (1000, 1049), True),
        ((100, 121), (1000, 1050), False),
        ((1_000_000, 1_200_000), (1000, 1000), False),
        ((1_000_000, 1_200_001), (1000, 1000), True),
        ((5, 6), (100, 100), False),
        ((4, 5), (100, 100), True),
        ((100, 121), (1000, 900), True),
        ((100, 121), (0, 0), True),
        ((100, 121), (0, 1), False),
        ((100, 50), (1000, 1000), False),
        ((0, 50), (1000, 1000), False),
        ((0, 0), (0, 0), False),
        ((100, 200), (None, None), False),
        ((100, 200), (None, 1000), False),
        ((100, 200), (1000, None), False),
    ],
)
def test_tests_may_grow_by_a_fifth_or_with_the_code(
    tests: tuple[int, int], lines: tuple[int | None, int | None], expected: bool
) -> None:
    assert grown(tests, lines) is expected


@pytest.mark.parametrize(
    ("first", "last", "expected"),
    [(1000, 1999, False), (1000, 2000, True), (1, 2, True), (0, 5, False), (None, 5, False), (5, None, False)],
)
def test_the_time_of_a_run_may_not_double(first: int | None, last: int | None, expected: bool) -> None:
    assert bloat(Run(10, first), Run(10, last)) is expected


def test_only_the_last_ten_runs_count() -> None:
    steady = [Run(200, 1000, 1000)] * 9
    old = Run(100, 400, 1000)
    assert bloat(old, *steady)
    assert not bloat(old, *steady, Run(200, 1000, 1000))
    found = trend([old] * 5 + steady + [Run(240, 1999, 1000)])
    assert found is not None
    assert (found.runs, found.test_growth_percent, found.time_growth_percent, found.bloat) == (10, 20.0, 99.9, False)


def test_runs_of_which_something_is_not_known_are_left_out_where_it_matters() -> None:
    # From 100 to 130 in all, but only from 125 to 130 while the lines of code were measured.
    assert not bloat(Run(100), Run(125, source_lines=1000), Run(130, source_lines=1000), Run(130))
    assert bloat(Run(100), Run(100, 10), Run(100), Run(100, 20), Run(100))


def test_a_rise_and_fall_within_the_window_is_no_growth() -> None:
    assert not bloat(Run(100, 10, 50), Run(900, 90, 50), Run(100, 10, 50))


def test_each_reason_gives_its_numbers() -> None:
    found = trend([Run(100, 1000, 200), Run(150, 2500, 201)])
    assert found is not None
    assert found.reasons == (
        "tests grew from 100 to 150 (more than 20 %) while changed source lines went from 200 to 201 "
        "(less than 5 % more)",
        "the time per run went from 1000 ms to 2500 ms (at least 2 times as long)",
    )
    assert (found.test_growth_percent, found.source_growth_percent, found.time_growth_percent) == (50.0, 0.5, 150.0)
