"""The door for agents elsewhere: our card, the A2A endpoint, and the plain wire from before there was a protocol."""

from typing import TYPE_CHECKING

from starlette.routing import Route

from rookery.server.a2a.admission import Door
from rookery.server.a2a.endpoint import ENDPOINT, A2aEndpoint
from rookery.server.a2a.plain import PlainTasks
from rookery.server.auth import Authenticator

if TYPE_CHECKING:
    from rookery.app import Platform

CARD = "/.well-known/agent-card.json"


def a2a_routes(platform: "Platform", authenticator: Authenticator) -> list[Route]:
    """The addresses of the A2A server; none if the settings turn it off."""
    if not platform.settings.a2a_server:
        return []
    door = Door(platform, authenticator)
    endpoint, plain = A2aEndpoint(door), PlainTasks(door)
    return [
        Route(CARD, endpoint.card, methods=["GET"]),
        Route("/api/agents/{agent}/agent-card", endpoint.agent_card, methods=["GET"]),
        Route(ENDPOINT, endpoint.rpc, methods=["POST"]),
        Route(f"{ENDPOINT}/agents/{{agent}}", endpoint.rpc, methods=["POST"]),
        Route(f"{ENDPOINT}/tasks/send", plain.send, methods=["POST"]),
        Route(f"{ENDPOINT}/tasks/{{task}}", plain.look, methods=["GET"]),
    ]
