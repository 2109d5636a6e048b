"""What is heard in a channel: what a person said, and how far the channel has been read with that."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from rookery.domains.owner.channel_frames import Fit
from rookery.outgoing.client import GuardedClient

Config = Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """Words of the owner about an ask: that of the message that the other side calls `ref`, else `ask_id`."""

    text: str
    cursor: str
    """How far the channel is read once this is taken."""
    ask_id: str | None = None
    named: bool = False
    """Whether they wrote the id themselves, and so have it from where all of it can be read."""
    ref: str | None = None
    back: dict[str, Any] = field(default_factory=dict[str, Any])
    """What is needed to tell them in the channel how it went."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """What was said since the last time, and after how many seconds to listen again."""

    said: Sequence[Said] = ()
    cursor: str | None
    again_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    """How one kind of channel is listened to. `source` names what is read: of another one a cursor says nothing."""

    hear: Callable[[GuardedClient, Config, str | None], Awaitable[Heard]]
    reply: Callable[[GuardedClient, Config, str, Mapping[str, Any]], Awaitable[None]]
    source: Callable[[Config], str]
    fit: Fit = field(default_factory=Fit)
    """What is cut there, and so cannot be approved there."""
    cursor_lasts_ms: int | None = None
    """After so long without news a cursor is forgotten."""


def at(found: Any, *path: str) -> Any:
    """What is at a place in JSON; None if there is no such place."""
    for step in path:
        found = cast("dict[str, Any]", found).get(step) if isinstance(found, dict) else None
    return found


def whole(found: Any) -> int | None:
    """A whole number, or None."""
    return found if isinstance(found, int) and not isinstance(found, bool) else None
