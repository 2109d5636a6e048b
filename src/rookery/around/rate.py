"""Rate limits: so many calls a minute for a tool that declares it, and for an identity if the settings say so."""

import time
from collections import OrderedDict
from collections.abc import Callable

from rookery.core.context import Call
from rookery.core.errors import RateLimited, RookeryError

MAX_KEYS = 10_000


class RateLimit:
    """Token buckets by identity and tool, in this process. `per_minute` 0: no limit for an identity as a whole."""

    def __init__(self, per_minute: int = 0, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_minute = per_minute
        self._clock = clock
        self._buckets: OrderedDict[tuple[str, str, str], tuple[float, float]] = OrderedDict()

    def before(self, call: Call) -> None:
        if call.tool.rate_per_minute is not None:
            self._take(call, call.tool.name, call.tool.rate_per_minute)
        if self._per_minute:
            self._take(call, "", self._per_minute)

    def refused(self, call: Call, error: RookeryError) -> None:
        return None

    def after(self, call: Call, error: RookeryError | None) -> None:
        return None

    def _take(self, call: Call, what: str, per_minute: int) -> None:
        key = (call.actor.tenant, call.actor.subject, what)
        now = self._clock()
        level, at = self._buckets.pop(key, (float(per_minute), now))
        level = min(float(per_minute), level + (now - at) * per_minute / 60)
        self._buckets[key] = (level - 1 if level >= 1 else level, now)
        while len(self._buckets) > MAX_KEYS:
            self._buckets.popitem(last=False)
        if level < 1:
            wait_s = (1 - level) * 60 / per_minute
            subject = what or "this identity"
            raise RateLimited(
                f"{subject} is limited to {per_minute} calls a minute",
                hint=f"try again in {wait_s:.1f} s",
                layer="rate",
            )
