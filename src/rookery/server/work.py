"""A worker as a part of a process: started with the settings of a platform, ended with it, missed if it fails."""

import asyncio
import logging
from typing import TYPE_CHECKING

from rookery.core.errors import InternalError
from rookery.jobs.worker import GRACE_S, Worker
from rookery.sessions.manager import AgentSessions

if TYPE_CHECKING:
    from rookery.app import Platform

log = logging.getLogger("rookery.jobs")


class Work:
    """Deferred work, begun on the running loop. `ended` is done when the worker is, whether it was told to or not."""

    def __init__(
        self,
        platform: "Platform",
        *,
        queues: tuple[str, ...] = (),
        concurrency: int | None = None,
        grace_s: float = GRACE_S,
    ) -> None:
        settings = platform.settings
        self.worker = Worker(
            platform,
            concurrency=concurrency or settings.worker_concurrency,
            lease_s=settings.job_lease_s,
            queues=queues,
            keep_days=settings.job_keep_days,
            grace_s=grace_s,
        )
        self._sessions: AgentSessions = platform.calls.facts["sessions"]
        self.ended = asyncio.create_task(self.worker.run(), name="worker")
        self.ended.add_done_callback(_tell)

    def stop(self, *, at_once: bool = False) -> None:
        """Take nothing more; `at_once` gives back what is unfinished without waiting for it."""
        self._sessions.stop_soon()
        self.worker.stop(at_once=at_once)

    async def end(self) -> None:
        """Take nothing more, and give back what is unfinished after a moment. Raises nothing: see `check`.

        The agents of this process are stopped with it.
        """
        self.stop()
        await asyncio.wait([self.ended])
        try:
            await self._sessions.close()
        except Exception:
            log.exception("not every agent could be stopped")

    def check(self) -> None:
        """Raise if the worker has ended with an error, so that the process does not end as if all were well."""
        if self.ended.cancelled() or self.ended.exception() is not None:
            raise InternalError("the worker ended with an error, and the process with it", hint="the log says where")


def _tell(ended: asyncio.Task[None]) -> None:
    if ended.cancelled():
        log.critical("the worker was cancelled")
    elif (error := ended.exception()) is not None:
        log.critical("the worker ended with an error", exc_info=error)
