"""The declaration of a kind of job: `@job` beside its handler is the only place where it is named."""

import inspect
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_type_hints

from pydantic import BaseModel, ConfigDict

from rookery.core.errors import ConfigurationError
from rookery.db.tx import Tx

if TYPE_CHECKING:
    from rookery.jobs.running import Running

Args = TypeVar("Args", bound=BaseModel)
Finish = Callable[[Tx], Any] | None
Handler = Callable[["Running", Any], Awaitable[Finish]]
_NAME = re.compile(r"[a-z][a-z0-9_]*\.[a-z][a-z0-9_]*")


class JobArgs(BaseModel):
    """Base of a kind's arguments. Rows of an older version stay readable: what is not known any more is left out."""

    model_config = ConfigDict(extra="ignore", frozen=True)


@dataclass(frozen=True, slots=True)
class Ended:
    """A job that will not be done."""

    job_id: int
    tenant: str
    state: Literal["failed", "cancelled"]
    error: str
    args: Any


class Postponed(Exception):
    """Raised by a handler that may not do its job now: it waits again, and the attempt counts for nothing.

    With `until` it is due as soon as somebody releases what waits for that name, and after `delay_s` in any case.
    `holds` is asked in the transaction in which it is put back, and has to keep the answer true until its commit: what
    was released before that moment would not be released again.
    """

    def __init__(
        self, why: str, *, delay_s: float, until: str | None = None, holds: Callable[[Tx], bool] | None = None
    ) -> None:
        super().__init__(why)
        self.why = why
        self.delay_s = delay_s
        self.until = until
        self.holds = holds


@dataclass(slots=True)
class Kind:
    """One kind of job: how it is done, how often it is tried, and what happens when it is given up."""

    name: str
    handler: Handler
    args: type[BaseModel]
    queue: str
    attempts: int
    backoff_s: float
    timeout_s: float | None
    lasting: bool
    """Whether it waits for others, such as an agent, and may take hours."""
    step: int
    """A lasting job may wait for jobs of later steps only. Each step from 1 on has some places to itself."""
    on_ended: Callable[[Tx, Ended], None] | None = field(default=None)

    def ended(self, hook: Callable[[Tx, Ended], None]) -> Callable[[Tx, Ended], None]:
        """Let `hook` run in the transaction in which a job of this kind fails for good or is cancelled."""
        self.on_ended = hook
        return hook


def job(
    name: str,
    *,
    queue: str = "default",
    attempts: int = 3,
    backoff_s: float = 5.0,
    timeout_s: float | None = None,
    lasting: bool = False,
    step: int = 0,
) -> Callable[[Callable[..., Awaitable[Finish]]], Kind]:
    """Declare the decorated handler as a kind of job, such as `schedules.fire`.

    It may run more than once, so whatever it does outside the database must be harmless to repeat. What it returns is
    run in the transaction that marks the job done. A raised error is a failed attempt; the next one follows after
    `backoff_s`, then twice that, and so on, until `attempts` are used up; one that raises Postponed is none. What is
    `lasting` never takes the last room, nor the room of a later `step`, for which it may have to wait.
    """
    if not _NAME.fullmatch(name):
        raise TypeError(f"{name!r} is no name of a kind of job, such as schedules.fire")

    def declare(handler: Callable[..., Awaitable[Finish]]) -> Kind:
        parameters = list(inspect.signature(handler).parameters)
        given = get_type_hints(handler, localns=_late_names()).get(parameters[1]) if len(parameters) == 2 else None
        if not (inspect.iscoroutinefunction(handler) and isinstance(given, type) and issubclass(given, BaseModel)):
            raise TypeError(f"{handler.__name__} must be async (job, args: Model) -> finish or None")
        return Kind(name, handler, given, queue, attempts, backoff_s, timeout_s, lasting, step)

    return declare


def _late_names() -> dict[str, Any]:
    from rookery.jobs.running import Running

    return {"Running": Running}


def kinds_of(modules: Iterable[ModuleType], known: Mapping[str, Kind] | None = None) -> dict[str, Kind]:
    """The `known` kinds and every kind that the modules declare, by name. Two of one name stop the start."""
    found: dict[str, Kind] = dict(known or {})
    for module in modules:
        for each in vars(module).values():
            if isinstance(each, Kind) and found.setdefault(each.name, each) is not each:
                raise ConfigurationError(f"there are two kinds of job {each.name}", hint="rename one of them")
    return found
