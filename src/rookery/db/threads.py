"""Work in threads that can be stopped.

A handler that loops or hangs must not hold up anyone else. Every job has a deadline; a watch interrupts the running
statement and raises `Stopped` into the thread. A thread that cannot be stopped is left behind and replaced.
"""

import asyncio
import ctypes
import logging
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any, Generic, Literal, TypeVar

from rookery.core.errors import RequestCancelled, RookeryError, TimedOut

T = TypeVar("T")
StopReason = Literal["timeout", "cancelled"]
GRACE_S = 2.0
TICK_S = 0.05
log = logging.getLogger("rookery.threads")


class Stopped(BaseException):
    """Raised into a handler's thread to end it. Not an Exception, so that a handler's own `except` lets it pass."""


def _raise_into(thread: int, kind: type[BaseException] | None) -> None:
    error = ctypes.py_object(kind) if kind is not None else ctypes.c_void_p(None)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), error)


class Job(Generic[T]):
    """One piece of work with a deadline, asked for on an event loop and done in a thread."""

    def __init__(self, work: Callable[[Any], T], timeout_s: float, loop: asyncio.AbstractEventLoop) -> None:
        self.work = work
        self.timeout_s = timeout_s
        self.deadline = time.monotonic() + timeout_s
        self.loop = loop
        self.future: asyncio.Future[T] = loop.create_future()
        self.reason: StopReason | None = None
        self.on_abandoned: Callable[[], None] | None = None
        self.finished = False
        self._lock = threading.Lock()
        self._thread: int | None = None
        self._interrupt: Callable[[], None] | None = None
        self._asked_at = 0.0

    def run(self, argument: Any, interrupt: Callable[[], None]) -> T:
        """Do the work in this thread. Raises `Stopped` if the time is over or the caller has gone."""
        with self._lock:
            if self.reason is not None:
                raise Stopped
            self._thread, self._interrupt = threading.get_ident(), interrupt
        try:
            return self.work(argument)
        except Exception:
            if self.reason is not None:
                raise Stopped from None
            raise
        finally:
            self._leave()

    def _leave(self) -> None:
        # A stop that was asked for in the last moment may still be under way to this thread: take it back, or
        # swallow it here, so that it cannot hit whatever the thread does next.
        while True:
            try:
                with self._lock:
                    if self._thread is not None:
                        _raise_into(self._thread, None)
                    self._thread = None
                return
            except Stopped:
                continue

    def stop(self, reason: StopReason) -> None:
        """Ask the work to end. Safe from any thread, any number of times."""
        with self._lock:
            if self.finished:
                return
            if self.reason is None:
                self.reason, self._asked_at = reason, time.monotonic()
            if self._thread is not None and self._interrupt is not None:
                self._interrupt()
                _raise_into(self._thread, Stopped)

    def give_up(self) -> None:
        """The caller has gone. The watch ends the work at its next look, so this never blocks an event loop."""
        with self._lock:
            if self.reason is None and not self.finished:
                self.reason, self._asked_at = "cancelled", time.monotonic()

    @property
    def running(self) -> bool:
        return self._thread is not None

    def overdue(self, now: float) -> bool:
        """Whether the work was asked to stop and has ignored it for too long."""
        return self.reason is not None and now - self._asked_at > GRACE_S and not self.finished

    def stop_error(self) -> RookeryError:
        """What the caller reads about work that was stopped."""
        if self.reason == "cancelled":
            return RequestCancelled("the call was cancelled and left nothing behind")
        return TimedOut(
            f"the call did not finish within {self.timeout_s:g} s and was undone", hint="ask for less at once"
        )


def settle(outcomes: Iterable[tuple[Job[Any], Any, BaseException | None]]) -> None:
    """Hand each job its result or error, with one wake-up per event loop."""
    by_loop: dict[asyncio.AbstractEventLoop, list[tuple[asyncio.Future[Any], Any, BaseException | None]]] = {}
    for job, value, error in outcomes:
        job.finished = True
        WATCH.forget(job)
        by_loop.setdefault(job.loop, []).append((job.future, value, error))
    for loop, results in by_loop.items():
        wake(loop, lambda results=results: _set_all(results))


def wake(loop: asyncio.AbstractEventLoop, call: Callable[[], None]) -> None:
    """Run `call` on `loop`; a loop that has closed has nobody waiting."""
    try:
        loop.call_soon_threadsafe(call)
    except RuntimeError:
        log.debug("the event loop closed before its answer came")


def _set_all(results: list[tuple[asyncio.Future[Any], Any, BaseException | None]]) -> None:
    for future, value, error in results:
        if future.done():
            continue
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(value)


class Watch:
    """Looks after every unfinished job. Sleeps while there is none."""

    def __init__(self) -> None:
        self._jobs: set[Job[Any]] = set()
        self._wakeup = threading.Event()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def add(self, job: Job[Any]) -> None:
        with self._lock:
            self._jobs.add(job)
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._loop, name="rookery-watch", daemon=True)
                self._thread.start()
        self._wakeup.set()

    def forget(self, job: Job[Any]) -> None:
        with self._lock:
            self._jobs.discard(job)

    def _loop(self) -> None:
        while True:
            self._wakeup.wait()
            time.sleep(TICK_S)
            with self._lock:
                jobs = list(self._jobs)
                if not jobs:
                    self._wakeup.clear()
            now = time.monotonic()
            for job in jobs:
                if job.overdue(now):
                    self._abandon(job)
                elif job.reason is not None or now > job.deadline:
                    job.stop(job.reason or "timeout")

    def _abandon(self, job: Job[Any]) -> None:
        if job.running and job.on_abandoned is not None:
            log.error("a thread could not be stopped and is replaced", extra={"timeout_s": job.timeout_s})
            job.on_abandoned()
        settle([(job, None, job.stop_error())])


WATCH = Watch()


async def outcome_of(job: Job[T]) -> T:
    """Wait for a job that was handed to a thread; a caller that goes away stops it."""
    try:
        return await job.future
    except asyncio.CancelledError:
        job.give_up()
        raise
