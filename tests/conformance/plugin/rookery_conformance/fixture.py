"""How a fixture is declared: as any tool, with what the suite does not care about filled in."""

import base64
from collections.abc import Callable
from typing import Any

from rookery.core.blocks import Audio, Block, Embedded, Image, Text
from rookery.core.tool import EVERY_PROFILE, Effect, Tool, ToolOutput, tool

PIXEL = Image(
    base64.b64decode(
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
    ),
    "image/png",
)
SILENCE = Audio(base64.b64decode("UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA="), "audio/wav")
BLOCKS: dict[str, Block] = {
    "title": Text("Multiple content types test:"),
    "pixel": PIXEL,
    "silence": SILENCE,
    "resource": Embedded("test://embedded-resource", "This is an embedded resource content.", "text/plain"),
    "json": Embedded("test://mixed-content-resource", '{"test":"data","value":123}', "application/json"),
}


class Said(ToolOutput):
    """Text, word for word as the suite wants it."""

    text: str

    def as_text(self) -> str:
        return self.text


class Shown(ToolOutput):
    """Blocks, by their names above."""

    blocks: list[str]

    def as_blocks(self) -> list[Block]:
        return [BLOCKS[name] for name in self.blocks]


def fixture(effect: Effect) -> Callable[[Callable[..., Any]], Tool]:
    """Declare the handler as a tool that everybody has. Its docstring needs to say what it does and no more."""

    def declare(handler: Callable[..., Any]) -> Tool:
        handler.__doc__ = f"{handler.__doc__} Use it to test clients and servers only. Returns what the suite expects."
        return tool(
            title=handler.__name__.replace("_", " ").capitalize(),
            effect=effect,
            action="conformance:test",
            tier="observe" if effect == "read" else "act",
            group="System",
            profiles=EVERY_PROFILE,
            default=True,
            inline=effect == "read",
        )(handler)

    return declare
