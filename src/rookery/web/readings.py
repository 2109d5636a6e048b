"""What browsers have read lately. A page that draws itself anew all day would fill the audit log with one sentence:
this person looks at this. It says so once for every question and quarter of an hour."""

import json
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from rookery.core.actor import Actor
from rookery.core.tool import Tool

LASTS_S = 15 * 60.0
MOST = 20_000


class Readings:
    """The questions of all browsers of one server, each with when it was last written down."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._written: OrderedDict[str, float] = OrderedDict()

    def seen(self, browser: str, actor: Actor, tool: Tool, arguments: dict[str, Any]) -> bool:
        """Whether the same browser has asked the same lately; from now on it has."""
        key = json.dumps([browser, actor.role, tool.name, actor.project, actor.issue, arguments], default=str)
        now = self._clock()
        if now - self._written.get(key, -LASTS_S) < LASTS_S:
            return True
        self._written[key] = now
        self._written.move_to_end(key)
        while len(self._written) > MOST:
            self._written.popitem(last=False)
        return False
