"""The events of a session as a stream: how it stands, then every event after the last one seen, then what happens."""

import asyncio
import contextlib
import re
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from rookery.core.decide import decide
from rookery.core.errors import Conflict, PermissionDenied, RookeryError, ServiceUnavailable, ValidationFailed
from rookery.identity.tables import EPOCH
from rookery.server.session import Session
from rookery.server.streamable.answers import encode
from rookery.sessions.log import SessionLog
from rookery.sessions.store import SessionRows
from rookery.sessions.writing import Kept

if TYPE_CHECKING:
    from rookery.app import Platform

PING = b": ping\n\n"
PING_S = 15.0
PATIENCE_S = 30.0
"""Whoever has not taken in what was sent for so long is let go, and may come back for the rest."""
MOST = 2000
RIGHT = "list_sessions"
"""Whoever may use it may read sessions."""
_ID = re.compile(r"(.{1,200}):([0-9]{1,18})")
_HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
    (b"x-content-type-options", b"nosniff"),
]


Coming = AsyncGenerator[Sequence[Kept]]
Framing = Callable[[dict[str, Any], int, Coming], AsyncGenerator[bytes]]
"""Makes what is sent: of how the session stands, the number of the last event seen, and the events that come."""


class Streams:
    """All streams of one server to one kind of reader."""

    def __init__(self, platform: "Platform") -> None:
        self._platform = platform
        self._open: set[asyncio.Task[Any]] = set()

    def stream(
        self, session: Session, shown: dict[str, Any], last: str, until: float | None, framing: Framing
    ) -> Response:
        """The events of the session `shown` after that of the id `last`, for whoever `session` is, until that time."""
        after = _after(last, shown["id"], shown["event_count"])
        if len(self._open) >= MOST:
            raise ServiceUnavailable(f"{MOST} streams are open already", hint="close some")
        return _Stream(self, session, shown["id"], until, framing(shown, after, self._coming(session, shown, after)))

    def _coming(self, session: Session, shown: dict[str, Any], after: int) -> Coming:
        log: SessionLog = self._platform.calls.facts["sessions"].log
        return log.follow(session.tenant, shown["id"], after)

    async def still_there(self, session: Session, session_id: str) -> None:
        """Raise if whoever reads may not any more."""
        actor, platform = await session.actor(), self._platform
        if decide(actor, platform.registry.require(RIGHT)).outcome != "allow":
            raise PermissionDenied("the right to see sessions was taken away")
        row = await platform.database.read(lambda tx: SessionRows(tx, actor.tenant, actor.closed).of(session_id))
        if actor.kind != "human" and row.agent != actor.agent:
            raise PermissionDenied("the session is another's")

    @property
    def epoch(self) -> int:
        """Changes whenever rights do."""
        return self._platform.database.epoch(EPOCH)

    @contextlib.contextmanager
    def counted(self) -> Any:
        """While a stream is open, it can be closed."""
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        try:
            yield
        finally:
            self._open.discard(task)

    async def close(self) -> None:
        """End every stream."""
        streams = [*self._open]
        for task in streams:
            task.cancel()
        await asyncio.gather(*streams, return_exceptions=True)


class _Stream(Response):
    """One stream to one client."""

    def __init__(
        self,
        streams: Streams,
        session: Session,
        session_id: str,
        until: float | None,
        frames: AsyncGenerator[bytes],
    ) -> None:
        super().__init__()
        self.raw_headers = list(_HEADERS)
        self._until = until
        self._streams = streams
        self._session = session
        self._session_id = session_id
        self._frames = frames

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        pumping = asyncio.create_task(self._pump(send))
        gone = asyncio.create_task(_until_gone(receive))
        try:
            await asyncio.wait([pumping, gone], return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (pumping, gone):
                task.cancel()
            await asyncio.gather(pumping, gone, return_exceptions=True)
        if not gone.done() or gone.cancelled():
            with contextlib.suppress(TimeoutError, OSError):
                async with asyncio.timeout(1.0):
                    await send({"type": "http.response.body", "body": b""})

    async def _pump(self, send: Send) -> None:
        epoch = self._streams.epoch
        frames = self._frames
        with self._streams.counted(), contextlib.suppress(TimeoutError, RookeryError):
            async with contextlib.aclosing(frames):
                coming: asyncio.Task[bytes] = asyncio.create_task(_next(frames))
                try:
                    while True:
                        done, _ = await asyncio.wait([coming], timeout=self._patience())
                        if epoch != self._streams.epoch or self._session.outdated:
                            epoch = self._streams.epoch
                            await self._streams.still_there(self._session, self._session_id)
                        async with asyncio.timeout(PATIENCE_S):
                            part = coming.result() if done else PING
                            await send({"type": "http.response.body", "body": part, "more_body": True})
                        if done:
                            coming = asyncio.create_task(_next(frames))
                finally:
                    coming.cancel()
                    await asyncio.gather(coming, return_exceptions=True)

    def _patience(self) -> float:
        """Until the next ping. TimeoutError if the credential has to be checked again: its holder may come back."""
        if self._until is None:
            return PING_S
        left = self._until - time.time()
        if left <= 0:
            raise TimeoutError
        return min(PING_S, left)


async def _next(frames: AsyncGenerator[bytes]) -> bytes:
    return await anext(frames)


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def last_seen(request: Request) -> str:
    """The id of the last event that the client has seen. `Last-Event-ID` is what browsers send by themselves."""
    return request.headers.get("last-event-id") or request.query_params.get("after") or ""


def _after(last: str, session_id: str, count: int) -> int:
    """The number of that event; 0 if none was seen."""
    if not last:
        return 0
    found = _ID.fullmatch(last)
    if found is None:
        raise ValidationFailed("this is no id of an event", hint=f"such as {session_id}:12")
    if found[1] != session_id:
        raise ValidationFailed("this is the id of an event of another session", hint="leave it out to see all")
    if int(found[2]) > count:
        raise Conflict("there is no such event yet", hint="leave Last-Event-ID out to see all")
    return int(found[2])


async def as_json(shown: dict[str, Any], after: int, coming: Coming) -> AsyncGenerator[bytes]:
    """For programs: the state of things, then each event with its number."""
    yield _frame("snapshot", {**shown, "cursor": f"{shown['id']}:{after}"})
    async with contextlib.aclosing(coming):
        async for events in coming:
            yield _frames(shown["id"], events)


def _frames(session_id: str, events: Sequence[Kept]) -> bytes:
    return b"".join(
        _frame(
            event.name,
            {**event.data, "number": event.number, "at_ms": event.at_ms, "run_id": event.run_id},
            f"{session_id}:{event.number}",
        )
        for event in events
    )


def _frame(name: str, data: dict[str, Any], event_id: str | None = None) -> bytes:
    """One event. JSON has no line ends in it, so the data are one line."""
    line = b"" if event_id is None else b"id: " + event_id.encode() + b"\n"
    return line + b"event: " + name.encode() + b"\ndata: " + encode(data) + b"\n\n"
