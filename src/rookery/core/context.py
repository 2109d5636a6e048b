"""What a handler is handed besides its arguments: who calls, until when, and the ways to reach the world."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from pydantic import BaseModel

from rookery.core.actor import Actor, Auth
from rookery.core.errors import ConfigurationError, ServiceUnavailable, TimedOut
from rookery.core.events import Event
from rookery.core.tool import Tool

if TYPE_CHECKING:
    from rookery.core.call import Calls

T = TypeVar("T")


class Door(Protocol):
    """The way back to the client of one call. `tell` may be used from any thread, the rest only on the event loop."""

    def tell(self, method: str, params: dict[str, Any]) -> None: ...
    async def elicit(self, message: str, schema: dict[str, Any]) -> dict[str, Any] | None: ...
    async def sample(self, prompt: str, *, max_tokens: int, system: str | None) -> str: ...
    async def send_notification(self, method: str, params: dict[str, Any]) -> None: ...
    async def send_request(self, method: str, params: dict[str, Any]) -> dict[str, Any]: ...


class SilentDoor:
    """The door of callers that cannot be asked back, such as the CLI."""

    def tell(self, method: str, params: dict[str, Any]) -> None:
        return None

    async def elicit(self, message: str, schema: dict[str, Any]) -> dict[str, Any] | None:
        raise ServiceUnavailable("this client cannot be asked questions", hint="use ask_owner, or decide yourself")

    async def sample(self, prompt: str, *, max_tokens: int, system: str | None) -> str:
        raise ServiceUnavailable("this client offers no model to sample from", hint="use a client that does")

    async def send_notification(self, method: str, params: dict[str, Any]) -> None:
        return None

    async def send_request(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        raise ServiceUnavailable("this client takes no requests", hint="use a client that does")


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
        """Show one line of status in the client while the call runs."""
        self.call.door.tell("status", {"message": text})

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

    async def elicit(self, message: str, schema: dict[str, Any]) -> dict[str, Any] | None:
        """Ask the person at the client. None: they declined."""
        self._external("elicit")
        return await self.call.door.elicit(message, schema)

    async def sample(self, prompt: str, *, max_tokens: int = 1000, system: str | None = None) -> str:
        """Let the client's model answer `prompt`."""
        self._external("sample")
        return await self.call.door.sample(prompt, max_tokens=max_tokens, system=system)

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
