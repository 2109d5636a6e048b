"""Tools about the server itself."""

import time
from datetime import UTC, datetime

from pydantic import Field

from rookery import __version__
from rookery.core.context import Context
from rookery.core.tool import EVERY_PROFILE, NoInput, ToolInput, ToolOutput, tool

_STARTED = time.monotonic()


class Pong(ToolOutput):
    status: str
    timestamp: str


class GetServerInfo(ToolInput):
    include_uptime: bool = Field(False, description="Also for how long it has run.")


class ServerInfo(ToolOutput):
    product: str
    version: str
    port: int
    uptime_seconds: float | None = None


@tool(
    title="Ping", effect="read", action="system:read", tier="observe", group="System", profiles=EVERY_PROFILE,
    default=True, idempotent=True, inline=True,
)  # fmt: skip
def ping(ctx: Context, args: NoInput) -> Pong:
    """Check that the server answers. Use it to test the connection.
    Returns status pong and the server's time. Does nothing else."""
    return Pong(status="pong", timestamp=datetime.now(UTC).isoformat(timespec="milliseconds"))


@tool(
    title="Get server info", effect="read", action="system:read", tier="observe", group="System",
    profiles=EVERY_PROFILE, default=True, idempotent=True, inline=True,
)  # fmt: skip
def get_server_info(ctx: Context, args: GetServerInfo) -> ServerInfo:
    """Say which server this is. Use it to report or compare versions. Returns product, version and port. Only facts
    about the process."""
    return ServerInfo(
        product="Rookery",
        version=__version__,
        port=ctx.platform.facts.get("port", 0),
        uptime_seconds=round(time.monotonic() - _STARTED, 3) if args.include_uptime else None,
    )
