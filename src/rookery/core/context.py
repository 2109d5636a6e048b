"""What a handler is handed besides its arguments: who calls, until when, and the ways to reach the world."""

import time
from collections.abc import Awaitable, Callable, Generator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar, cast, get_args

from pydantic import BaseModel

from rookery.core.actor import Actor, Auth
from rookery.core.errors import ConfigurationError, ServiceUnavailable, TimedOut
from rookery.core.events import Event
from rookery.core.questions import (
    NO_CLIENT,
    Answer,
    Answers,
    ClientInfo,
    Elicit,
    Elicited,
    Question,
    Root,
    Rooted,
    Roots,
    Sample,
    Sampled,
    missing,
    question_keys,
)
from rookery.core.storage import Storage
from rookery.core.tool import Tool

if TYPE_CHECKING:
    from rookery.core.call import Calls

T = TypeVar("T")


LogLevel = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]
LOG_LEVELS: tuple[LogLevel, ...] = get_args(LogLevel)
"""From the least to the most severe."""


class Door(Protocol):
    """The way back to the client of one call. `tell` may be used from any thread, the rest only on the event loop."""

    @property
    def client(self) -> ClientInfo: ...
    def tell(self, method: str, params: dict[str, Any]) -> None: ...
    async def ask(self, questions: Sequence[Question]) -> Sequence[Answer]: ...
    async def send_notification(self, method: str, params: dict[str, Any]) -> None: ...
    async def send_request(self, method: str, params: dict[str, Any]) -> dict[str, Any]: ...
    def release(self) -> Awaitable[None]: ...


class Idle:
    """Awaited or not, nothing happens."""

    def __await__(self) -> Generator[Any, Any, None]:
        yield from ()


NOTHING_TO_DO = Idle()


