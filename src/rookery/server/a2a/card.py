"""Our card, made from the registry. Imports the SDK: import this inside functions only."""

from typing import TYPE_CHECKING, Any

from a2a.server.request_handlers.response_helpers import agent_card_to_dict
from a2a.types.a2a_pb2 import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    AgentProvider,
    AgentSkill,
    HTTPAuthSecurityScheme,
    SecurityRequirement,
    SecurityScheme,
    StringList,
)

from rookery import __version__
from rookery.attest.card import WALLET, extension
from rookery.core.tool import Tool
from rookery.server.a2a.taker import Taker

if TYPE_CHECKING:
    from rookery.app import Platform

VERSIONS = ("1.0", "0.3")
PLAIN = "/a2a/tasks/send"
TEXT = "text/plain"
ABOUT = "A fleet of agents that does tasks with the tools listed as skills, within the rights of whoever asks."


def card_for(platform: "Platform", base: str, endpoint: str, taker: Taker, name: str) -> dict[str, Any]:
    """The card of the server that is reached at `base`, in the fields of A2A 1.0, of 0.3 and of the time before."""
    settings = platform.settings
    shown = agent_card_to_dict(_card(platform, base, endpoint, taker, name))
    shown["capabilities"]["stateTransitionHistory"] = False
    shown["authentication"] = {"schemes": ["bearer"] if _needs_token(platform) else []}
    protocols = [("A2A", "JSON-RPC, streaming", endpoint), ("HTTP", "Tasks as plain JSON", f"{base}{PLAIN}")]
    if settings.http_mcp:
        protocols.append(("MCP", "Streamable HTTP", f"{base}{settings.http_path}"))
    if taker.wallet is not None:
        shown["capabilities"]["extensions"] = [extension(base, taker.agent_id)]
        protocols.append(("AlgoChat", "Its wallet on Algorand", f"{WALLET}{taker.wallet}"))
    shown["supportedProtocols"] = [
        {"protocol": name, "description": about, "endpoint": place} for name, about, place in protocols
    ]
    return shown


def _card(platform: "Platform", base: str, endpoint: str, taker: Taker, name: str) -> AgentCard:
    card = AgentCard(
        name=name,
        description=ABOUT,
        version=__version__,
        provider=AgentProvider(organization="Rookery", url=base),
        documentation_url=f"{base}/api/openapi.json",
        supported_interfaces=[
            AgentInterface(url=endpoint, protocol_binding="JSONRPC", protocol_version=version) for version in VERSIONS
        ],
        capabilities=AgentCapabilities(streaming=True, push_notifications=False),
        default_input_modes=[TEXT],
        default_output_modes=[TEXT],
        skills=[_skill(tool) for tool in platform.registry if tool.name in taker.skills],
    )
    if _needs_token(platform):
        bearer = SecurityScheme(http_auth_security_scheme=HTTPAuthSecurityScheme(scheme="bearer"))
        card.security_schemes["bearer"].CopyFrom(bearer)
        card.security_requirements.append(SecurityRequirement(schemes={"bearer": StringList()}))
    return card


def _needs_token(platform: "Platform") -> bool:
    return platform.settings.auth_mode != "none"


def _skill(tool: Tool) -> AgentSkill:
    return AgentSkill(
        id=tool.name,
        name=tool.title,
        description=tool.description,
        tags=sorted({tool.domain, tool.action.partition(":")[0], tool.tier}),
        input_modes=[TEXT],
        output_modes=[TEXT],
    )
