"""Work in threads that can be stopped.

A handler that loops or hangs must not hold up anyone else. Every job has a deadline; a watch interrupts the running
statement and raises `Stopped` into the thread. A thread that cannot be stopped is left behind and replaced.
"""

import asyncio
import ctypes
import logging
import threading
import time
import traceback
from collections.abc import Callable, Iterable
from contextvars import copy_context
from typing import Any, Generic, Literal, Protocol, TypeVar, cast

from rookery.core.errors import RequestCancelled, RookeryError, TimedOut

T = TypeVar("T")
StopReason = Literal["timeout", "cancelled"]
GRACE_S = 2.0
AGAIN_S = 0.25
TICK_S = 0.05
log = logging.getLogger("rookery.threads")


class Stopped(BaseException):
    """Raised into a handler's thread to end it. Not an Exception, so that a handler's own `except` lets it pass."""


class Lost(BaseException):
    """Tells a thread that comes back from its work that it has been replaced: it must end and touch nothing."""


def _raise_into(thread: int, kind: type[BaseException] | None) -> None:
    error = ctypes.py_object(kind) if kind is not None else ctypes.c_void_p(None)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), error)


def _let_go(error: BaseException | None) -> None:
    """Free what the frames of stopped work hold: SQLite neither rolls back nor closes while a cursor is open."""
    while error is not None:
        traceback.clear_frames(error.__traceback__)
        error = error.__context__


class Job(Generic[T]):
    """One piece of work with a deadline, asked for on an event loop and done in a thread."""

    def __init__(self, work: Callable[[Any], T], timeout_s: float, loop: asyncio.AbstractEventLoop) -> None:
        self.work = work
        self.timeout_s = timeout_s
        self.deadline = time.monotonic() + timeout_s
        self.loop = loop
        self.future: asyncio.Future[T] = loop.create_future()
        self.reason: StopReason | None = None
        self.on_abandoned: Callable[[Job[Any]], None] | None = None
        self.on_success: Callable[[], None] | None = None
        """Called on the event loop once the work is done for good, whether anybody waits for it or not."""
        self.finished = False
        # What the caller's task has bound, such as the ids that go on every line of the log.
        self._context = copy_context()
        self._lock = threading.Lock()
        self._thread: int | None = None
        self._interrupt: Callable[[], None] | None = None
        self._asked_at = 0.0
        self._raised_at = 0.0
        self._ran = False
        self._lost = False

    def run(self, argument: Any, interrupt: Callable[[], None]) -> T:
        """Do the work in this thread. Raises `Stopped` if the time is over or the caller has gone.

        Once this has returned, or raised what the work raised, the job can no longer be stopped: what it did is
        committed or undone as a whole, and the caller is told which.
        """
        try:
            try:
                with self._lock:
                    if self.reason is not None:
                        raise Stopped
                    self._thread, self._interrupt, self._ran = threading.get_ident(), interrupt, False
                value = self._context.run(self.work, argument)
            finally:
                self._leave()
        except BaseException as error:
            # A stop can hit the first leaving before it has begun.
            self._leave()
            if self.reason is not None:
                _let_go(error)
            self._refuse_if_stopped()
            if isinstance(error, Exception) and not isinstance(error, StopIteration):
                raise
            # It would end the thread, or could not be put into a future.
            raise RuntimeError(f"the work raised {type(error).__name__}") from error
        self._refuse_if_stopped()
        return value

    def _leave(self) -> None:
        # A stop that was asked for in the last moment may still be under way to this thread: take it back, or
        # swallow it here, so that it cannot hit whatever the thread does next.
        while True:
            try:
                with self._lock:
                    if self.reason is None:
                        self._ran = True
                    elif self._thread is not None or self._lost:
                        _raise_into(threading.get_ident(), None)
                    self._thread = None
                return
            except Stopped:
                continue

    def _refuse_if_stopped(self) -> None:
        if self._lost:
            raise Lost from None
        if self.reason is not None:
            raise Stopped from None

    def restart(self) -> None:
        """Give the job its whole time again: it has to run once more through no fault of its own."""
        self.deadline = time.monotonic() + self.timeout_s

    def stop(self, reason: StopReason) -> None:
        """Ask the work to end. Safe from any thread, any number of times."""
        with self._lock:
            if self.finished or self._ran:
                return
            now = time.monotonic()
            if self.reason is None:
                self.reason, self._asked_at = reason, now
            # Not at every look: a second stop would hit the handler's cleaning up after the first.
            if self._thread is None or self._interrupt is None or now - self._raised_at < AGAIN_S:
                return
            self._raised_at, interrupt = now, self._interrupt
            _raise_into(self._thread, Stopped)
        # Outside the lock, since it may take a while. It hits nobody else: the connection of a stopped job is closed.
        try:
            interrupt()
        except Exception as error:
            log.debug("a statement could not be interrupted: %s", error)

    def give_up(self) -> None:
        """The caller has gone. The watch ends the work at its next look, so this never blocks an event loop."""
        with self._lock:
            if self.reason is None and not self.finished and not self._ran:
                self.reason, self._asked_at = "cancelled", time.monotonic()

    def abandon(self) -> bool:
        """Leave the thread to itself if it is still in the work. It will end with `Lost` if it ever comes back."""
        with self._lock:
            self._lost = self._thread is not None
            self._thread = None
            return self._lost

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
    by_loop: dict[asyncio.AbstractEventLoop, list[tuple[Job[Any], Any, BaseException | None]]] = {}
    for job, value, error in outcomes:
        job.finished = True
        WATCH.forget(job)
        by_loop.setdefault(job.loop, []).append((job, value, error))
    for loop, results in by_loop.items():
        wake(loop, lambda results=results: _set_all(results))


