"""Reads a tool's declaration as its users will, and says what they would miss."""

import json
import re
from typing import Any, cast

from rookery.core.tool import Tool

NAME = re.compile(r"^[a-z][a-z0-9]*(_[a-z0-9]+)*$")
ACTION = re.compile(r"^[a-z][a-z0-9_]*:[a-z][a-z0-9_]*$")
LIMITS = re.compile(
    r"\b(only|never|cannot|at most|up to|at least|nothing|refused|not|no|needs?|must|limit(ed|s)?|reads)\b",
    re.IGNORECASE,
)
MAX_DESCRIPTION = 600
MAX_TOKENS = 700


def wire_form(tool: Tool) -> dict[str, Any]:
    """The tool as `tools/list` sends it."""
    return {
        "name": tool.name,
        "title": tool.title,
        "description": tool.description,
        "inputSchema": tool.input_schema,
        "outputSchema": tool.output_schema,
        "annotations": {
            "readOnlyHint": tool.effect == "read",
            "destructiveHint": tool.tier == "destructive",
            "idempotentHint": tool.idempotent or tool.effect == "read",
            "openWorldHint": tool.effect == "external",
        },
    }


def tokens(tool: Tool) -> int:
    """About what the tool costs in an agent's context: bytes of its listing, divided by four."""
    return (len(json.dumps(wire_form(tool), separators=(",", ":"), ensure_ascii=False).encode()) + 3) // 4


def lint(tool: Tool) -> list[str]:
    """What is wrong with the declaration, a sentence each; empty if nothing is."""
    faults = [*_names(tool), *_description(tool), *_fields(tool.name, tool.input_schema)]
    if tokens(tool) > MAX_TOKENS:
        faults.append(f"{tool.name}: the listing costs {tokens(tool)} tokens, more than {MAX_TOKENS}")
    return faults


def _names(tool: Tool) -> list[str]:
    faults: list[str] = []
    if not NAME.match(tool.name) or len(tool.name) > 64:
        faults.append(f"{tool.name}: a name is verb_noun in lower case, at most 64 characters")
    if not ACTION.match(tool.action):
        faults.append(f"{tool.name}: the action {tool.action} is not domain:verb")
    if not tool.title or len(tool.title) > 60:
        faults.append(f"{tool.name}: the title must have 1 to 60 characters")
    return faults


def _description(tool: Tool) -> list[str]:
    text = tool.description
    missing = [
        what
        for what, found in (
            ("what it does", bool(text.split(".")[0].strip())),
            ("when to use it (a sentence with Use)", bool(re.search(r"\buse\b", text, re.IGNORECASE))),
            (
                "what it returns (a sentence with Returns)",
                bool(re.search(r"\breturns?\b", text, re.IGNORECASE)),
            ),
            ("its limits", bool(LIMITS.search(text))),
        )
        if not found
    ]
    faults = [f"{tool.name}: the description does not say {what}" for what in missing]
    if len(text) > MAX_DESCRIPTION:
        faults.append(f"{tool.name}: the description has {len(text)} characters, more than {MAX_DESCRIPTION}")
    return faults


def _fields(where: str, schema: dict[str, Any]) -> list[str]:
    """Every field, nested ones included, must be described."""
    faults: list[str] = []
    properties = cast("dict[str, dict[str, Any]]", schema.get("properties", {}))
    for name, node in properties.items():
        if not node.get("description"):
            faults.append(f"{where}: the field {name} has no description")
        faults += _fields(f"{where}.{name}", node)
        if isinstance(node.get("items"), dict):
            faults += _fields(f"{where}.{name}", cast("dict[str, Any]", node["items"]))
    return faults
