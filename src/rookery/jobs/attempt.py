"""One attempt at a job, from its arguments to its end in the table."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any, Literal

from pydantic import ValidationError

from rookery.core.errors import DatabaseError, RookeryError
from rookery.db.tx import Tx
from rookery.jobs.claims import MAX_LOSSES, Held, Row, again, backoff_ms, end, fence, said
from rookery.jobs.kinds import Ended, Finish, Kind
from rookery.jobs.running import Ground, Postponed, Running, Superseded

log = logging.getLogger("rookery.jobs")
PAUSES_S = (0.05, 0.1, 0.2, 0.5, 1, 2, 4)
Why = Literal["cancelled", "lost", "stopping"]


def given_up(kind: Kind, row: Row, state: Literal["failed", "cancelled"], error: str) -> Ended:
    """What a kind is told of a job that is given up, with its arguments even if they are no longer valid."""
    try:
        args: Any = kind.args.model_validate(row.args)
    except ValidationError:
        args = kind.args.model_construct(**row.args)
    return Ended(row.id, row.tenant, state, said(error), args)


class Attempt:
    """A job that this process is at. `stop` ends it from outside, for one of three reasons.

    `kept` is when its lease was asked for last, by the clock of this process that never goes back.
    """

    def __init__(self, row: Row, ground: Ground, *, kept: float) -> None:
        self.row = row
        self.kept = kept
        self.job = Running(row, ground)
        self.kind: Kind = ground.kinds[row.kind]
        self.why: Why | None = None
        self._ground = ground
        self._task: asyncio.Task[None] | None = None
        self._begun = False

    @property
    def name(self) -> tuple[int, int]:
        return self.row.id, self.row.attempt

    def start(self, done: Callable[["Attempt"], None]) -> None:
        """Begin, on the running loop; `done` is called when nothing is left to do."""
        self._task = asyncio.create_task(self._run(), name=f"job {self.row.id}")
        self._task.add_done_callback(lambda task: done(self))

    def stop(self, why: Why) -> None:
        """Cancel the handler. The first reason counts."""
        if self._task is not None and not self._task.done() and self.why is None:
            self.why = why
            # A task that is cancelled before its first step never takes one, and the job would not be given back.
            if self._begun:
                self._task.cancel()

    async def ended(self) -> None:
        """Wait until nothing is left to do."""
        if self._task is not None:
            await asyncio.wait([self._task])

    async def _run(self) -> None:
        self._begun = True
        if self.why is not None:
            await self._stopped()
            return
        try:
            finish = await self._handle()
            if finish is not False:
                await self._complete(finish)
        except (Held, Superseded):
            log.warning("job %s %s is over, or another worker's by now", self.row.kind, self.row.id)
        except asyncio.CancelledError:
            await self._stopped()
        except Exception:
            # The table still has it as running; when the lease is over somebody tries again.
            log.exception("job %s %s could not be brought to an end", self.row.kind, self.row.id)

    async def _handle(self) -> Finish | Literal[False]:
        """What is left to do with the end of the job; False if it came to an end without success."""
        if self.row.cancel:
            await self._give_up("cancelled", "cancelled")
            return False
        if self.row.losses > MAX_LOSSES:
            await self._give_up("failed", f"{self.row.losses} workers ended without finishing it")
            return False
        try:
            args = self.kind.args.model_validate(self.row.args)
        except ValidationError as error:
            await self._give_up("failed", f"the arguments cannot be read: {error.errors()[0]['msg']}")
            return False
        try:
            async with asyncio.timeout(self.kind.timeout_s):
                return await self.kind.handler(self.job, args)
        except (Superseded, Held):
            raise
        except Postponed as later:
            await self._postpone(later)
        except TimeoutError as error:
            limit = self.kind.timeout_s
            await self._failed(str(error) or (f"not done within {limit:g} s" if limit else "something took too long"))
        except DatabaseError as error:
            await self._robbed(f"{error.code}: {error.message}")
        except RookeryError as error:
            await self._failed(f"{error.code}: {error.message}")
        except (Exception, SystemExit) as error:
            log.exception("job %s %s failed", self.row.kind, self.row.id)
            await self._failed(f"{type(error).__name__}: {error}")
        return False

    async def _complete(self, finish: Finish) -> None:
        def work(tx: Tx) -> None:
            if finish is not None:
                fence(tx, self.row.id, self.row.attempt)
                finish(tx)
            end(tx, self.row, "done")

        try:
            # Told with the commit: whoever stops this attempt a moment later has not undone it.
            await self._commit(work, self._publish)
        except (Held, DatabaseError, asyncio.CancelledError):
            raise
        except Exception as error:
            log.exception("job %s %s failed at its end", self.row.kind, self.row.id)
            await self._failed(f"{type(error).__name__}: {error}")

    def _publish(self) -> None:
        for event in self.job.events:
            self._ground.calls.events.publish(event)

    async def _failed(self, error: str) -> None:
        if self.row.failures + 1 < self.row.attempts:
            delay = backoff_ms(self.row)
            await self._commit(lambda tx: again(tx, self.row, error, failed=True, delay_ms=delay))
        else:
            await self._give_up("failed", error)

    async def _postpone(self, later: Postponed) -> None:
        def work(tx: Tx) -> None:
            if later.holds is None or later.holds(tx):
                again(tx, self.row, later.why, delay_ms=round(later.delay_s * 1000), until=later.until)
            else:
                again(tx, self.row, later.why)

        await self._commit(work)

    async def _robbed(self, error: str) -> None:
        """The database failed the handler, which is no fault of the job: as if its worker had died."""
        if self.row.losses < MAX_LOSSES:
            delay = backoff_ms(self.row)
            await self._commit(lambda tx: again(tx, self.row, error, lost=True, delay_ms=delay))
        else:
            await self._give_up("failed", error)

    async def _commit(self, work: Callable[[Tx], None], on_commit: Callable[[], None] | None = None) -> None:
        """Write the end of the attempt, also if the database is out of reach for a while; the fence keeps it single."""
        for pause_s in PAUSES_S:
            try:
                await self._ground.database.write(work, records=lambda error: [], on_commit=on_commit)
                return
            except DatabaseError as error:
                log.warning("job %s %s waits for the database: %s", self.row.kind, self.row.id, error.message)
                await asyncio.sleep(pause_s)
        await self._ground.database.write(work, records=lambda error: [], on_commit=on_commit)

    async def _give_up(self, state: Literal["failed", "cancelled"], error: str) -> None:
        def work(tx: Tx) -> None:
            end(tx, self.row, state, error, failed=state == "failed")
            if self.kind.on_ended is not None:
                self.kind.on_ended(tx, given_up(self.kind, self.row, state, error))

        try:
            await self._commit(work)
        except (Held, DatabaseError, asyncio.CancelledError):
            raise
        except Exception:
            if self.row.losses <= MAX_LOSSES:
                raise
            # What should follow has failed as often as the job itself: nobody is helped by trying it for ever.
            log.critical("what follows from the end of %s %s is not done", self.row.kind, self.row.id, exc_info=True)
            await self._commit(lambda tx: end(tx, self.row, state, error, failed=state == "failed"))

    async def _stopped(self) -> None:
        """The handler was cancelled: by whoever cancelled the job, or because this worker may not or will not go on."""
        try:
            if self.why == "cancelled":
                await self._give_up("cancelled", "cancelled while it ran")
            elif self.why == "stopping":
                await self._commit(lambda tx: again(tx, self.row, None))
            elif self.why is None:
                await self._failed("the handler was cancelled from inside")
        except Held:
            log.warning("job %s %s is over, or another worker's by now", self.row.kind, self.row.id)
        except Exception:
            log.exception("job %s %s could not be given back", self.row.kind, self.row.id)
