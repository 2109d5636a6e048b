"""Serves one MCP session over one connection, whatever the connection is."""

import asyncio
import select
from typing import TYPE_CHECKING, Any

from mcp.server.lowlevel import Server
from mcp.server.runner import serve_dual_era_loop, serve_loop

from rookery.server.hub import Hub
from rookery.server.lines import Reader
from rookery.server.mcp import init_options
from rookery.server.session import Session
from rookery.server.wire import Wire, Writer

if TYPE_CHECKING:
    from rookery.app import Platform


async def serve_session(
    platform: "Platform", server: Server[Any], hub: Hub, session: Session, reader: Reader, writer: Writer
) -> None:
    """Answer until the client ends; every call that has come in is answered first, unless nobody is left to read."""
    wire = Wire(reader, writer, platform.settings.max_line_bytes, lambda: has_gone(writer))
    hub.join(session)
    await hub.sightings.note(session)
    try:
        options = await init_options(server, session)
        # The dual-era loop passes every message through one more queue; a client that shakes hands needs none of it.
        loop = serve_dual_era_loop if await wire.opens_modern() else serve_loop
        await loop(server, wire, wire, lifespan_state=session, session_id=session.id, init_options=options)
    finally:
        wire.flush()
        hub.leave(session)


def has_gone(writer: Writer) -> bool:
    """Whether nobody is left to read. A client that has only ended its input still reads."""
    if not isinstance(writer, asyncio.StreamWriter):
        return False
    if writer.transport.is_closing():
        return True
    end = writer.get_extra_info("socket") or writer.get_extra_info("pipe")
    poll = select.poll()
    poll.register(end.fileno(), 0)
    # Asked for nothing, it still tells of a socket closed at both ends and of a pipe without a reader.
    return any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0))
