"""What the end of an attempt means, whatever its session said of itself."""

import pytest

from rookery.engine.outcomes import UNCLAIMED, End, Found, Seen, outcome_of

SEEN: tuple[Seen, ...] = ("done", "failed", "timed_out", "stalled", "lost", "cancelled")


@pytest.mark.parametrize("seen", SEEN)
def test_what_was_claimed_or_judged_counts_however_the_session_ended(seen: Seen) -> None:
    assert outcome_of(End(seen, "why"), Found(did=True, overtaken="moved")) == ("succeeded", None)
    assert outcome_of(End(seen, "why"), Found(parked=True)) == ("succeeded", None)


def test_an_agent_that_is_done_without_having_done_anything_was_idle() -> None:
    assert outcome_of(End("done"), Found(idle="nothing was claimed")) == ("idle", "nothing was claimed")


def test_an_agent_that_asks_for_a_review_of_nothing_was_idle() -> None:
    assert outcome_of(End("done"), Found(unclaimed=True, idle="x")) == ("idle", UNCLAIMED)


@pytest.mark.parametrize("seen", [seen for seen in SEEN if seen != "cancelled"])
def test_nobody_is_blamed_for_what_was_taken_away(seen: Seen) -> None:
    assert outcome_of(End(seen, "why"), Found(overtaken="the issue is done")) == ("cancelled", "the issue is done")


def test_who_stopped_it_says_why() -> None:
    assert outcome_of(End("cancelled", "paused"), Found(overtaken="the issue is todo")) == ("cancelled", "paused")


@pytest.mark.parametrize("seen", ["failed", "timed_out", "stalled", "lost"])
@pytest.mark.parametrize("why", ["x", None])
def test_everything_else_is_what_it_was(seen: Seen, why: str | None) -> None:
    assert outcome_of(End(seen, why), Found()) == (seen, why)
