"""Resources about the server itself."""

from rookery.core.context import Context
from rookery.core.resource import resource
from rookery.core.tool import NoInput
from rookery.domains.system.tools import GetServerInfo, ServerInfo, get_server_info


@resource("rookery://server", title="Server", right="get_server_info", mime_type="application/json", inline=True)
def server(ctx: Context, args: NoInput) -> ServerInfo:
    """Which server this is: product, version and port, as JSON. The same that get_server_info answers."""
    return get_server_info.handler(ctx, GetServerInfo(include_uptime=False))
