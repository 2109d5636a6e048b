"""When an engine may be asked again. Kept for each key in this process; other servers hear of it from the engine."""

import functools
import time
from collections.abc import Callable, Sequence

from rookery.domains.research.port import Window
from rookery.outgoing.rate_limits import PATIENCE_S, used_up

HOLD_S = 60.0
"""A quota that is used up for weeks is tried again after this: the owner may have bought more."""
UNTOLD_S = 1.0


class Pace:
    """Gives each request its turn, as far apart as the engine's limit wants it. For one event loop."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._next = 0.0
        self._apart_s = 0.0
        self._free_at = 0.0

    def turn(self, whose: str, within_s: float) -> float:
        """Seconds until the next request may go, whose turn is then taken. RateLimited if that is not `within_s`."""
        now = self._clock()
        at = max(now, self._next)
        if at - now > within_s:
            raise used_up(whose, max(at, self._free_at) - now)
        self._next = at + self._apart_s
        return at - now

    def answered(self, windows: Sequence[Window]) -> None:
        """Learn from an answer how far apart requests should be."""
        now = self._clock()
        self._free_at = 0.0
        # What is counted by the month says nothing about the next second.
        short = [window for window in _real(windows) if window.length_s <= PATIENCE_S]
        if short:
            self._apart_s = max(window.length_s / window.limit for window in short)
        for window in short:
            if window.remaining == 0:
                self._next = max(self._next, now + min(window.reset_s, window.length_s))

    def refused(self, windows: Sequence[Window], retry_after_s: float | None) -> float:
        """Learn from a refusal; the seconds after which it will end."""
        self.answered(windows)
        now = self._clock()
        spent = [window.reset_s for window in _real(windows) if window.remaining == 0]
        told = spent if retry_after_s is None else [*spent, retry_after_s]
        wait_s = max(told, default=UNTOLD_S)
        self._free_at = now + wait_s
        self._next = max(self._next, now + min(wait_s, HOLD_S))
        return wait_s


@functools.lru_cache(maxsize=64)
def pace_of(url: str, key: str) -> Pace:
    """The pace of all requests of this process with the same key."""
    return Pace()


def _real(windows: Sequence[Window]) -> list[Window]:
    """Without those that limit nothing: of a plan that is paid by use the engine tells 0 in a month."""
    return [window for window in windows if window.limit > 0 and window.length_s > 0]
