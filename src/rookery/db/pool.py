"""A few threads, each with its own connection, that take jobs in order."""

import logging
import queue
import threading
from collections.abc import Callable
from typing import Any, Protocol

from rookery.db.threads import WATCH, Job, Stopped, settle

log = logging.getLogger("rookery.pool")


class Executor(Protocol):
    """One thread's way to run jobs. `run` answers the value, or raises; after `Stopped` it is closed and replaced."""

    def run(self, job: Job[Any]) -> Any: ...
    def close(self) -> None: ...


class _Worker:
    def __init__(self) -> None:
        self.lost = False


class Pool:
    """At most `size` threads, started when needed. A thread that cannot be stopped is replaced by a new one."""

    def __init__(self, name: str, size: int, open_executor: Callable[[], Executor]) -> None:
        self._name = name
        self._size = size
        self._open = open_executor
        self._queue: queue.SimpleQueue[Job[Any] | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._idle = 0
        self.replaced = 0

    def submit(self, job: Job[Any]) -> None:
        WATCH.add(job)
        with self._lock:
            if self._idle == 0 and len(self._threads) < self._size:
                self._start()
        self._queue.put(job)

    def close(self) -> None:
        """Let every thread finish what it has and end."""
        with self._lock:
            threads = list(self._threads)
        for _ in threads:
            self._queue.put(None)
        for thread in threads:
            thread.join(timeout=5)

    def _start(self) -> None:
        worker = _Worker()
        thread = threading.Thread(target=self._serve, args=(worker,), name=f"rookery-{self._name}", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _replace(self, worker: _Worker, thread: threading.Thread) -> None:
        with self._lock:
            worker.lost = True
            self.replaced += 1
            if thread in self._threads:
                self._threads.remove(thread)
            self._start()

    def _serve(self, worker: _Worker) -> None:
        executor: Executor | None = None
        thread = threading.current_thread()

        def abandoned() -> None:
            self._replace(worker, thread)

        while not worker.lost:
            with self._lock:
                self._idle += 1
            job = self._queue.get()
            with self._lock:
                self._idle -= 1
            if job is None:
                break
            job.on_abandoned = abandoned
            value: Any = None
            error: BaseException | None = None
            try:
                executor = executor or self._open()
                value = executor.run(job)
            except Stopped:
                error = job.stop_error()
                if executor is not None:
                    executor.close()
                executor = None
            except Exception as failure:
                error = failure
            settle([(job, value, error)])
        if executor is not None:
            executor.close()
