"""The score by itself."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rookery.domains.reputation.score import Deeds, score_of, trust_of

counts = st.integers(0, 10**9)
deeds = st.builds(
    lambda ratings, **rest: Deeds(ratings=len(ratings), rating_sum=sum(ratings), **rest),
    st.lists(st.integers(1, 5), max_size=20),
    completed=counts,
    failed=counts,
    earned=counts,
    spent=counts,
    violations=st.integers(0, 50),
    sessions=st.integers(0, 50),
)


@pytest.mark.parametrize(
    ("overall", "level"),
    [(100, "verified"), (90, "verified"), (89, "high"), (70, "high"), (69, "medium"), (50, "medium"), (49, "low"),
     (25, "low"), (24, "untrusted"), (0, "untrusted")],
)  # fmt: skip
def test_a_score_stands_for_a_level_of_trust(overall: int, level: str) -> None:
    assert trust_of(overall) == level


def test_nothing_done_is_55_and_everything_done_well_is_100() -> None:
    assert score_of(Deeds()).overall == 55
    best = Deeds(completed=3, ratings=1, rating_sum=5, earned=2, spent=1, sessions=10)
    assert (score_of(best).overall, score_of(best).trust) == (100, "verified")
    worst = Deeds(failed=3, ratings=1, rating_sum=1, spent=9, violations=9)
    assert (score_of(worst).overall, score_of(worst).trust) == (0, "untrusted")


@pytest.mark.parametrize(
    ("known", "name", "value"),
    [
        (Deeds(completed=2), "task_completion", 50),
        (Deeds(completed=2, failed=1), "task_completion", 67),
        (Deeds(ratings=2, rating_sum=9), "peer_rating", 88),
        (Deeds(earned=1), "credit_pattern", 100),
        (Deeds(earned=1, spent=4), "credit_pattern", 13),
        (Deeds(spent=4), "credit_pattern", 0),
        (Deeds(violations=6), "security_compliance", 0),
        (Deeds(sessions=3), "activity_level", 30),
    ],
)
def test_each_component_follows_its_own_rule(known: Deeds, name: str, value: int) -> None:
    assert getattr(score_of(known).components, name) == value


@given(deeds)
def test_a_score_is_the_weighted_sum_of_components_between_0_and_100(known: Deeds) -> None:
    found = score_of(known)
    parts = found.components
    exact = (
        0.30 * parts.task_completion
        + 0.25 * parts.peer_rating
        + 0.15 * parts.credit_pattern
        + 0.20 * parts.security_compliance
        + 0.10 * parts.activity_level
    )
    assert abs(found.overall - exact) <= 0.5 + 1e-9
    assert 0 <= found.overall <= 100
    assert all(0 <= getattr(parts, name) <= 100 for name in parts.__slots__)
