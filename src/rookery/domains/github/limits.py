"""The limits that GitHub tells of in its answers. How it tells is in its documentation. Pure."""

import re
from dataclasses import dataclass

from rookery.outgoing.client import Answer
from rookery.outgoing.rate_limits import their_time, told_wait_s, whole

UNTOLD_S = 60.0
"""What GitHub wants to be left alone for if it does not say for how long."""
LONGEST_S = 24 * 3600.0
_SECONDARY = re.compile(rb"secondary rate limit|abuse detection", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Limit:
    """That nothing more should be asked for so many seconds."""

    kind: str
    wait_s: float

    @property
    def title(self) -> str:
        return f"GitHub's {self.kind} rate limit"


def limit_told(answer: Answer) -> Limit | None:
    """The limit that this answer is a refusal by; None if it is none. What was refused so was not done."""
    if answer.status not in (403, 429):
        return None
    if "retry-after" in answer.headers:
        after = told_wait_s(answer.headers)
        return Limit("secondary", UNTOLD_S if after is None else _within(after))
    spent = limit_reached(answer)
    if spent is not None:
        return spent
    if answer.status == 429 or _SECONDARY.search(answer.body[:10_000]):
        return Limit("secondary", UNTOLD_S)
    return None


def limit_reached(answer: Answer) -> Limit | None:
    """The limit that is used up with this answer, whatever else it says."""
    if answer.headers.get("x-ratelimit-remaining") != "0":
        return None
    reset = whole(answer.headers.get("x-ratelimit-reset"))
    if reset is None:
        return Limit("primary", UNTOLD_S) if answer.status in (403, 429) else None
    return Limit("primary", _within(reset - their_time(answer.headers)))


def _within(seconds: float) -> float:
    # Their clock shows whole seconds, and what is asked a moment too early counts against us.
    return min(max(seconds, 0.0) + 0.1, LONGEST_S)