def wake(loop: asyncio.AbstractEventLoop, call: Callable[[], None]) -> None:
    """Run `call` on `loop`; a loop that has closed has nobody waiting."""
    try:
        loop.call_soon_threadsafe(call)
    except RuntimeError:
        log.debug("the event loop closed before its answer came")


def _set_all(results: list[tuple[Job[Any], Any, BaseException | None]]) -> None:
    for job, value, error in results:
        future = job.future
        if error is None and job.on_success is not None:
            # Also for a caller that has gone meanwhile: what was done was done.
            try:
                job.on_success()
            except Exception:
                log.exception("what follows a job failed")
        if future.done():
            continue
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(value)


class Watched(Protocol):
    """What the watch looks after. `stop` is called again and again once the deadline is over."""

    @property
    def deadline(self) -> float: ...
    @property
    def reason(self) -> StopReason | None: ...
    def stop(self, reason: StopReason) -> None: ...


class Watch:
    """Looks after every unfinished job. Sleeps while there is none."""

    def __init__(self) -> None:
        self._jobs: set[Watched] = set()
        self._wakeup = threading.Event()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def add(self, job: Watched) -> None:
        with self._lock:
            self._jobs.add(job)
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._loop, name="rookery-watch", daemon=True)
                self._thread.start()
        self._wakeup.set()

    def forget(self, job: Watched) -> None:
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
                try:
                    if isinstance(job, Job) and job.overdue(now):
                        self._abandon(cast("Job[Any]", job))
                    elif job.reason is not None or now > job.deadline:
                        job.stop(job.reason or "timeout")
                except Exception:
                    # Nobody else looks after the other jobs.
                    log.exception("a job could not be stopped")

    def _abandon(self, job: Job[Any]) -> None:
        try:
            if job.abandon() and job.on_abandoned is not None:
                log.error("a thread could not be stopped and is replaced", extra={"timeout_s": job.timeout_s})
                job.on_abandoned(job)
        finally:
            settle([(job, None, job.stop_error())])


WATCH = Watch()


async def outcome_of(job: Job[T]) -> T:
    """Wait for a job that was handed to a thread; a caller that goes away stops it."""
    try:
        return await job.future
    except asyncio.CancelledError:
        job.give_up()
        raise
