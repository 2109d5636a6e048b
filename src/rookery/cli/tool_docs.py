"""The registry as documentation: docs/tools.md is what `rookery tools --markdown` prints."""

import json
from collections.abc import Iterable
from itertools import groupby
from typing import Any, cast, get_args

from rookery.core.actor import Actor, Role
from rookery.core.decide import explain
from rookery.core.registry import Registry
from rookery.core.tool import DEFAULT_TIMEOUT_S, PROFILES, Tool

INTRODUCTION = """# Tools

Every tool of the product, by domain. Written from the declarations by `make docs`; a test compares the two.

- **effect**: `read` cannot change anything, `write` is one transaction, `external` reaches beyond the database.
- **tier**: how much it takes to undo: `observe`, `act`, `destructive`; `privileged` must be given by name.
- **default set**: whether an agent has it without a profile and without a list of its own.
- **agents**: how an agent can come by it. `rookery explain TOOL --agent NAME` says whether one has it, and why.
- **people**: the roles that reach it.
"""
FORMATS = {"date-time": "time (ISO 8601 with zone)", "uri": "address"}


def render(registry: Registry) -> str:
    """The whole registry as Markdown. The same registry gives the same text, whatever the machine or the day."""
    ordered = sorted(registry, key=lambda tool: (tool.domain, tool.name))
    parts = [INTRODUCTION]
    for domain, tools in groupby(ordered, lambda tool: tool.domain):
        parts.append(f"## {domain}\n")
        parts += [_section(tool) for tool in tools]
    return "\n".join(parts)


def _section(tool: Tool) -> str:
    facts = {
        "effect": f"`{tool.effect}`",
        "tier": f"`{tool.tier}`",
        "group": tool.group,
        "default set": "yes" if tool.default else "no",
        "profiles": _profiles(tool.profiles),
        "agents": _agents(tool),
        "people": ", ".join(_roles(tool)),
        "scopes": _code(tool.scopes),
        "limits": _limits(tool),
    }
    lines = [f"### `{tool.name}`", "", f"**{tool.title}.** {' '.join(tool.description.split())}", ""]
    lines += ["| | |", "|---|---|"]
    lines += [f"| {name} | {_escape(value)} |" for name, value in facts.items() if value]
    return "\n".join([*lines, "", *_arguments(tool), ""])


def _profiles(names: frozenset[str]) -> str:
    if names == frozenset(PROFILES.values()):
        return "all"
    return ", ".join(name for name in PROFILES.values() if name in names) or "none"


def _roles(tool: Tool) -> list[str]:
    """The roles of people that `decide` lets through, asked of `decide` itself."""

    def reaches(role: Role) -> bool:
        person = Actor(kind="human", tenant="docs", subject="docs", role=role)
        return next(verdict for verdict in explain(person, tool) if verdict.layer == "principal").outcome == "allow"

    return [role for role in get_args(Role) if reaches(role)]


def _agents(tool: Tool) -> str:
    if tool.principals != "any":
        return "never"
    if tool.tier == "privileged":
        return "by a grant, or named in the agent's own list"
    ways = ["by default"] if tool.default else []
    if tool.profiles:
        ways.append("by profile")
    if tool.bundles:
        ways.append(f"by bundle ({_code(sorted(tool.bundles))})")
    return ", ".join([*ways, "by a grant or the agent's own list"])


def _limits(tool: Tool) -> str:
    said = [
        f"hidden without the service {tool.requires}" if tool.requires else "",
        f"answers what is missing without {tool.needs}" if tool.needs else "",
        "blocked in scheduled sessions" if tool.scheduler_blocked else "",
        "needs a person in the session" if tool.interactive else "",
        "may be taken from sessions that agents start" if tool.networking else "",
        f"below depth {tool.max_depth} only" if tool.max_depth is not None else "",
        f"needs a bound {tool.binds}" if tool.binds else "",
        f"phases: {', '.join(sorted(tool.phases))}" if tool.phases is not None else "",
        f"trust level {tool.min_trust} or more" if tool.min_trust else "",
        f"counts against the budget {tool.budget}" if tool.budget else "",
        f"{tool.rate_per_minute} calls a minute" if tool.rate_per_minute is not None else "",
        f"up to {tool.timeout_s:g} s" if tool.timeout_s != DEFAULT_TIMEOUT_S else "",
        "deprecated" if tool.deprecated else "",
    ]
    return "; ".join(limit for limit in said if limit)


def _arguments(tool: Tool) -> list[str]:
    properties = cast("dict[str, dict[str, Any]]", tool.input_schema.get("properties", {}))
    if not properties:
        return ["No arguments."]
    required = cast("list[str]", tool.input_schema.get("required", []))
    rows = ["| argument | type | required | default | description |", "|---|---|---|---|---|"]
    for name, schema in properties.items():
        default = f"`{json.dumps(schema['default'], ensure_ascii=False)}`" if "default" in schema else ""
        cells = [f"`{name}`", _type(schema), "yes" if name in required else "no", default]
        cells.append(str(schema.get("description", "")))
        rows.append(f"| {' | '.join(_escape(cell) for cell in cells)} |")
    return rows


def _type(schema: dict[str, Any]) -> str:
    """What may be given, in words."""
    if "anyOf" in schema:
        return " or ".join(_type(branch) for branch in cast("list[dict[str, Any]]", schema["anyOf"]))
    if "const" in schema:
        return f"`{json.dumps(schema['const'], ensure_ascii=False)}`"
    if "enum" in schema:
        return " or ".join(f"`{json.dumps(value, ensure_ascii=False)}`" for value in schema["enum"])
    kind = str(schema.get("type", "any"))
    if kind == "array":
        items = cast("dict[str, Any]", schema.get("items", {}))
        return f"list of {_type(items)}{_range(schema, 'minItems', 'maxItems', 'items')}"
    if kind == "object" and "properties" in schema:
        return f"object with {_code(schema['properties'])}"
    named = FORMATS.get(str(schema.get("format")), kind)
    return named + _range(schema, "minLength", "maxLength", "characters") + _range(schema, "minimum", "maximum", "")


def _range(schema: dict[str, Any], low: str, high: str, unit: str) -> str:
    least, most = schema.get(low), schema.get(high)
    if least is None and most is None:
        return ""
    if least is None or most is None:
        span = f"at least {least}" if most is None else f"at most {most}"
    else:
        span = f"{least} to {most}"
    return f", {span} {unit}".rstrip()


def _code(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _escape(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())
