"""The reputation score: five components from 0 to 100, their weighted sum, and the trust that goes with it. Pure."""

from dataclasses import asdict, dataclass
from typing import Literal

TrustLevel = Literal["untrusted", "low", "medium", "high", "verified"]
WINDOW_DAYS, ACTIVE_DAYS = 90, 30
UNKNOWN = 50
"""What a component is worth of which nothing is known yet."""
FEWEST_TASKS = 3
WEIGHTS = {
    "task_completion": 30,
    "peer_rating": 25,
    "credit_pattern": 15,
    "security_compliance": 20,
    "activity_level": 10,
}
"""In hundredths."""
LEVELS: tuple[tuple[int, TrustLevel], ...] = ((90, "verified"), (70, "high"), (50, "medium"), (25, "low"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Deeds:
    """What is known of an agent. Ratings are from 1 to 5 and of all times; sessions are of 30 days, the rest of 90."""

    completed: int = 0
    failed: int = 0
    ratings: int = 0
    rating_sum: int = 0
    earned: int = 0
    spent: int = 0
    violations: int = 0
    sessions: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Components:
    task_completion: int
    peer_rating: int
    credit_pattern: int
    security_compliance: int
    activity_level: int


@dataclass(frozen=True, slots=True)
class Score:
    overall: int
    trust: TrustLevel
    components: Components


def score_of(deeds: Deeds) -> Score:
    """The score of an agent that has done this. Whoever has done nothing has 55."""
    parts = Components(
        task_completion=_task_completion(deeds.completed, deeds.failed),
        peer_rating=_peer_rating(deeds.ratings, deeds.rating_sum),
        credit_pattern=_credit_pattern(deeds.earned, deeds.spent),
        security_compliance=max(0, 100 - 20 * deeds.violations),
        activity_level=min(100, 10 * deeds.sessions),
    )
    overall = _rounded(sum(WEIGHTS[name] * value for name, value in asdict(parts).items()), 100)
    overall = max(0, min(100, overall))
    return Score(overall, trust_of(overall), parts)


def trust_of(overall: int) -> TrustLevel:
    """The level that a score stands for."""
    for least, level in LEVELS:
        if overall >= least:
            return level
    return "untrusted"


def _task_completion(completed: int, failed: int) -> int:
    total = completed + failed
    return UNKNOWN if total < FEWEST_TASKS else _rounded(100 * completed, total)


def _peer_rating(ratings: int, rating_sum: int) -> int:
    return UNKNOWN if ratings == 0 else _rounded(100 * (rating_sum - ratings), 4 * ratings)


def _credit_pattern(earned: int, spent: int) -> int:
    if earned == spent == 0:
        return UNKNOWN
    return 100 if spent == 0 else min(100, _rounded(50 * earned, spent))


def _rounded(value: int, by: int) -> int:
    """The quotient of two numbers that are not negative, halves up, as the seed's language rounds."""
    return (2 * value + by) // (2 * by)
