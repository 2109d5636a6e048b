"""The declaration of a tool: `@tool` beside its handler is the only place where a tool is named."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, get_type_hints

from pydantic import BaseModel, ConfigDict

from rookery.core.schema import compact_schema

Effect = Literal["read", "write", "external"]
Tier = Literal["observe", "act", "destructive", "privileged"]
Group = Literal["Read", "Write", "Phase", "Review", "System"]
Binding = Literal["project", "issue"]
Principals = Literal["any", "people", "operators", "everyone"]
"""`any`: agents and people. The others are for people: with `people` only the owner changes something, with `operators`
an operator does so too, with `everyone` also a viewer, and the handler says what is theirs."""
Kind = Literal["tool", "resource", "prompt", "lookup"]

PROFILES: dict[str, str] = {
    "W": "worker",
    "R": "researcher",
    "J": "judge",
    "S": "scanner",
    "A": "architect",
    "P": "planner",
    "I": "intake",
}
EVERY_PROFILE = "".join(PROFILES)
DEFAULT_TIMEOUT_S = 60.0


class ToolInput(BaseModel):
    """Base of every tool's arguments: an argument that the schema does not name is refused."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)
    secrets: ClassVar[frozenset[str]] = frozenset()
    """Fields whose values nobody is shown who is asked about a call."""


class NoInput(ToolInput):
    """For tools that take no arguments."""


class ToolOutput(BaseModel):
    """Base of every tool's result. Defaults are part of what a caller reads, so they are always sent."""

    model_config = ConfigDict(extra="forbid")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One tool, complete: what it is called, who may have it, what it does, how it runs.

    A resource, a prompt and what is looked up around them are run as such a record too, made by the registry.
    """

    name: str
    title: str
    description: str
    effect: Effect
    action: str
    tier: Tier
    group: Group
    profiles: frozenset[str]
    critical: frozenset[str]
    default: bool
    principals: Principals
    scopes: tuple[str, ...]
    bundles: frozenset[str]
    requires: str | None
    needs: str | None
    scheduler_blocked: bool
    interactive: bool
    networking: bool
    max_depth: int | None
    binds: Binding | None
    phases: frozenset[str] | None
    min_trust: int
    budget: str | None
    rate_per_minute: int | None
    idempotent: bool
    deprecated: bool
    open_world: bool
    inline: bool
    timeout_s: float
    input: type[ToolInput]
    output: type[Any]
    handler: Callable[..., Any]
    input_schema: dict[str, Any]
    output_schema: dict[str, Any]
    module: str
    right: str
    """The name whose right counts in lists, grants and bundles: for a tool its own."""
    domain: str = ""
    kind: Kind = "tool"
    right_effect: Effect | None = None
    """What the tool named by `right` does, where that is another."""

    @property
    def operation(self) -> str:
        """The request that runs it, such as `tools/call ping`."""
        return f"{_METHODS[self.kind]} {self.name}"


_METHODS: dict[Kind, str] = {
    "tool": "tools/call",
    "resource": "resources/read",
    "prompt": "prompts/get",
    "lookup": "lookup",
}


def _letters(letters: str) -> frozenset[str]:
    unknown = set(letters) - set(PROFILES)
    if unknown:
        raise TypeError(f"unknown profile letters {sorted(unknown)}; known: {EVERY_PROFILE}")
    return frozenset(PROFILES[letter] for letter in letters)


def input_of(handler: Callable[..., Any]) -> tuple[type[ToolInput], Any]:
    """The model of a handler's arguments, and the type that it says it returns."""
    hints = get_type_hints(handler)
    parameters = list(inspect.signature(handler).parameters)
    if len(parameters) != 2 or "return" not in hints:
        raise TypeError(f"{handler.__name__} must be (ctx, args: Model) -> Model")
    given = hints.get(parameters[1])
    if not (isinstance(given, type) and issubclass(given, ToolInput)):
        raise TypeError(f"{handler.__name__}: the second parameter must be a ToolInput")
    return given, hints["return"]


def _models(handler: Callable[..., Any]) -> tuple[type[ToolInput], type[BaseModel]]:
    given, result = input_of(handler)
    if not (isinstance(result, type) and issubclass(result, BaseModel)):
        raise TypeError(f"{handler.__name__} must return a pydantic model")
    return given, result


def tool(
    *,
    title: str,
    effect: Effect,
    action: str,
    tier: Tier,
    group: Group,
    profiles: str,
    default: bool,
    critical: str = "",
    principals: Principals = "any",
    scopes: tuple[str, ...] = (),
    bundles: tuple[str, ...] = (),
    requires: str | None = None,
    needs: str | None = None,
    scheduler_blocked: bool = False,
    interactive: bool = False,
    networking: bool = False,
    max_depth: int | None = None,
    binds: Binding | None = None,
    phases: tuple[str, ...] | None = None,
    min_trust: int = 0,
    budget: str | None = None,
    rate_per_minute: int | None = None,
    idempotent: bool = False,
    deprecated: bool = False,
    open_world: bool | None = None,
    inline: bool = False,
    outline: bool = True,
    timeout_s: float = DEFAULT_TIMEOUT_S,
) -> Callable[[Callable[..., Any]], Tool]:
    """Declare the decorated handler as a tool.

    `requires` names a service without which the tool is hidden; `needs` names a setting or extra without which it
    stays listed and its handler says what is missing. `open_world` is False for external handlers that touch nothing
    but files of this machine. `inline` is for handlers that touch neither database nor files: they run on the event
    loop. Without `outline` no schema of the result is listed, for which agents would pay and which they see anyway.
    """

    def declare(handler: Callable[..., Any]) -> Tool:
        given, result = _models(handler)
        if (effect == "external") != inspect.iscoroutinefunction(handler):
            raise TypeError(f"{handler.__name__}: external handlers are async, all others are not")
        if inline and effect != "read":
            raise TypeError(f"{handler.__name__}: only read handlers can run inline")
        return Tool(
            name=handler.__name__,
            title=title,
            description=inspect.cleandoc(handler.__doc__ or ""),
            effect=effect,
            action=action,
            tier=tier,
            group=group,
            profiles=_letters(profiles),
            critical=_letters(critical),
            default=default,
            principals=principals,
            scopes=(action, *scopes),
            bundles=frozenset(bundles),
            requires=requires,
            needs=needs,
            scheduler_blocked=scheduler_blocked,
            interactive=interactive,
            networking=networking,
            max_depth=max_depth,
            binds=binds,
            phases=frozenset(phases) if phases is not None else None,
            min_trust=min_trust,
            budget=budget,
            rate_per_minute=rate_per_minute,
            idempotent=idempotent,
            deprecated=deprecated,
            open_world=effect == "external" if open_world is None else open_world,
            inline=inline,
            timeout_s=timeout_s,
            input=given,
            output=result,
            handler=handler,
            input_schema=compact_schema(given, "validation"),
            # People read results in the console and at the command line, which need no outline of them.
            output_schema={} if principals != "any" or not outline else compact_schema(result, "serialization"),
            module=handler.__module__,
            right=handler.__name__,
        )

    return declare


def plain_name(name: str) -> str:
    """The listed spelling of a tool's name: the seeds' `corvid_` prefix is an alias everywhere."""
    return name.removeprefix("corvid_")
