"""Gives an agent of the Claude Agent SDK Rookery's tools, in process. Needs `pip install 'rookery[claude]'`."""

import asyncio
import sys

from claude_agent_sdk import ClaudeAgentOptions, ResultMessage, query

from rookery.app import make_platform
from rookery.identity.binding import Binding
from rookery.server.inprocess import allowed_tool_names, create_tool_server
from rookery.server.session import open_session
from rookery.settings import load_settings


async def main(prompt: str) -> None:
    platform = make_platform(load_settings())
    # Which tools it has follows from who it is: `rookery tools --agent default` lists them.
    actor = await (await open_session(platform, Binding(agent="default"))).actor()
    options = ClaudeAgentOptions(
        mcp_servers={"rookery": create_tool_server(platform, actor)},
        allowed_tools=allowed_tool_names(platform, actor),
    )
    async for message in query(prompt=prompt, options=options):
        if isinstance(message, ResultMessage):
            print(message.result)
    platform.close()


asyncio.run(main(" ".join(sys.argv[1:]) or "ping the server"))
