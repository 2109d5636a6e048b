"""Whether a project's tests grow faster than its code. Pure: a few rows in, a verdict with its reasons out."""

from collections.abc import Sequence
from dataclasses import dataclass

RUNS = 10
TESTS_MAY_GROW_PERCENT = 20
SOURCE_GROWS_FROM_PERCENT = 5
TIME_MAY_GROW_FACTOR = 2


@dataclass(frozen=True, slots=True)
class TestRun:
    """One recorded run. `source_lines` are the project's changed source lines so far; None is not known."""

    test_count: int
    execution_time_ms: int | None = None
    source_lines: int | None = None


@dataclass(frozen=True, slots=True)
class TestTrend:
    """From the first to the last of the runs looked at. A growth is None where it starts at 0 or is not known."""

    runs: int
    test_count: int
    test_growth_percent: float | None
    source_growth_percent: float | None
    time_growth_percent: float | None
    reasons: tuple[str, ...]

    @property
    def bloat(self) -> bool:
        return bool(self.reasons)


def trend(history: Sequence[TestRun]) -> TestTrend | None:
    """The trend of the last ten of `history`, oldest first, or of as many as there are. None: there are none."""
    window = history[-RUNS:]
    if not window:
        return None
    measured = [(run.test_count, run.source_lines) for run in window if run.source_lines is not None]
    times = [run.execution_time_ms for run in window if run.execution_time_ms is not None]
    reasons = (_outgrown(measured), _slower(times))
    return TestTrend(
        runs=len(window),
        test_count=window[-1].test_count,
        test_growth_percent=_percent([run.test_count for run in window]),
        source_growth_percent=_percent([lines for _, lines in measured]),
        time_growth_percent=_percent(times),
        reasons=tuple(reason for reason in reasons if reason),
    )


def _outgrown(measured: Sequence[tuple[int, int]]) -> str | None:
    # Both are compared over the same runs: those of which the source lines are known.
    if not measured:
        return None
    (tests, lines), (tests_now, lines_now) = measured[0], measured[-1]
    # The first tests of a project that had none are no bloat.
    if tests == 0 or 100 * (tests_now - tests) <= TESTS_MAY_GROW_PERCENT * tests:
        return None
    if lines_now > lines and 100 * (lines_now - lines) >= SOURCE_GROWS_FROM_PERCENT * lines:
        return None
    return (
        f"tests grew from {tests} to {tests_now} (more than {TESTS_MAY_GROW_PERCENT} %) while changed source lines "
        f"went from {lines} to {lines_now} (less than {SOURCE_GROWS_FROM_PERCENT} % more)"
    )


def _slower(times: Sequence[int]) -> str | None:
    if not times or times[0] == 0 or times[-1] < TIME_MAY_GROW_FACTOR * times[0]:
        return None
    return f"the time per run went from {times[0]} ms to {times[-1]} ms (at least {TIME_MAY_GROW_FACTOR} times as long)"


def _percent(values: Sequence[int]) -> float | None:
    if not values or values[0] == 0:
        return None
    return round(100 * (values[-1] - values[0]) / values[0], 1)
