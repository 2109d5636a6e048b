"""A tool as `tools/list` sends it: every byte is paid for in a context, so what goes without saying is left out."""

from typing import Any, cast

from rookery.core.tool import Tool

Json = dict[str, Any]
NO_OUTLINE: tuple[Json, ...] = ({}, {"type": "object"}, {"type": "object", "properties": {}})
"""Outlines that say no more of a result than that it is an object, which every result is."""


def wire_form(tool: Tool) -> Json:
    """The tool as a client is shown it. Whatever is left out here is checked all the same when the tool is called."""
    shown: Json = {
        "name": tool.name,
        "title": tool.title if tool.title != _spelled(tool.name) else None,
        "description": tool.description,
        "inputSchema": _arguments(tool.input_schema),
        "outputSchema": tool.output_schema if tool.output_schema not in NO_OUTLINE else None,
        "annotations": _hints(tool),
    }
    return {key: value for key, value in shown.items() if value is not None}


LEAST = (("minLength", 1), ("minimum", 0), ("minimum", 1))
NOTHING_COMES_NEAR = 1_000_000
"""Numbers so big are there for the database's sake; nobody chooses a value by them."""


def _spelled(name: str) -> str:
    return name.replace("_", " ").capitalize()


def _arguments(node: Json) -> Json:
    """A schema without empty defaults, since absent says the same, and without saying that nothing is too little or how
    long a text or a list may be: whoever goes beyond is told.
    """

    def inner(below: Any) -> Any:
        return _arguments(cast(Json, below)) if isinstance(below, dict) else below

    out: Json = {}
    for key, value in node.items():
        if (key == "default" and not value) or _goes_without_saying(key, value):
            continue
        if key == "properties":
            out[key] = {name: inner(field) for name, field in cast(Json, value).items()}
        elif key == "anyOf":
            out[key] = [inner(branch) for branch in cast("list[Any]", value)]
        else:
            out[key] = inner(value) if key == "items" else value
    return out


def _goes_without_saying(key: str, value: Any) -> bool:
    if key == "maximum":
        return value >= NOTHING_COMES_NEAR
    return key in ("maxLength", "maxItems") or (key, value) in LEAST


def _hints(tool: Tool) -> dict[str, bool]:
    """What a client may assume of the tool, as far as it differs from what the protocol has it assume anyway."""
    if tool.effect == "read":
        return {"readOnlyHint": True, "openWorldHint": False}
    said = {
        "destructiveHint": tool.tier == "destructive",
        "idempotentHint": tool.idempotent,
        "openWorldHint": tool.open_world,
    }
    assumed = {"destructiveHint": True, "idempotentHint": False, "openWorldHint": True}
    return {name: value for name, value in said.items() if value != assumed[name]}
