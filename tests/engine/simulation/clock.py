"""An event loop without a clock of its own: when nothing is left to do, it is the time of the next timer.

Nothing in it waits for the world. What would run in a thread runs on the loop a moment later, so one seed is one order
of events. A handle belongs to the simulated process in whose context it was made: that of a dead process is dropped,
and that of one that is asleep is kept until it wakes up.
"""

import asyncio
import heapq
import os
import random
import secrets
import socket
import time
from collections.abc import Callable, Generator, MutableSet
from contextlib import contextmanager
from contextvars import Context, ContextVar, copy_context
from typing import Any, Protocol

from rookery.core import ids

START_S = 1_700_006_400.0
"""When every history begins: the first moment of a day long ago, so that no file is older than what happens."""
LONGEST_S = 30 * 86_400.0
"""A history that takes longer never comes to rest."""


class Host(Protocol):
    """Where a piece of work runs. What runs nowhere is the test's own."""

    @property
    def up(self) -> bool: ...
    @property
    def tasks(self) -> "MutableSet[asyncio.Task[Any]]": ...
    def hold(self, handle: asyncio.Handle) -> None:
        """Take a handle whose time has come while the host is not up."""


HOST: ContextVar[Host | None] = ContextVar("simulated host", default=None)


class Stuck(Exception):
    """Nothing is left that could ever happen, and somebody still waits."""


class VirtualLoop(asyncio.BaseEventLoop):
    """Runs in virtual time, in one thread."""

    def __init__(self, rng: random.Random) -> None:
        super().__init__()
        self.now_s = START_S
        self.rng = rng
        self.steps = 0
        self.set_task_factory(_task_of_its_host)

    def time(self) -> float:
        return self.now_s

    def call_soon_threadsafe(self, callback: Callable[..., Any], *args: Any, context: Any = None) -> asyncio.Handle:
        return self.call_soon(callback, *args, context=context)

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> "asyncio.Future[Any]":
        """Run it on the loop, a moment later. Whoever is gone by then has started it all the same, as with a thread."""
        future = self.create_future()

        def work() -> None:
            try:
                value = func(*args)
            except Exception as error:
                if not future.done():
                    future.set_exception(error)
            else:
                if not future.done():
                    future.set_result(value)

        self.call_later(self.rng.uniform(0.001, 0.02), work)
        return future

    def _run_once(self) -> None:
        """One round, as in `BaseEventLoop`, but time jumps instead of passing."""
        scheduled: list[asyncio.TimerHandle] = self._scheduled  # type: ignore[attr-defined]
        ready: Any = self._ready  # type: ignore[attr-defined]
        while scheduled and scheduled[0]._cancelled:  # type: ignore[attr-defined]
            heapq.heappop(scheduled)._scheduled = False  # type: ignore[attr-defined]
        if not ready:
            if not scheduled:
                raise Stuck("nothing is left to happen")
            self.now_s = max(self.now_s, scheduled[0].when())
            if self.now_s - START_S > LONGEST_S:
                raise Stuck("the history never comes to rest")
        while scheduled and scheduled[0].when() <= self.now_s:
            handle = heapq.heappop(scheduled)
            handle._scheduled = False  # type: ignore[attr-defined]
            ready.append(handle)
        for _ in range(len(ready)):
            self._run_one(ready.popleft())

    def _run_one(self, handle: Any) -> None:
        if handle._cancelled:
            return
        host = handle._context.get(HOST)
        if host is not None and not host.up:
            host.hold(handle)
            return
        self.steps += 1
        handle._run()

    def pass_time(self, seconds: float) -> None:
        """What would be slept through in a thread: time goes on, and nothing else happens meanwhile."""
        self.now_s += seconds

    def again(self, handles: list[asyncio.Handle]) -> None:
        """Run these, whose time came while their host was asleep."""
        self._ready.extend(handles)  # type: ignore[attr-defined]

    def _process_events(self, event_list: Any) -> None: ...
    def _write_to_self(self) -> None: ...


def _task_of_its_host(loop: asyncio.AbstractEventLoop, work: Any, context: Context | None = None) -> Any:
    context = context or copy_context()
    task = asyncio.Task(work, loop=loop, context=context)
    host = context.get(HOST)
    if host is not None:
        host.tasks.add(task)
    return task


@contextmanager
def virtual_time(loop: VirtualLoop) -> Generator[None]:
    """Let every clock show the loop's time, and let all that is random follow from its seed."""
    state = random.getstate()
    bits = random.Random(loop.rng.random())
    random.seed(loop.rng.random())
    changes: list[tuple[Any, str, Any]] = [
        (time, "time", lambda: loop.now_s),
        (time, "time_ns", lambda: int(loop.now_s * 1_000_000) * 1_000),
        (time, "monotonic", lambda: loop.now_s),
        (time, "monotonic_ns", lambda: int(loop.now_s * 1_000_000) * 1_000),
        (time, "sleep", loop.pass_time),
        (os, "urandom", bits.randbytes),
        (random, "_urandom", bits.randbytes),
        (secrets, "token_hex", lambda n=32: bits.randbytes(n).hex()),
        (socket, "gethostname", lambda: "simulated"),
        (os, "fsync", lambda fd: None),
        # Ids follow from the seed too, not from what was made before.
        (ids, "_last", 0),
    ]
    before = [(place, name, getattr(place, name)) for place, name, _ in changes]
    for place, name, value in changes:
        setattr(place, name, value)
    try:
        yield
    finally:
        for place, name, value in before:
            setattr(place, name, value)
        random.setstate(state)
