"""The same tools as `bare_sdk.py`, written with fastmcp, and the same arguments."""

import datetime
import sys
from collections.abc import Callable
from typing import Annotated, Any, Literal

from fastmcp import FastMCP
from pydantic import Field

server = FastMCP("fastmcp-peer", version="1")


def now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat()


@server.tool
async def ping() -> dict[str, Any]:
    """Answer pong and the time."""
    return {"status": "pong", "timestamp": now()}


@server.tool
async def note(
    text: Annotated[str, Field(description="What to write down.", max_length=500)],
) -> dict[str, Any]:
    """Answer as a write tool would."""
    return {"status": "noted", "timestamp": now()}


def filler() -> Callable[..., Any]:
    async def change_item(
        item_id: Annotated[str, Field(description="The id of the item, as a listing shows it.")],
        summary: Annotated[str, Field(description="One sentence that says what changed.", max_length=500)] = "",
        status: Annotated[Literal["open", "closed"], Field(description="Only items in this state.")] = "open",
        limit: Annotated[int, Field(description="Page size.", ge=1, le=100)] = 20,
    ) -> dict[str, Any]:
        return {"item_id": item_id}

    return change_item


def serve_http(port: int, answers: str, sessions: str) -> None:
    server.run(
        "http",
        show_banner=False,
        port=port,
        json_response=answers == "json",
        stateless_http=sessions == "stateless",
        uvicorn_config={"loop": "uvloop", "http": "httptools", "access_log": False, "log_level": "warning"},
    )


if __name__ == "__main__":
    for number in range(int(sys.argv[1]) - 2):
        text = f"Change item {number}. Use it when an item is out of date. Returns the item as it is afterwards."
        server.tool(filler(), name=f"change_item_{number}", description=text)
    if len(sys.argv) == 2:
        server.run("stdio", show_banner=False)
    else:
        serve_http(int(sys.argv[2]), *sys.argv[3:])
