"""The events of a session as changes of its page, with the cookie of a browser: one stream for each page that is open.

What a page is told is made here, where everything that others wrote is escaped; the script of the page only puts it in
its place. A browser that was cut off comes back with the number of the last event it has seen.
"""

import contextlib
import json
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from rookery.core.errors import RookeryError
from rookery.domains.sessions.shown import event_shown
from rookery.domains.sessions.watching import LAST, page_session_events, watch_session
from rookery.identity.binding import Binding
from rookery.identity.signing_in import SignedIn
from rookery.server.api.streaming import Coming, Streams, last_seen
from rookery.server.session import open_session
from rookery.web.readings import Readings
from rookery.web.session_view import (
    CALLS,
    FLOWING,
    QUIET,
    Event,
    Transcript,
    call_key,
    call_piece,
    call_update,
    drawn,
    joined,
    named,
    parts,
    piece_of,
    tasks_of,
)
from rookery.web.showing import harmless, one_line
from rookery.web.signed_in import Cookies, who
from rookery.web.status_lines import plain_tool
from rookery.web.visit import Visit

if TYPE_CHECKING:
    from rookery.app import Platform

Op = list[str]
Page = Callable[[int], Awaitable[list[Event]]]
CHECKED_S = 60.0
"""After so long the browser comes back, and whether it is still signed in is looked up again."""
MOST_PAGES = 4


class SessionStreams:
    """The streams of all open pages of a server."""

    def __init__(self, platform: "Platform", cookies: Cookies, readings: Readings) -> None:
        self._platform = platform
        self._cookies = cookies
        self._readings = readings
        self._streams = Streams(platform)

    async def follow(self, request: Request) -> Response:
        """The stream of one session, for whoever is signed in and may see it."""
        found = await who(self._platform, self._cookies, request)
        if found is None:
            return PlainTextResponse("nobody is signed in", 401)
        visit = Visit(self._platform, self._cookies, self._readings, request, *found)
        try:
            session = await open_session(self._platform, _binding(found[0]))
            watched = await visit.call(watch_session, {"session_id": visit.path["id"][:100]})
            people: dict[str, str] = watched["people"]
            page = page_of(visit, watched["session"]["id"], people)

            def framing(shown: dict[str, Any], after: int, coming: Coming) -> AsyncGenerator[bytes]:
                return _frames(shown["id"], after, coming, page, people)

            until = time.time() + CHECKED_S
            return self._streams.stream(session, watched["session"], last_seen(request), until, framing)
        except RookeryError as error:
            return PlainTextResponse(error.message, error.http)

    async def close(self) -> None:
        await self._streams.close()


def page_of(visit: Visit, session_id: str, people: Mapping[str, str]) -> Page:
    """The way to the events of a session before any of them."""

    async def page(before: int) -> list[Event]:
        found = await visit.call(page_session_events, {"session_id": session_id, "before": min(before, LAST)})
        return [named(event, people) for event in found["events"]]

    return page


def _binding(signed_in: SignedIn) -> Binding:
    return Binding(tenant=signed_in.tenant, person=signed_in.person, session=signed_in.id, source="web")


async def turns_before(page: Page, before: int) -> list[Event]:
    """The last events before that number, whole turns if they are not too long."""
    events = await page(before)
    for _ in range(MOST_PAGES):
        begin = next((at for at, event in enumerate(events) if event["event"] == "turn_input"), None)
        if begin is not None:
            return events[begin:]
        if not events or events[0]["number"] <= 1:
            return events
        events = [*await page(events[0]["number"]), *events]
    return events


async def _frames(
    session_id: str, after: int, coming: Coming, page: Page, people: Mapping[str, str]
) -> AsyncGenerator[bytes]:
    yield b"retry: 500\n\n"
    telling = Telling(Transcript(await turns_before(page, after + 1)) if after else Transcript())
    async with contextlib.aclosing(coming):
        async for events in coming:
            told = telling.told([named(event_shown(event), people) for event in events])
            line = json.dumps(told, ensure_ascii=True)
            yield f"id: {session_id}:{events[-1].number}\ndata: {line}\n\n".encode()


class Telling:
    """What a page has to do for each event: `add` a piece, `put` another in the place of one, add `text`, `tell`."""

    def __init__(self, seen: Transcript) -> None:
        self._flow = seen.flow

    def told(self, events: Sequence[Event]) -> list[Op]:
        return [op for event in events for op in self._ops(event)]

    def _ops(self, event: Event) -> list[Op]:
        name, data = event["event"], event["data"]
        if name in FLOWING:
            return self._flowing(event)
        ended = [] if name in QUIET else self._end_flow()
        if name in CALLS:
            return ended + self._call(event)
        if name == "tool_status":
            key = call_key(data) if data.get("call_id") else ""
            tool, text = plain_tool(str(data.get("tool") or "")), one_line(data.get("text") or "", 300)
            return [["status", key, one_line(tool, 80), text]]
        if name == "task_update":
            return [["put", "tasks", str(parts().task_list(tasks_of(data)))]]
        if name in ("session_status", "interaction_resolved"):
            return [*ended, ["tell", "asks" if name == "interaction_resolved" else "session"]]
        piece = piece_of(event)
        if piece is None:
            return ended
        news: list[Op] = [["tell", "session"]] if piece["kind"] in ("user", "done", "ask") else []
        over: list[Op] = [["over"]] if piece["kind"] in ("user", "done") else []
        return [*ended, *over, ["add", piece["id"], str(drawn(piece))], *news]

    def _flowing(self, event: Event) -> list[Op]:
        kind, text = FLOWING[event["event"]], str(event["data"].get("text", ""))
        flow = self._flow
        if flow is not None and flow["kind"] == kind:
            flow["text"] = joined(flow["text"], text)
            return [["text", flow["id"], harmless(text)]]
        ended = self._end_flow()
        self._flow = {"kind": kind, "id": f"e{event['number']}", "at_ms": event["at_ms"], "text": text}
        return [*ended, ["add", self._flow["id"], str(drawn(self._flow, flowing=True))]]

    def _end_flow(self) -> list[Op]:
        """A text that is whole is shown as what it is: Markdown."""
        flow, self._flow = self._flow, None
        return [] if flow is None or flow["kind"] != "text" else [["put", flow["id"], str(drawn(flow))]]

    def _call(self, event: Event) -> list[Op]:
        begun = call_piece(event)
        call = {**begun, **call_update(event)}
        ops: list[Op] = [["add", call["id"], str(drawn(begun))]]
        if event["event"] == "tool_call_end":
            ops += [["put", f"{call['id']}-title", str(parts().call_title(call))]]
            ops += [["put", f"{call['id']}-given", str(parts().call_given(call))]]
        elif event["event"] == "tool_result":
            ops += [["put", f"{call['id']}-state", str(parts().call_state(call))]]
            ops += [["put", f"{call['id']}-result", str(parts().call_result(call))]]
            ops += [["status", call["id"], call["tool"], ""]]
        return ops
