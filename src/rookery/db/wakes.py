"""Who wants to know at once that something was committed, and telling them."""

import threading
from collections.abc import Callable, Iterable

Listener = Callable[[str], None]


class Wakes:
    """Listeners of one process. A name says what was committed; the empty one, that another process did something."""

    def __init__(self) -> None:
        self._listeners: list[Listener] = []
        self._lock = threading.Lock()

    def add(self, listener: Listener) -> Callable[[], None]:
        """Call `listener` from now on, from any thread; the returned function ends that."""
        with self._lock:
            self._listeners.append(listener)

        def remove() -> None:
            with self._lock:
                if listener in self._listeners:
                    self._listeners.remove(listener)

        return remove

    def tell(self, names: Iterable[str]) -> None:
        """Wake everyone, by each name once. Listeners must be quick and must not raise."""
        with self._lock:
            listeners = list(self._listeners)
        for name in set(names):
            for listener in listeners:
                listener(name)

    @property
    def wanted(self) -> bool:
        return bool(self._listeners)
