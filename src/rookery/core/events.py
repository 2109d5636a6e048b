"""What has happened. Domains tell each other through events, sent only after the commit."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that is now true. `name` is a past tense, such as `ScopeChanged`."""

    name: str
    tenant: str
    subject: str | None = None
    payload: dict[str, Any] = field(default_factory=dict[str, Any])


Listener = Callable[[Event], None]


class Events:
    """Hands each event to every listener, in order, on the thread that publishes."""

    def __init__(self) -> None:
        self._listeners: list[Listener] = []

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Call `listener` for every event from now on; the returned function ends that."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def publish(self, event: Event) -> None:
        """Tell everyone. Listeners must be quick and must not raise."""
        for listener in list(self._listeners):
            listener(event)
