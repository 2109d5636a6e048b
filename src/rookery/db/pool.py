"""A few threads, each with its own connection, that take jobs in order."""

import contextlib
import logging
import queue
import threading
from collections.abc import Callable
from typing import Any, Protocol

from rookery.core.errors import ServiceUnavailable
from rookery.db.threads import WATCH, Job, Lost, Stopped, settle

log = logging.getLogger("rookery.pool")


class Executor(Protocol):
    """One thread's way to run jobs. `run` answers the value, or raises; after `Stopped` it is closed and replaced."""

    def run(self, job: Job[Any]) -> Any: ...

    def rescue(self, job: Job[Any]) -> None:
        """Undo from another thread what `job` holds, whose own thread hangs."""

    def close(self) -> None: ...


class Pool:
    """At most `size` threads, started when needed. A thread that cannot be stopped is replaced by a new one."""

    def __init__(self, name: str, size: int, open_executor: Callable[[], Executor]) -> None:
        self._name = name
        self._size = size
        self._open = open_executor
        self._queue: queue.SimpleQueue[Job[Any] | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        # Counted only until every thread is there: from then on none is started but in place of a lost one.
        self._unfinished = 0
        self._closed = False

    def submit(self, job: Job[Any]) -> None:
        """Run the job as soon as a thread is free. A closed pool refuses."""
        WATCH.add(job)
        if len(self._threads) < self._size:
            with self._lock:
                self._unfinished += 1
                if len(self._threads) < min(self._unfinished, self._size) and not self._closed:
                    self._start()
        self._queue.put(job)
        # Looked at last: whoever closes the pool sets it before the threads are told to end.
        if self._closed:
            self._refuse_rest()

    def close(self) -> None:
        """Let every thread finish what it has and end."""
        with self._lock:
            self._closed = True
            threads = list(self._threads)
        self._queue.put(None)
        for thread in threads:
            thread.join(timeout=5)

    def _start(self) -> None:
        thread = threading.Thread(target=self._serve, name=f"rookery-{self._name}", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _replace(self, executor: Executor | None, job: Job[Any], thread: threading.Thread) -> None:
        """Called from the watch, which must not wait for a database."""
        with self._lock:
            self._threads.remove(thread)
            self._unfinished -= 1
            self._start()
        name = f"rookery-{self._name}-rescue"
        threading.Thread(target=_rescue, args=(executor, job), name=name, daemon=True).start()

    def _refuse_rest(self) -> None:
        """Refuse what came too late for the threads, and leave them the sign to end."""
        with contextlib.suppress(queue.Empty):
            while True:
                if (job := self._queue.get_nowait()) is not None:
                    settle([(job, None, ServiceUnavailable("the database is closed", hint="try again later"))])
        self._queue.put(None)

    def _serve(self) -> None:
        executor: Executor | None = None
        thread = threading.current_thread()

        def abandoned(job: Job[Any]) -> None:
            self._replace(executor, job, thread)

        while (job := self._queue.get()) is not None:
            job.on_abandoned = abandoned
            value: Any = None
            error: BaseException | None = None
            try:
                executor = executor or self._open()
                value = executor.run(job)
            except Lost:
                return
            except Stopped:
                error = job.stop_error()
                _close(executor)
                executor = None
            except Exception as failure:
                error = failure
            if len(self._threads) < self._size:
                with self._lock:
                    self._unfinished -= 1
            settle([(job, value, error)])
        # One for each of the others.
        self._queue.put(None)
        _close(executor)


def _close(executor: Executor | None) -> None:
    if executor is not None:
        try:
            executor.close()
        except Exception as error:
            log.warning("a connection could not be closed: %s", error)


def _rescue(executor: Executor | None, job: Job[Any]) -> None:
    try:
        if executor is not None:
            executor.rescue(job)
    except Exception:
        log.exception("a hanging transaction could not be ended")
    finally:
        _close(executor)
