"""How work that outlives a call starts an agent: a port. What runs agents stands behind it."""

import math
from dataclasses import dataclass
from typing import Literal, Protocol

from rookery.core.actor import Actor

MOST_USD = 1e6
MOST_COUNTED = 10**12


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a session ended. `output` is the last thing that the agent said; tokens are as far as they are known.

    One that `stalled` was ended because nothing was heard of it any more.
    """

    status: Literal["done", "failed"]
    output: str = ""
    error: str = ""
    cost_usd: float = 0.0
    turns: int = 1
    input_tokens: int = 0
    output_tokens: int = 0
    stalled: bool = False

    @property
    def cost_micros(self) -> int:
        """What it cost in millionths of a US dollar. What is no price counts as nothing."""
        if not math.isfinite(self.cost_usd) or self.cost_usd <= 0:
            return 0
        return round(min(self.cost_usd, MOST_USD) * 1_000_000)

    @property
    def counts(self) -> tuple[int, int, int]:
        """Turns, tokens in and tokens out. What is no number of things counts as nothing."""
        turns, taken, given = (_count(number) for number in (self.turns, self.input_tokens, self.output_tokens))
        return turns, taken, given


def _count(number: object) -> int:
    return min(number, MOST_COUNTED) if isinstance(number, int) and number > 0 else 0


class Session(Protocol):
    """An agent at work. One that waits for people has a `waited_s` as well: see `waited_of`."""

    @property
    def id(self) -> str: ...

    async def wait(self) -> Outcome:
        """How it ends. May be awaited by several, and again after the end."""
        ...

    async def stop(self) -> None:
        """End it now, with everything it started."""
        ...


def waited_of(session: Session) -> float:
    """So many seconds it has waited for people by which its deadline has not moved yet."""
    return float(getattr(session, "waited_s", 0.0))


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
        model: str | None = None,
    ) -> Session:
        """Let an agent work on `prompt` with the rights of `actor`. While a session of `key` lives, it is that one.

        Rights may be taken away while it lives: whatever calls tools for it looks them up again, as
        `identity.renewing` does.
        """
        ...
