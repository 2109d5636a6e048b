"""The one call path: decide, validate, around, transaction, handler, events, result. Every door ends here."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol, TypeVar

from pydantic import BaseModel

from rookery.core.actor import Actor
from rookery.core.admission import refuse_unless_allowed, refuse_unless_listed, validate
from rookery.core.context import Call, Context, Door, Effects, SilentDoor
from rookery.core.declared import Declared
from rookery.core.errors import (
    ConfigurationError,
    InternalError,
    NotFound,
    RequestCancelled,
    RookeryError,
    SerializationError,
    TimedOut,
)
from rookery.core.events import Events
from rookery.core.gate import ClosedGate, Gate, without_token
from rookery.core.ids import new_id
from rookery.core.prompt import Message, Messages
from rookery.core.record import Record, input_digest
from rookery.core.recording import to_record, unknown_record
from rookery.core.registry import Registry
from rookery.core.resource import Contents, Reading
from rookery.core.results import Result, make_result
from rookery.core.spans import Span, no_span, span_name
from rookery.core.storage import OpenStorage, no_storage
from rookery.core.tool import Tool, ToolInput
from rookery.core.uri import MAX_URI

T = TypeVar("T")
Records = Callable[[BaseException | None], list[Record]]
Tap = Callable[[Actor, str, str], None]
"""Called with who calls, the name of the tool and the line. It must not raise."""
log = logging.getLogger("rookery.call")


class Database(Protocol):
    """What the call path needs of a database. `record` returns when the record will survive a crash."""

    async def read(self, work: Callable[[Any], T], *, timeout_s: float) -> T: ...
    async def write(
        self,
        work: Callable[[Any], T],
        *,
        records: Records,
        timeout_s: float,
        on_commit: Callable[[], None] | None = None,
    ) -> T: ...
    def record(self, record: Record) -> Awaitable[None]: ...


class Around(Protocol):
    """Something that surrounds every call. `before` may refuse by raising; `after` always follows a `before`.

    `refused` tells of calls that never came that far, or were refused there.
    """

    def before(self, call: Call) -> None: ...
    def refused(self, call: Call, error: RookeryError) -> None: ...
    def after(self, call: Call, error: RookeryError | None) -> None: ...


class Calls:
    """Calls tools. Three parts: the registry, the database, and what surrounds every call."""

    def __init__(
        self,
        registry: Registry,
        database: Database,
        around: Sequence[Around],
        events: Events,
        facts: Mapping[str, Any] | None = None,
        span: Span | None = None,
        open_storage: OpenStorage = no_storage,
        gate: Gate | None = None,
    ) -> None:
        self.registry = registry
        self.database = database
        self.around = around
        self.events = events
        self.facts = facts or {}
        """What handlers may know of the installation, such as its port."""
        self._span = span or no_span
        self.open_storage = open_storage
        self._gate = gate or ClosedGate()
        self.tap: Tap | None = None
        """Told of every status that a handler shows, besides its client; from whatever thread the handler runs in."""

    async def call(
        self,
        actor: Actor,
        name: str,
        arguments: dict[str, Any] | None = None,
        *,
        door: Door | None = None,
        request_id: str | None = None,
        trace: str | None = None,
    ) -> Result:
        """Call a tool as `actor`. Raises one of `core/errors.py`, nothing else, and leaves nothing half done."""
        tool = self.registry.get(name)
        if tool is None:
            await self.database.record(unknown_record(actor, name, arguments or {}, request_id, trace))
            tool = self.registry.require(name)
        return await self.run(actor, tool, arguments or {}, door=door, request_id=request_id, trace=trace)

    async def read(
        self,
        actor: Actor,
        uri: str,
        *,
        door: Door | None = None,
        request_id: str | None = None,
        trace: str | None = None,
    ) -> tuple[Contents, ...]:
        """Read the resource at `uri` as `actor`. What is not there is NotFound, also for its audit record."""
        found = self.registry.find_resource(uri)
        if found is None:
            await self.database.record(unknown_record(actor, "resource:unknown", {"uri": uri}, request_id, trace))
            raise NotFound(f"there is no resource {uri[:MAX_URI]}", layer="available")
        resource, values = found
        result = await self.run(actor, resource.tool, values, door=door, request_id=request_id, trace=trace)
        return tuple(part if part.uri else replace(part, uri=uri) for part in result.value.contents)

    async def prompt(
        self,
        actor: Actor,
        name: str,
        arguments: dict[str, str] | None = None,
        *,
        door: Door | None = None,
        request_id: str | None = None,
        trace: str | None = None,
    ) -> tuple[Message, ...]:
        """The messages of a prompt, as `actor`."""
        prompt, given = self.registry.prompt(name), arguments or {}
        if prompt is None:
            await self.database.record(unknown_record(actor, f"prompt:{name}", given, request_id, trace))
            raise NotFound(f"there is no prompt {name}", layer="available")
        result = await self.run(actor, prompt.tool, given, door=door, request_id=request_id, trace=trace)
        return result.value.messages

    async def look_up(
        self, actor: Actor, declared: Declared, what: str, look: Callable[..., Any], about: dict[str, str]
    ) -> list[Any]:
        """What `look(ctx)` finds, run with the rights of `declared`: values for an argument, or entries."""
        return (await self.run(actor, declared.lookup(what, look), {"what": about})).value

    async def run(
        self,
        actor: Actor,
        tool: Tool,
        arguments: dict[str, Any],
        *,
        door: Door | None = None,
        request_id: str | None = None,
        trace: str | None = None,
        seen: bool = False,
    ) -> Result:
        """Run a tool, or the record of a resource or prompt. Every call of any kind passes here.

        A read that was `seen` a moment ago leaves no second record, unless it is refused or fails.
        """
        arguments, token = without_token(tool, arguments)
        call = new_call(actor, tool, arguments, door or SilentDoor(), request_id, trace)
        call.seen = seen
        try:
            args, asks = self._admit(call)
        except RookeryError as error:
            for part in self.around:
                part.refused(call, error)
            await self.database.record(to_record(call, error))
            raise
        error: RookeryError | None = None
        try:
            if asks:
                await self._approved(call, args, token)
            with self._span(span_name(tool), call):
                result = await self._run(call, args)
            call.output_bytes = result.size() if tool.kind == "tool" else value_size(result.value)
            return result
        except RookeryError as failure:
            error = failure
            raise
        except asyncio.CancelledError:
            call.stopped = True
            error = RequestCancelled(f"{tool.name} was cancelled")
            raise
        except Exception as failure:
            # A handler's bug: the log gets the traceback, the caller a sentence.
            log.exception("%s failed", tool.name, extra=log_ids(call))
            error = InternalError(f"{tool.name} failed unexpectedly", hint=f"the log names request {call.id}")
            raise error from failure
        finally:
            for part in reversed(self.around):
                part.after(call, error)

    def nested(self, outer: Context, name: str, arguments: dict[str, Any]) -> BaseModel:
        """Run a database tool inside the transaction of `outer`; decided and recorded like any call.

        It is part of the outer call for time and rate limits. If it fails, it leaves nothing behind, whether the
        outer handler goes on or not.
        """
        tool = self.registry.require(name)
        if tool.effect == "external" or (tool.effect == "write" and outer.call.tool.effect != "write"):
            raise ConfigurationError(f"{outer.call.tool.name} cannot call {tool.name} inside its transaction")
        call = new_call(outer.actor, tool, arguments, outer.call.door, outer.call.id, outer.call.trace)
        refuse_unless_allowed(call.actor, tool)
        args = validate(tool, arguments)
        call.deadline = min(call.deadline, outer.call.deadline)
        effects = Effects()
        with outer.tx.savepoint():
            value = checked_result(tool, tool.handler(Context(self, call, effects, outer.tx), args)).value
        outer.effects.events += effects.events
        outer.effects.nested += [*effects.nested, call]
        return value

    def _admit(self, call: Call) -> tuple[ToolInput, bool]:
        """Decide, validate, and pass what surrounds the call; a refusal undoes what was passed already.

        Gives the arguments, and whether a person has to agree before it runs. Only calls of tools can wait for that.
        """
        asks = call.tool.kind == "tool" and refuse_unless_listed(call.actor, call.tool).outcome == "ask"
        if call.tool.kind != "tool":
            refuse_unless_allowed(call.actor, call.tool)
        args = validate(call.tool, call.arguments)
        passed: list[Around] = []
        try:
            for part in self.around:
                part.before(call)
                passed.append(part)
        except RookeryError as error:
            for part in reversed(passed):
                part.after(call, error)
            raise
        return args, asks

    async def _approved(self, call: Call, args: ToolInput, token: str | None) -> None:
        """Wait at the gate. What a person took to decide is not the handler's time."""
        try:
            call.approval = await self._gate.let_through(self, call, args, token)
        except BaseException as error:
            recorded = self.database.record(to_record(call, error))
            if not isinstance(error, asyncio.CancelledError):
                await recorded
            raise
        call.started = time.monotonic()
        call.deadline = call.started + call.tool.timeout_s

    async def _run(self, call: Call, args: ToolInput) -> Result:
        if call.tool.effect == "write":
            return await self._write(call, args)
        if call.tool.effect == "external":
            return await self._external(call, args)
        return await self._read(call, args)

    async def _read(self, call: Call, args: ToolInput) -> Result:
        """The record is on its way before the read starts, and durable before the result is released."""
        tool = call.tool
        effects = Effects()

        def work(tx: Any) -> BaseModel:
            effects.nested.clear()
            return tool.handler(Context(self, call, effects, tx), args)

        recorded = [] if call.seen else [self.database.record(to_record(call, None))]
        try:
            if tool.inline:
                value: BaseModel = run_inline(tool, Context(self, call, effects, None), args)
            else:
                value = await self.database.read(work, timeout_s=tool.timeout_s)
            result = checked_result(tool, value)
        except BaseException as error:
            ended = self.database.record(to_record(call, error))
            if not isinstance(error, asyncio.CancelledError):
                for each in (*recorded, ended):
                    await each
            raise
        for each in recorded:
            await each
        for nested in () if call.seen else effects.nested:
            await self.database.record(to_record(nested, None))
        return result

    async def _write(self, call: Call, args: ToolInput) -> Result:
        """The handler's changes and the record are one transaction: both are there afterwards, or neither."""
        tool = call.tool
        effects = Effects()

        def work(tx: Any) -> Result:
            # The database may run this again after a rolled-back batch, so nothing may be left of the first run.
            effects.events.clear()
            effects.nested.clear()
            return checked_result(tool, tool.handler(Context(self, call, effects, tx), args))

        def records(error: BaseException | None) -> list[Record]:
            inner = [to_record(nested, None) for nested in effects.nested] if error is None else []
            return [*inner, to_record(call, error)]

        def publish() -> None:
            for event in effects.events:
                self.events.publish(event)

        return await self.database.write(work, records=records, timeout_s=tool.timeout_s, on_commit=publish)

    async def _external(self, call: Call, args: ToolInput) -> Result:
        """Intent before the world is touched, outcome after; no transaction is open in between."""
        tool = call.tool
        effects = Effects()
        await self.database.record(to_record(call, None, intent=True))
        try:
            async with asyncio.timeout(tool.timeout_s):
                handled = tool.handler(Context(self, call, effects, None), args)
                result = checked_result(tool, await run_external(tool, handled))
        except TimeoutError as error:
            late = TimedOut(
                f"{tool.name} did not finish within {tool.timeout_s:g} s", hint="try again, or ask for less"
            )
            await self.database.record(to_record(call, late))
            raise late from error
        except BaseException as error:
            recorded = self.database.record(to_record(call, error))
            if not isinstance(error, asyncio.CancelledError):
                await recorded
            raise
        await self.database.record(to_record(call, None))
        for event in effects.events:
            self.events.publish(event)
        return result


