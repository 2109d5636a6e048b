"""How often somebody may try to sign in: few times a minute from one address, and not too often from all together."""

import time
from collections import deque
from collections.abc import Callable

WITHIN_S = 60.0
FROM_ONE = 10
FROM_ALL = 100


class Attempts:
    """The attempts of the last minute that led nowhere. Those that worked are given back."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._made: deque[tuple[float, str]] = deque()

    def begin(self, address: str) -> bool:
        """Whether one more may be made from this address; if so it counts."""
        now = self._clock()
        while self._made and now - self._made[0][0] >= WITHIN_S:
            self._made.popleft()
        theirs = sum(each == address for _, each in self._made)
        if theirs >= FROM_ONE or len(self._made) >= FROM_ALL:
            return False
        self._made.append((now, address))
        return True

    def worked(self, address: str) -> None:
        """Give back the last one of this address."""
        for place in range(len(self._made) - 1, -1, -1):
            if self._made[place][1] == address:
                del self._made[place]
                return
