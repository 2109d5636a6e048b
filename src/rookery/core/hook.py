"""A hook: an address with a secret of its own and no session, for another program or for a person with a link."""

import inspect
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

if TYPE_CHECKING:
    from rookery.core.call import Calls

MAX_BODY = 64 * 1024
MAX_FIELDS = 20
FORM = "application/x-www-form-urlencoded"
METHODS = frozenset({"GET", "POST"})
_PATTERN = re.compile(r"[a-z]+(/([a-z]+|\{[a-z]+\}))*")


@dataclass(frozen=True, slots=True)
class HookRequest:
    """What came in. Names of headers are in lower case."""

    path: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes
    method: str = "POST"
    console_of: str | None = None
    """The tenant in whose console the browser is signed in that sends this; None if it is in none."""

    def form(self) -> dict[str, str]:
        """The fields of a form as browsers send it, the first value of each; nothing if the body is no form."""
        if self.headers.get("content-type", "").partition(";")[0].strip().lower() != FORM:
            return {}
        try:
            fields = parse_qsl(self.body.decode(), keep_blank_values=True, max_num_fields=MAX_FIELDS)
        except ValueError:
            return {}
        return dict(reversed(fields))


@dataclass(frozen=True, slots=True)
class HookAnswer:
    """What goes back: a status, and a JSON object or instead of it a `page` for people."""

    status: int
    body: dict[str, Any] = field(default_factory=dict[str, Any])
    page: str | None = None


Handler = Callable[["Calls", HookRequest], Awaitable[HookAnswer]]


@dataclass(frozen=True, slots=True)
class Hook:
    """One address below /hooks, such as `workflows/{run}/{node}`. `refusal` makes a page of what the server refuses."""

    pattern: str
    handler: Handler
    methods: tuple[str, ...] = ("POST",)
    refusal: Callable[[str], str] | None = None


def hook(
    pattern: str, *, methods: tuple[str, ...] = ("POST",), refusal: Callable[[str], str] | None = None
) -> Callable[[Handler], Hook]:
    """Declare the decorated handler as a hook. It checks its own secret, in constant time. A GET changes nothing."""
    if not _PATTERN.fullmatch(pattern):
        raise TypeError(f"{pattern!r} is no pattern of a hook, such as workflows/{{run}}/{{node}}")
    if not methods or not METHODS.issuperset(methods):
        raise TypeError(f"{pattern}: hooks are reached by {' or '.join(sorted(METHODS))}")

    def declare(handler: Handler) -> Hook:
        if not inspect.iscoroutinefunction(handler):
            raise TypeError(f"{handler.__name__}: hooks are async")
        return Hook(pattern, handler, methods, refusal)

    return declare
