"""When something is tried again after it failed, and when it is given up. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from rookery.engine.world_facts import AttemptFact

FIRST_DELAY_MS = 10_000
LONGEST_DELAY_MS = 300_000
LOST_DELAY_MS = 1_000
MAX_LOST = 10
"""So often a worker may die over the same work."""
MAX_ROUNDS = 10
"""So often the work of a phase may be done and sent back. Whoever does it once more would not do better, only spend."""
FREE_CANCELLATIONS = 3
"""So often in a row something may be cancelled before it waits a while: what is refused each time must not spin."""
_FAILURES = ("failed", "timed_out", "stalled", "idle")


def backoff_ms(failures: int) -> int:
    """How long to wait after so many failures in a row; nothing after none."""
    if failures <= 0:
        return 0
    # Beyond a few doublings the longest delay counts anyway, so no large power is ever computed.
    return min(FIRST_DELAY_MS * 2 ** min(failures - 1, 10), LONGEST_DELAY_MS)


@dataclass(frozen=True, slots=True)
class Tries:
    """What came of the attempts since the last success, and how many successes there were in all.

    What was cancelled counts for nothing, but several times in a row it waits.
    """

    failures: int = 0
    losses: int = 0
    due_ms: int = 0
    ended_ms: int = 0
    last: str = ""
    rounds: int = 0
    cancelled: int = 0

    @property
    def next_attempt(self) -> int:
        return self.failures + self.losses + 1

    @property
    def told(self) -> str:
        """What the next attempt waits for."""
        if self.cancelled > FREE_CANCELLATIONS:
            return f"it was cancelled {self.cancelled} times in a row"
        return f"attempt {self.next_attempt - 1} ended as {self.last}"

    def used_up(self, max_retries: int) -> bool:
        """Whether no further attempt is to be made."""
        return self.failures > max_retries or self.losses > MAX_LOST


def tries_of(attempts: Sequence[AttemptFact]) -> Tries:
    """Where a row of attempts at the same work has led, the oldest first."""
    tries = Tries()
    for attempt in attempts:
        failures, losses, ended_ms = tries.failures, tries.losses, attempt.ended_ms
        if attempt.outcome == "succeeded":
            tries = Tries(rounds=tries.rounds + 1)
        elif attempt.outcome == "lost":
            tries = replace(tries, losses=losses + 1, due_ms=ended_ms + LOST_DELAY_MS)
        elif attempt.outcome in _FAILURES:
            tries = replace(tries, failures=failures + 1, due_ms=ended_ms + backoff_ms(failures + 1))
        else:
            in_a_row = tries.cancelled + 1
            due_ms = max(tries.due_ms, ended_ms + backoff_ms(in_a_row - FREE_CANCELLATIONS))
            tries = replace(tries, cancelled=in_a_row, due_ms=due_ms if in_a_row > FREE_CANCELLATIONS else tries.due_ms)
        if attempt.outcome not in ("succeeded", "cancelled"):
            tries = replace(tries, ended_ms=ended_ms, last=attempt.outcome, cancelled=0)
    return tries
