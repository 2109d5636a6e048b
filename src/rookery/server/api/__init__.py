"""The HTTP interface for programs and the console: sessions of agents, their events, and what they ask. Every change is
a call of a tool, with the rights of whoever sends the request."""

import json
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from rookery.server.api.admission import Door, answered
from rookery.server.api.describing import description
from rookery.server.api.operations import OPERATIONS, answering, calling, reading
from rookery.server.api.streaming import Streams, as_json, last_seen
from rookery.server.auth import Authenticator

if TYPE_CHECKING:
    from rookery.app import Platform

SESSION = "/api/sessions/{session_id}"


class Api:
    """The interface of one server. It is closed before the server ends: its streams would go on for ever."""

    def __init__(self, platform: "Platform", authenticator: Authenticator) -> None:
        self._platform = platform
        self._door = Door(platform, authenticator)
        self._streams = Streams(platform)

    def routes(self) -> list[Route]:
        """The addresses."""
        return [
            *(Route(each.path, calling(self._door, each), methods=[each.method]) for each in OPERATIONS),
            Route(SESSION, reading(self._door, "session://{session_id}"), methods=["GET"]),
            Route(f"{SESSION}/events", answered(self._door, self._follow), methods=["GET"]),
            *(
                Route(f"{SESSION}/{what}", answering(self._door, what), methods=["POST"])
                for what in ("approve", "deny", "answer")
            ),
            Route("/api/transcripts", reading(self._door, "transcripts://"), methods=["GET"]),
            Route(
                "/api/transcripts/{transcript_id}", reading(self._door, "transcript://{transcript_id}"), methods=["GET"]
            ),
            Route("/api/openapi.json", description(self._platform.registry), methods=["GET"]),
        ]

    async def _follow(self, request: Request) -> Response:
        """Check everything that can be wrong, then stream."""
        session, until = await self._door.lasting(request)
        uri = f"session://{request.path_params['session_id']}"
        parts = await self._platform.calls.read(await session.actor(), uri)
        return self._streams.stream(session, json.loads(parts[0].text), last_seen(request), until, as_json)

    async def close(self) -> None:
        """End every open stream; its client may come back for the rest."""
        await self._streams.close()
