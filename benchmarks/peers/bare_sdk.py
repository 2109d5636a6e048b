"""The official SDK's low-level server with its own transports: no permissions, no audit, no database.

`python bare_sdk.py COUNT` serves COUNT tools on stdio, `ping` and `note` among them;
`python bare_sdk.py COUNT PORT json|sse stateful|stateless` serves them over HTTP.
"""

import datetime
import json
import sys
from typing import Any

import anyio
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError

EMPTY: dict[str, Any] = {"type": "object", "properties": {}, "additionalProperties": False}
NOTE: dict[str, Any] = {
    "type": "object",
    "properties": {"text": {"type": "string", "description": "What to write down.", "maxLength": 500}},
    "required": ["text"],
    "additionalProperties": False,
}
FILLER: dict[str, Any] = {
    "type": "object",
    "properties": {
        "item_id": {"type": "string", "description": "The id of the item, as a listing shows it."},
        "summary": {
            "type": "string",
            "description": "One sentence that says what changed.",
            "maxLength": 500,
        },
        "status": {"type": "string", "enum": ["open", "closed"], "description": "Only items in this state."},
        "limit": {
            "type": "integer",
            "minimum": 1,
            "maximum": 100,
            "default": 20,
            "description": "Page size.",
        },
    },
    "required": ["item_id"],
    "additionalProperties": False,
}


def declare(count: int) -> list[types.Tool]:
    """`ping`, `note` and as many others as it takes to make `count`."""
    tools = [
        types.Tool(name="ping", description="Answer pong and the time.", input_schema=EMPTY),
        types.Tool(name="note", description="Answer as a write tool would.", input_schema=NOTE),
    ]
    for number in range(count - len(tools)):
        text = f"Change item {number}. Use it when an item is out of date. Returns the item as it is afterwards."
        tools.append(types.Tool(name=f"change_item_{number}", description=text, input_schema=FILLER))
    return tools


def answer(content: dict[str, Any]) -> types.CallToolResult:
    text = types.TextContent(type="text", text=json.dumps(content))
    return types.CallToolResult(content=[text], structured_content=content)


def build(count: int) -> Server[Any]:
    tools = declare(count)

    async def list_tools(ctx: Any, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=tools)

    async def call_tool(ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        now = datetime.datetime.now(datetime.UTC).isoformat()
        if params.name == "ping":
            return answer({"status": "pong", "timestamp": now})
        if params.name == "note":
            return answer({"status": "noted", "timestamp": now})
        raise MCPError(code=types.INVALID_PARAMS, message=f"Unknown tool: {params.name}")

    schemas = {tool.name: tool.input_schema for tool in tools}
    return Server(
        "bare-sdk",
        version="1",
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        get_tool_input_schema=schemas.get,
    )


async def serve_stdio(count: int) -> None:
    server = build(count)
    async with stdio_server() as (read_stream, write_stream):
        await server.run(read_stream, write_stream, server.create_initialization_options())


def serve_http(count: int, port: int, answers: str, sessions: str) -> None:
    # Not at the top: what stdio does not need must not be part of its cold start.
    import uvicorn

    stateless = sessions == "stateless"
    app = build(count).streamable_http_app(json_response=answers == "json", stateless_http=stateless)
    uvicorn.run(app, port=port, loop="uvloop", http="httptools", access_log=False, log_level="warning")


if __name__ == "__main__":
    if len(sys.argv) == 2:
        anyio.run(serve_stdio, int(sys.argv[1]))
    else:
        serve_http(int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:])
