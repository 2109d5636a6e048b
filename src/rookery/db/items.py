"""What a writer takes: changes with their records, and records by themselves."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from rookery.core.call import Records
from rookery.core.record import Record
from rookery.db.threads import Job, wake

T = TypeVar("T")
BATCH = 256


class WriteJob(Job[T]):
    """A job whose changes and records are committed together."""

    def __init__(
        self, work: Callable[[Any], T], records: Records, timeout_s: float, loop: asyncio.AbstractEventLoop
    ) -> None:
        super().__init__(work, timeout_s, loop)
        self.records = records


class Note:
    """An audit record by itself. A note that is not durable survives a crash of the process, not a power cut."""

    __slots__ = ("durable", "future", "loop", "record")

    def __init__(self, record: Record, loop: asyncio.AbstractEventLoop, *, durable: bool) -> None:
        self.record = record
        self.loop = loop
        self.durable = durable
        self.future: asyncio.Future[None] = loop.create_future()
        # A caller that was cancelled no longer looks at its note.
        self.future.add_done_callback(lambda future: future.cancelled() or future.exception())


Item = WriteJob[Any] | Note


class Outbox:
    """Collects what one event loop asks for in one round and hands it over at once.

    Waking the writer for each item made it commit batches of two or three while the loop was still at it.
    """

    __slots__ = ("_items", "_loop", "_put")

    def __init__(self, loop: asyncio.AbstractEventLoop, put: Callable[[list[Item]], None]) -> None:
        self._loop = loop
        self._put = put
        self._items: list[Item] = []

    def add(self, item: Item) -> None:
        if not self._items:
            self._loop.call_soon(self.flush)
        self._items.append(item)

    def flush(self) -> None:
        """Hand over what is there."""
        items, self._items = self._items, []
        if items:
            self._put(items)


def settle_notes(batch: Sequence[Item], error: Exception | None) -> None:
    """Tell the callers of the notes in `batch`, with one wake-up per event loop."""
    by_loop: dict[asyncio.AbstractEventLoop, list[Note]] = {}
    for item in batch:
        if isinstance(item, Note):
            by_loop.setdefault(item.loop, []).append(item)
    for loop, notes in by_loop.items():
        wake(loop, lambda notes=notes: _set_notes(notes, error))


def _set_notes(notes: list[Note], error: Exception | None) -> None:
    for note in notes:
        if note.future.done():
            continue
        if error is None:
            note.future.set_result(None)
        else:
            note.future.set_exception(error)
