"""How work that outlives a call starts an agent: a port. What runs agents stands behind it."""

import math
from dataclasses import dataclass
from typing import Literal, Protocol

from rookery.core.actor import Actor

MOST_USD = 1e6


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a session ended. `output` is the last thing that the agent said."""

    status: Literal["done", "failed"]
    output: str = ""
    error: str = ""
    cost_usd: float = 0.0

    @property
    def cost_micros(self) -> int:
        """What it cost in millionths of a US dollar. What is no price counts as nothing."""
        if not math.isfinite(self.cost_usd) or self.cost_usd <= 0:
            return 0
        return round(min(self.cost_usd, MOST_USD) * 1_000_000)


class Session(Protocol):
    """An agent at work."""

    @property
    def id(self) -> str: ...

    async def wait(self) -> Outcome:
        """How it ends. May be awaited by several, and again after the end."""
        ...

    async def stop(self) -> None:
        """End it now, with everything it started."""
        ...


class Runtime(Protocol):
    """Starts agents."""

    async def start_session(
        self,
        actor: Actor,
        prompt: str,
        *,
        key: str,
        cwd: str | None = None,
        max_turns: int | None = None,
        budget_usd: float | None = None,
    ) -> Session:
        """Let an agent work on `prompt` with the rights of `actor`. While a session of `key` lives, it is that one."""
        ...
