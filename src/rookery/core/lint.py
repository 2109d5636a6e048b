"""Reads a declaration as its users will, and says what they would miss."""

import json
import re
from typing import Any, cast

from rookery.core.declared import Declared
from rookery.core.tool import Tool
from rookery.core.wire import wire_form

NAME = re.compile(r"^[a-z][a-z0-9]*(_[a-z0-9]+)*$")
ACTION = re.compile(r"^[a-z][a-z0-9_]*:[a-z][a-z0-9_]*$")
LIMITS = re.compile(
    r"\b(only|never|cannot|at most|up to|at least|nothing|refused|not|no|needs?|must|limit(ed|s)?|reads)\b",
    re.IGNORECASE,
)
MAX_DESCRIPTION = 600
MAX_TOKENS = 700


def tokens(tool: Tool) -> int:
    """About what the tool costs in an agent's context: bytes of its listing, divided by four."""
    return (len(json.dumps(wire_form(tool), separators=(",", ":"), ensure_ascii=False).encode()) + 3) // 4


def lint(tool: Tool) -> list[str]:
    """What is wrong with the declaration, a sentence each; empty if nothing is."""
    faults = [*_names(tool), *_description(tool), *_fields(tool.name, tool.input_schema)]
    if tokens(tool) > MAX_TOKENS:
        faults.append(f"{tool.name}: the listing costs {tokens(tool)} tokens, more than {MAX_TOKENS}")
    return faults


def lint_declared(declared: Declared) -> list[str]:
    """The same for a resource or a prompt, whose description may be a single sentence."""
    where = f"{declared.kind} {declared.name}"
    faults = _called(where, declared.name, declared.title)
    if not declared.description.strip():
        faults.append(f"{where}: the description does not say what it is")
    if len(declared.description) > MAX_DESCRIPTION:
        faults.append(f"{where}: the description has more than {MAX_DESCRIPTION} characters")
    return [*faults, *_fields(where, declared.input_schema)]


def _called(where: str, name: str, title: str) -> list[str]:
    faults: list[str] = []
    if not NAME.match(name) or len(name) > 64:
        faults.append(f"{where}: a name is verb_noun in lower case, at most 64 characters")
    if not title or len(title) > 60:
        faults.append(f"{where}: the title must have 1 to 60 characters")
    return faults


def _names(tool: Tool) -> list[str]:
    faults = _called(tool.name, tool.name, tool.title)
    if not ACTION.match(tool.action):
        faults.append(f"{tool.name}: the action {tool.action} is not domain:verb")
    return faults


def _description(tool: Tool) -> list[str]:
    """What a model chooses by must be said. A tool for people has only to say what it does: they chose already."""
    text = tool.description
    wanted = [("what it does", bool(text.split(".")[0].strip()))]
    if tool.principals == "any":
        wanted += [
            ("when to use it (a sentence with Use)", bool(re.search(r"\buse\b", text, re.IGNORECASE))),
            ("what it returns (a sentence with Returns)", bool(re.search(r"\breturns?\b", text, re.IGNORECASE))),
            ("its limits", bool(LIMITS.search(text))),
        ]
    missing = [what for what, found in wanted if not found]
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
