"""What a search engine is to the tools: it words a request and reads the answer. All the rest is the same for each.

Another engine is one more file in `engines` with an object of this kind that is called ENGINE.
"""

import importlib
import pkgutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from rookery.core.errors import ConfigurationError
from rookery.domains.research import engines

FRESHNESS = ("pd", "pw", "pm", "py")
"""Found in the past day, week, month or year."""
MAX_COUNT = 20


@dataclass(frozen=True, slots=True)
class Search:
    """What is wanted. `freshness` is one of FRESHNESS, or None for any age."""

    query: str
    count: int
    freshness: str | None = None


@dataclass(frozen=True, slots=True)
class Request:
    """The GET that asks for it. The key belongs into a header, where no log shows it."""

    url: str
    headers: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Hit:
    """One result as the engine tells it: any value may be any JSON, and texts may be HTML."""

    title: Any
    url: Any
    description: Any
    age: Any = None


@dataclass(frozen=True, slots=True)
class Window:
    """So many requests are allowed in so many seconds, of which some remain until it starts anew. Limit 0: any."""

    limit: int
    length_s: float
    remaining: int
    reset_s: float


@dataclass(frozen=True, slots=True)
class Fault:
    """Why the engine refused. `of_key`: because of the key, and not because of what was asked."""

    said: str
    of_key: bool = False


class Engine(Protocol):
    """One search engine. It holds no state and does no work of its own: no network, no files."""

    @property
    def title(self) -> str:
        """What people call it."""
        ...

    @property
    def url(self) -> str:
        """Where it is, unless the owner says otherwise: paths are added to this."""
        ...

    @property
    def key_name(self) -> str:
        """The variable that its key is usually in; empty if it needs no key."""
        ...

    def request(self, url: str, key: str, search: Search) -> Request:
        """How to ask. ValidationFailed for what the engine is known to refuse."""
        ...

    def hits(self, said: Any) -> list[Hit] | None:
        """The results in an answer of status 200; None if that is no answer of this engine."""
        ...

    def fault(self, status: int, said: Any) -> Fault:
        """What an answer of another status says. `said` is None if it was not JSON."""
        ...

    def windows(self, headers: Mapping[str, str]) -> Sequence[Window]:
        """The limits that an answer tells of, by its headers in lower case; empty if it tells of none."""
        ...


def load_engine(name: str) -> Engine:
    """The engine of that name, or ConfigurationError with the names that there are."""
    known = sorted(found.name for found in pkgutil.iter_modules(engines.__path__))
    if name not in known:
        raise ConfigurationError(
            f"there is no search engine {name}", hint=f"set search_engine to one of: {', '.join(known)}"
        )
    return importlib.import_module(f"{engines.__name__}.{name}").ENGINE
