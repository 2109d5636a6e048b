"""What goes wrong with processes: they crash, also right before and after a commit, stand still, and are restarted."""

import asyncio
import random
from collections.abc import Callable, Sequence

from tests.engine.simulation.process import Process
from tests.engine.simulation.temper import Temper

NEXT_COMMITS = 40
"""A crash at a commit is one of the next so many of its process."""


class Chaos:
    """Troubles the processes of a history."""

    def __init__(self, rng: random.Random, temper: Temper, live: Callable[[], Sequence[Process]]) -> None:
        self._rng = rng
        self._temper = temper
        self._live = live
        self._stopping: list[asyncio.Future[None]] = []

    async def rage(self, until_s: float) -> None:
        """Until the time has come."""
        loop = asyncio.get_running_loop()
        while loop.time() < until_s:
            await asyncio.sleep(self._rng.uniform(1, 20) / max(self._temper.trouble, 0.2))
            up = self._live()
            if up:
                self._harm(self._rng.choice(up))

    def _harm(self, process: Process) -> None:
        chance = self._rng.random()
        if chance < 0.55:
            at = process.database.commits + self._rng.randrange(1, NEXT_COMMITS)
            process.database.crash_at = (at, self._rng.choice(("before", "after")))
        elif chance < 0.65:
            process.crash("at once")
        elif chance < 0.85:
            nap_s = self._rng.choice((2.0, 12.0, 25.0, 60.0)) * self._rng.uniform(0.5, 1.5)
            if self._rng.random() < 0.3:
                process.nap(nap_s)
            else:
                process.database.nap_at = (process.database.commits + self._rng.randrange(1, NEXT_COMMITS), nap_s)
        else:
            self._stopping.append(asyncio.ensure_future(process.stop()))
