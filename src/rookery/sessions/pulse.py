"""How long nothing was heard of an agent."""

import time
from dataclasses import dataclass

TOOL_TIMES = 6
"""A tool may work so many times as long as an agent may be silent: its result may never come."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How long an agent may show no sign of life: before its first event, later, and while a tool works."""

    first_event_s: float
    stall_s: float

    @property
    def tool_s(self) -> float:
        return TOOL_TIMES * self.stall_s

    @property
    def look_s(self) -> float:
        """So often one has to look."""
        return min(self.first_event_s, self.stall_s, 20.0) / 4


class Pulse:
    """The signs of life in one turn, by a clock that never goes back."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._began = False
        self._since = time.monotonic()

    def beat(self) -> None:
        """Something was heard."""
        self._began = True
        self._since = time.monotonic()

    def rest(self) -> None:
        """Nothing has to be heard at the moment: somebody else is at work."""
        self._since = time.monotonic()

    def overdue_s(self, *, tool_works: bool) -> float | None:
        """The limit that is passed; None if there is time left."""
        later_s = self._limits.tool_s if tool_works else self._limits.stall_s
        limit_s = later_s if self._began else self._limits.first_event_s
        return limit_s if time.monotonic() - self._since > limit_s else None