class SilentDoor:
    """The door of callers that cannot be asked back, such as the CLI."""

    @property
    def client(self) -> ClientInfo:
        return NO_CLIENT

    def tell(self, method: str, params: dict[str, Any]) -> None:
        return None

    async def ask(self, questions: Sequence[Question]) -> Sequence[Answer]:
        raise missing(questions[0].capability)

    async def send_notification(self, method: str, params: dict[str, Any]) -> None:
        return None

    async def send_request(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        raise ServiceUnavailable("this client takes no requests", hint="use a client that does")

    def release(self) -> Awaitable[None]:
        return NOTHING_TO_DO


@dataclass(slots=True)
class Call:
    """One call on its way through the pipeline."""

    id: str
    actor: Actor
    tool: Tool
    arguments: dict[str, Any]
    door: Door
    trace: str | None
    digest: str
    at_ms: int
    started: float
    deadline: float
    input_bytes: int = 0
    output_bytes: int = 0
    stopped: bool = False
    approval: str | None = None
    """By which approval it runs, if it needed one."""
    seen: bool = False
    """Whether the record has the same read of the same reader already: a page that draws itself anew adds none."""


@dataclass(slots=True)
class Effects:
    """What a handler leaves behind besides its result; taken over only if it succeeds."""

    events: list[Event] = field(default_factory=list[Event])
    nested: list[Call] = field(default_factory=list[Call])


class Context:
    """Made anew for every run of a handler. `tx` is the open transaction, absent for external handlers."""

    __slots__ = ("_calls", "call", "effects", "tx")

    def __init__(self, calls: "Calls", call: Call, effects: Effects, tx: Any) -> None:
        self._calls = calls
        self.call = call
        self.effects = effects
        self.tx = tx

    @property
    def actor(self) -> Actor:
        return self.call.actor

    @property
    def auth(self) -> Auth:
        """Subject, client and scopes of the credential. The credential itself is not here."""
        return self.call.actor.auth

    @property
    def session_id(self) -> str | None:
        return self.call.actor.session

    @property
    def request_id(self) -> str:
        return self.call.id

    @property
    def platform(self) -> "Calls":
        """The call path itself, for the few handlers that speak about tools."""
        return self._calls

    @property
    def storage(self) -> Storage:
        """What this domain keeps for this tenant, in the transaction of this call; read handlers only look."""
        if self.tx is None:
            raise ConfigurationError(
                f"{self.call.tool.name} has no open transaction for ctx.storage",
                hint="await ctx.read(lambda tx: ctx.storage_in(tx).get(key)), or ctx.write; inline handlers have none",
            )
        return self.storage_in(self.tx)

    def storage_in(self, tx: Any) -> Storage:
        """The same in a transaction of `read` or `write`, for external handlers."""
        tool = self.call.tool
        return self._calls.open_storage(tx, self.actor.tenant, tool.domain, writable=tool.effect != "read")

    @property
    def cancelled(self) -> bool:
        """Whether the caller has given up. A long loop looks here, or calls `check`."""
        return self.call.stopped

    @property
    def remaining_s(self) -> float:
        """Seconds until the time limit."""
        return self.call.deadline - time.monotonic()

    def check(self) -> None:
        """Stop here if the time is over or the caller has gone."""
        if self.call.stopped or self.remaining_s <= 0:
            raise TimedOut(f"{self.call.tool.name} was stopped", hint="ask for less at once")

    def emit_status(self, text: str) -> None:
        """Show one line of status in the client while the call runs, and in the session that the caller is."""
        self.call.door.tell("status", {"message": text})
        if self._calls.tap is not None:
            self._calls.tap(self.actor, self.call.tool.name, text)

    def log(self, level: LogLevel, text: str, logger: str | None = None) -> None:
        """Send a line to the client's log, if it wants lines of this level. It does not go into the server's."""
        if level not in LOG_LEVELS:
            raise ConfigurationError(f"there is no log level {level}", hint=", ".join(LOG_LEVELS))
        self.call.door.tell("log", {"level": level, "message": text, "logger": logger})

    def progress(self, done: float, total: float | None = None, message: str | None = None) -> None:
        """Tell the client how far the call is."""
        self.call.door.tell("progress", {"progress": done, "total": total, "message": message})

    def publish(self, name: str, *, subject: str | None = None, **payload: Any) -> None:
        """Tell the other domains, once this call is committed. What only reads has nothing to tell."""
        if self.call.tool.effect == "read":
            raise ConfigurationError(f"{self.call.tool.name} only reads; publish is for handlers that change something")
        event = Event(name=name, tenant=self.actor.tenant, subject=subject, payload=payload)
        self.effects.events.append(event)

    def call_here(self, name: str, arguments: dict[str, Any]) -> BaseModel:
        """Run another tool inside this transaction, with the caller's own rights. Both succeed or neither does."""
        return self._calls.nested(self, name, arguments)

    async def call_tool(self, name: str, arguments: dict[str, Any]) -> BaseModel:
        """Run another tool as a call of its own, with the caller's own rights."""
        self._external("call_tool")
        result = await self._calls.call(self.actor, name, arguments, door=self.call.door, trace=self.call.trace)
        return result.value

    async def read(self, work: Callable[[Any], T]) -> T:
        """Run `work(tx)` in a read-only transaction."""
        self._external("read")
        return await self._calls.database.read(work, timeout_s=self.remaining_s)

    async def write(self, work: Callable[[Any], T]) -> T:
        """Run `work(tx)` in a transaction of its own that is committed when this returns."""
        self._external("write")
        return await self._calls.database.write(work, records=lambda error: [], timeout_s=self.remaining_s)

    @property
    def client(self) -> ClientInfo:
        """What the client of this call is and can be asked."""
        return self.call.door.client

    async def ask(self, *questions: Question) -> Answers:
        """Ask the client, everything at once; the answers come in the same order, and by the questions' keys.

        With a client of 2026-07-28 the handler ends here and runs again from its start, with the answers, when they
        have come. So what it does before must be harmless to repeat, and it must ask the same again.
        """
        self._external("ask")
        if len(set(question_keys(questions))) != len(questions):
            raise ConfigurationError(f"{self.call.tool.name} asks two questions under one key")
        return Answers(await self.call.door.ask(questions) if questions else (), questions)

    async def elicit(self, message: str, schema: dict[str, Any], *, key: str | None = None) -> dict[str, Any] | None:
        """Ask the person at the client. None: they declined."""
        self._external("elicit")
        answer = cast(Elicited, (await self.ask(Elicit(message, schema, key)))[0])
        return answer.content if answer.action == "accept" else None

    async def sample(
        self, prompt: str, *, max_tokens: int = 1000, system: str | None = None, key: str | None = None
    ) -> str:
        """Let the client's model answer `prompt`."""
        self._external("sample")
        return cast(Sampled, (await self.ask(Sample(prompt, max_tokens, system, key)))[0]).text

    async def roots(self, *, key: str | None = None) -> tuple[Root, ...]:
        """The folders that the client works in."""
        self._external("roots")
        return cast(Rooted, (await self.ask(Roots(key)))[0]).roots

    def release(self) -> Awaitable[None]:
        """Let the client's open stream go while the call runs on; it comes back for the rest, where it can."""
        self._external("release")
        return self.call.door.release()

    async def send_notification(self, method: str, params: dict[str, Any]) -> None:
        """Send any notification to the client of this call."""
        self._external("send_notification")
        await self.call.door.send_notification(method, params)

    async def send_request(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Send any request to the client of this call and wait for the answer."""
        self._external("send_request")
        return await self.call.door.send_request(method, params)

    def _external(self, what: str) -> None:
        # Waiting for anyone while a transaction is open would hold up every other writer.
        if self.call.tool.effect != "external":
            raise ConfigurationError(f"{what} is for external handlers; {self.call.tool.name} is not one")
