"""The HTTP interface for programs and the console: sessions of agents, their events, and what they ask. Every change is
a call of a tool, with the rights of whoever sends the request."""

from typing import TYPE_CHECKING

from starlette.routing import Route

from rookery.server.api.admission import Door
from rookery.server.api.describing import description
from rookery.server.api.operations import OPERATIONS, answering, calling, reading
from rookery.server.api.streaming import Streams
from rookery.server.auth import Authenticator

if TYPE_CHECKING:
    from rookery.app import Platform

SESSION = "/api/sessions/{session_id}"


class Api:
    """The interface of one server. It is closed before the server ends: its streams would go on for ever."""

    def __init__(self, platform: "Platform", authenticator: Authenticator) -> None:
        self._platform = platform
        self._door = Door(platform, authenticator)
        self._streams = Streams(self._door)

    def routes(self) -> list[Route]:
        """The addresses."""
        return [
            *(Route(each.path, calling(self._door, each), methods=[each.method]) for each in OPERATIONS),
            Route(SESSION, reading(self._door, "session://{session_id}"), methods=["GET"]),
            Route(f"{SESSION}/events", self._streams.follow, methods=["GET"]),
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

    async def close(self) -> None:
        """End every open stream; its client may come back for the rest."""
        await self._streams.close()
