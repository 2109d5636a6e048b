"""A whole platform in the process of a test, and clients to it. For authors of plugins; needs no test framework.

    import my_plugin
    from rookery.testing import ERAS, ToolFailed, open_bench

    async def test_my_tool_greets() -> None:
        async with open_bench({"my_plugin": my_plugin}) as bench:
            client = await bench.client("ada")
            assert (await client.call("greet", name="Bob")).text == "Hello Bob"

Nothing is simulated but the person, the model and the folders at the client's end: calls pass through the official
SDK's client, the MCP server, permissions, audit and a real database in a folder that is gone afterwards.
"""

from rookery.testing.answers import Answer, CallFailed, Contents, Prompted, ToolFailed
from rookery.testing.bench import Bench, open_bench
from rookery.testing.client import BenchClient, Log, Progress
from rookery.testing.connection import ERAS, Era
from rookery.testing.people import Asked

__all__ = [
    "ERAS",
    "Answer",
    "Asked",
    "Bench",
    "BenchClient",
    "CallFailed",
    "Contents",
    "Era",
    "Log",
    "Progress",
    "Prompted",
    "ToolFailed",
    "open_bench",
]