def new_call(
    actor: Actor, tool: Tool, arguments: dict[str, Any], door: Door, request_id: str | None, trace: str | None
) -> Call:
    """A call that starts now."""
    started = time.monotonic()
    digest, size = input_digest(arguments)
    return Call(
        id=request_id or new_id("req"),
        actor=actor,
        tool=tool,
        arguments=arguments,
        door=door,
        trace=trace,
        digest=digest,
        input_bytes=size,
        at_ms=time.time_ns() // 1_000_000,
        started=started,
        deadline=started + tool.timeout_s,
    )


def value_size(value: Any) -> int:
    """About how many bytes the value of a resource or prompt has."""
    return value.size() if isinstance(value, Reading | Messages) else 0


def log_ids(call: Call) -> dict[str, str | None]:
    """What ties a line of the log to the call."""
    actor = call.actor
    return {
        "request": call.id,
        "session": actor.session,
        "tenant": actor.tenant,
        "agent": actor.agent,
        "trace": call.trace,
        "operation": call.tool.operation,
    }


def run_inline(tool: Tool, ctx: Context, args: ToolInput) -> Any:
    """The result of a handler on the event loop. What would end the loop is a bug like any other."""
    try:
        return tool.handler(ctx, args)
    except SystemExit as error:
        raise RuntimeError(f"{tool.name} raised SystemExit") from error


async def run_external(tool: Tool, handled: Awaitable[T]) -> T:
    """The same for an external handler."""
    try:
        return await handled
    except SystemExit as error:
        raise RuntimeError(f"{tool.name} raised SystemExit") from error


def checked_result(tool: Tool, value: Any) -> Result:
    """The answer in both faces; a handler that returns something else than it declared has a bug."""
    if not isinstance(value, tool.output):
        raise SerializationError(f"{tool.name} returned {type(value).__name__}, not {tool.output.__name__}")
    return make_result(value) if tool.kind == "tool" else Result(value, {}, "")
