"""Whether a count gets better: the rule by itself."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rookery.domains.health.trends import NO_TREND, direction, shown

VALUES = st.lists(st.integers(0, 10**9), min_size=2, max_size=100)


def test_fewer_than_two_values_have_no_trend() -> None:
    assert [direction([]), direction([3])] == [None, None]
    assert [shown([]), shown([3])] == [NO_TREND, NO_TREND]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([5, 5], "STABLE"),
        ([0, 0, 0], "STABLE"),
        ([5, 4], "IMPROVING"),
        ([4, 5], "REGRESSING"),
        ([0, 1], "REGRESSING"),
        # The limit is 1, or 10 % of the older average where that is more; exactly the limit is a change.
        ([100, 109], "STABLE"),
        ([100, 110], "REGRESSING"),
        ([100, 91], "STABLE"),
        ([100, 90], "IMPROVING"),
        ([30, 33], "REGRESSING"),
        # Averages 2 and 2.5: less than 1 apart.
        ([2, 2, 2, 3], "STABLE"),
        # The middle one is of the older half: 10, 20 | 30.
        ([10, 20, 30], "REGRESSING"),
        ([9, 0, 4], "STABLE"),
        ([30, 20, 10, 5, 1], "IMPROVING"),
    ],
)
def test_the_newer_half_is_compared_with_the_older(values: list[int], expected: str) -> None:
    assert shown(values) == f"{' → '.join(map(str, values))} {expected}"


def test_what_is_no_defect_grows_or_shrinks() -> None:
    assert shown([100, 130], defect=False) == "100 → 130 GROWING"
    assert shown([100, 70], defect=False) == "100 → 70 SHRINKING"
    assert shown([100, 101], defect=False) == "100 → 101 STABLE"


@given(VALUES)
def test_it_is_the_rule_in_exact_fractions(values: list[int]) -> None:
    middle = -(-len(values) // 2)
    older = Fraction(sum(values[:middle]), middle)
    newer = Fraction(sum(values[middle:]), len(values) - middle)
    if abs(newer - older) < max(Fraction(1), older / 10):
        expected = "steady"
    else:
        expected = "rising" if newer > older else "falling"
    assert direction(values) == expected
