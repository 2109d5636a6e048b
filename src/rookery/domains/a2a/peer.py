"""An agent elsewhere with whom one can talk, whatever its wire: `sdk_peer` and `plain_peer` are two."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from rookery.core.errors import ServiceUnavailable
from rookery.settings import Settings

OPEN = frozenset({"submitted", "working"})
ASKING = frozenset({"input-required", "auth-required"})
STATES = OPEN | ASKING | {"completed", "failed", "canceled", "rejected"}
MAX_ANSWER_BYTES = 1024 * 1024
MAX_VALUES = 10_000
"""In one answer; see `json_values`."""
MAX_TEXT = 100_000
REQUEST_S = 10.0


@dataclass(frozen=True, slots=True)
class Told:
    """How far a task of an agent elsewhere is, and what it says. Without a `task` the text is the whole answer."""

    state: str
    text: str = ""
    task: str = ""
    context: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A message to an agent elsewhere; `task` and `context` if it answers one of its questions."""

    text: str
    skill: str | None
    depth: int
    limit_s: float
    task: str = ""
    context: str = ""

    @property
    def about(self) -> dict[str, Any]:
        """What is sent along. The receiver's session is one step deeper than the sender's."""
        return {"depth": self.depth} | ({"skill": self.skill} if self.skill else {})


class Peer(Protocol):
    """A way to an agent elsewhere. What goes wrong is a RookeryError."""

    async def send(self, asked: Asked) -> Told: ...
    async def look(self, task: str) -> Told: ...
    async def cancel(self, task: str) -> None: ...


def unreadable(why: str) -> ServiceUnavailable:
    """The error for an answer that makes no sense."""
    return ServiceUnavailable(
        f"the answer of the remote agent cannot be read: {cut(why, 300)}", hint="discover_agent shows its card"
    )


def cut(text: str, most: int = MAX_TEXT) -> str:
    """Text that can be shown and kept, at most so long."""
    clean = text.replace("\0", "").encode("utf-8", "replace").decode()
    return clean if len(clean) <= most else f"{clean[:most]}… (cut at {most} characters)"


def sent_headers(settings: Settings, place: str, target: str) -> Mapping[str, str]:
    """The headers of a request to `target`. A token is sent to the host that it is for, and to no other.

    `place` is the host that the caller named: a card must not lead to where another's token is good.
    """
    tokens = dict(settings.a2a_tokens)
    known = tokens.get(place) or tokens.get(place.rpartition(":")[0])
    return {"authorization": f"Bearer {known[0]}"} if known and place == target else {}
