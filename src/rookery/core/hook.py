"""A hook: an address that another program calls when something has happened. It has its own secret and no session."""

import inspect
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rookery.core.call import Calls

MAX_BODY = 64 * 1024
_PATTERN = re.compile(r"[a-z]+(/([a-z]+|\{[a-z]+\}))*")


@dataclass(frozen=True, slots=True)
class HookRequest:
    """What came in. Names of headers are in lower case."""

    path: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class HookAnswer:
    """What goes back: a status and a JSON object."""

    status: int
    body: dict[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class Hook:
    """One address below /hooks, such as `workflows/{run}/{node}`."""

    pattern: str
    handler: Callable[["Calls", HookRequest], Awaitable[HookAnswer]]


def hook(pattern: str) -> Callable[[Callable[["Calls", HookRequest], Awaitable[HookAnswer]]], Hook]:
    """Declare the decorated handler as a hook. It checks its own secret, in constant time."""
    if not _PATTERN.fullmatch(pattern):
        raise TypeError(f"{pattern!r} is no pattern of a hook, such as workflows/{{run}}/{{node}}")

    def declare(handler: Callable[["Calls", HookRequest], Awaitable[HookAnswer]]) -> Hook:
        if not inspect.iscoroutinefunction(handler):
            raise TypeError(f"{handler.__name__}: hooks are async")
        return Hook(pattern, handler)

    return declare
