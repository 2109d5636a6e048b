"""Rate limits: so many calls a minute for a tool that declares it, and for an identity if the settings say so."""

import math
import time
from collections import OrderedDict
from collections.abc import Callable

from rookery.core.context import Call
from rookery.core.errors import RateLimited, RookeryError

MAX_KEYS = 10_000
# A whole call that was filled in by many small steps of a float.
ONE = 1 - 1e-6


class RateLimit:
    """Token buckets by identity and tool, in this process. `per_minute` 0: no limit for an identity as a whole."""

    def __init__(self, per_minute: int = 0, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_minute = per_minute
        self._clock = clock
        self._buckets: OrderedDict[tuple[str, str, str], tuple[float, float]] = OrderedDict()

    def before(self, call: Call) -> None:
        tool_limit = call.tool.rate_per_minute
        if not (tool_limit or self._per_minute):
            return
        now = self._clock()
        taken: list[tuple[str, float]] = []
        for what, per_minute in ((call.tool.name, tool_limit), ("", self._per_minute)):
            if per_minute:
                level = self._level(call, what, per_minute, now)
                _refuse_below_one(level, what or "this identity", per_minute)
                taken.append((what, level))
        # Only now: a call that one limit refuses must not use up the other.
        for what, level in taken:
            self._buckets[call.actor.tenant, call.actor.subject, what] = (level - 1, now)

    def refused(self, call: Call, error: RookeryError) -> None:
        return None

    def after(self, call: Call, error: RookeryError | None) -> None:
        return None

    def _level(self, call: Call, what: str, per_minute: int, now: float) -> float:
        """How many calls a bucket holds. If there are too many buckets, those go that were not asked for longest."""
        key = (call.actor.tenant, call.actor.subject, what)
        level, at = self._buckets.pop(key, (float(per_minute), now))
        level = min(float(per_minute), level + (now - at) * per_minute / 60)
        self._buckets[key] = (level, now)
        while len(self._buckets) > MAX_KEYS:
            self._buckets.popitem(last=False)
        return level


def _refuse_below_one(level: float, subject: str, per_minute: int) -> None:
    if level < ONE:
        # Rounded up: whoever waits that long is not refused again.
        wait_s = math.ceil((1 - level) * 600 / per_minute) / 10
        raise RateLimited(
            f"{subject} is limited to {per_minute} calls a minute", hint=f"try again in {wait_s:.1f} s", layer="rate"
        )
