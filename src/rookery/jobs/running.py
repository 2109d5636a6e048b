"""What a handler is handed: the job, and ways to the world that end when the job is no longer its own."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeVar

from rookery.core.actor import Actor
from rookery.core.call import Calls
from rookery.core.errors import ConfigurationError
from rookery.core.events import Event
from rookery.db.database import Database
from rookery.db.tx import Tx
from rookery.identity.binding import Binding
from rookery.identity.resolve import Resolver
from rookery.jobs.claims import Held, Row, fence, report
from rookery.jobs.kinds import Kind, Postponed
from rookery.lifecycle.pauses import Pause, Paused, Pauses

__all__ = ["Ground", "Postponed", "Running", "Superseded"]
T = TypeVar("T")


class Ground(Protocol):
    """What a worker stands on. A platform is one."""

    @property
    def calls(self) -> Calls: ...
    @property
    def resolver(self) -> Resolver: ...
    @property
    def database(self) -> Database: ...
    @property
    def kinds(self) -> Mapping[str, Kind]: ...


class Superseded(Exception):
    """The job is another worker's by now, or over. Nothing was written; the handler has nothing left to do."""


class Running:
    """One attempt at a job."""

    def __init__(self, row: Row, platform: Ground) -> None:
        self.row = row
        self.platform = platform
        self.id: int = row.id
        self.kind: str = row.kind
        self.tenant: str = row.tenant
        self.attempt: int = row.attempt
        self.key: str | None = row.key
        self.events: list[Event] = []

    async def read(self, work: Callable[[Tx], T]) -> T:
        """Run `work(tx)` in a read-only transaction."""
        return await self.platform.database.read(work)

    async def write(self, work: Callable[[Tx], T]) -> T:
        """Run `work(tx)` and commit it, if the job is still ours; Superseded, and nothing done, if not."""

        def fenced(tx: Tx) -> T:
            fence(tx, self.id, self.attempt)
            return work(tx)

        try:
            return await self.platform.database.change(fenced)
        except Held:
            raise Superseded from None

    async def progress(self, done: float, total: float | None = None, message: str = "") -> None:
        """Say how far the job is."""
        told = {"done": done, "total": total, "message": message}
        try:
            await self.platform.database.change(lambda tx: report(tx, self.row, told))
        except Held:
            raise Superseded from None

    def publish(self, name: str, *, subject: str | None = None, **payload: Any) -> None:
        """Tell the other domains of this process, once the job is done."""
        self.events.append(Event(name=name, tenant=self.tenant, subject=subject, payload=payload))

    async def actor(self, **binding: Any) -> Actor:
        """Who a session of this tenant with such a binding would be, as the database has it now. Paused if it is."""
        bound = Binding(tenant=self.tenant, **binding)

        def look(tx: Tx) -> tuple[Actor, Pause | None]:
            actor = self.platform.resolver.resolve(tx, bound).actor
            return actor, Pauses(tx, self.tenant).holding_actor(actor) if actor.paused else None

        actor, pause = await self.read(look)
        if pause is not None:
            raise Paused(pause, self.tenant)
        return actor

    async def run_kind(self, kind: str, args: Mapping[str, Any]) -> None:
        """Do what another kind of job does, as a part of this one."""
        known = self.platform.kinds.get(kind)
        if known is None:
            raise ConfigurationError(f"there is no kind of job {kind} here", hint="a domain is missing or too old")
        finish = await known.handler(self, known.args.model_validate(dict(args)))
        if finish is not None:
            await self.write(finish)
