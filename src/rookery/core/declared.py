"""What resources and prompts have in common: they are had with the right of a tool, and run as a tool is."""

import inspect
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Self, cast

from rookery.core.schema import compact_schema
from rookery.core.tool import Effect, Tool, ToolInput, input_of

Complete = Mapping[str, Callable[..., Any]]
"""By argument: `(ctx, typed so far, the other arguments) -> list of values`; async if it has to leave the process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared(ABC):
    """A resource or a prompt as it was declared; with its record, once the registry knows the tool that it names."""

    name: str
    title: str
    description: str
    right: str
    scopes: tuple[str, ...]
    effect: Effect
    inline: bool
    timeout_s: float
    input: type[ToolInput]
    input_schema: dict[str, Any]
    handler: Callable[..., Any]
    complete: Complete
    module: str
    domain: str = ""
    record: Tool | None = None
    kind: ClassVar[Literal["resource", "prompt"]]
    output: ClassVar[type[Any]]

    @property
    def tool(self) -> Tool:
        """The record that `decide` judges and the call path runs."""
        if self.record is None:
            raise RuntimeError(f"the {self.kind} {self.name} is in no registry")
        return self.record

    @abstractmethod
    def form(self, value: Any) -> Any:
        """What the handler gave as `output`, or SerializationError."""

    def sealed(self, right: Tool) -> Self:
        """The same with its record, which has the rights of `right` and nothing more."""
        record = replace(
            right,
            kind=self.kind,
            name=f"{self.kind}:{self.name}",
            right=right.name,
            right_effect=right.effect,
            title=self.title,
            description=self.description,
            effect=self.effect,
            scopes=(*right.scopes, *self.scopes),
            inline=self.inline,
            timeout_s=self.timeout_s,
            idempotent=True,
            input=self.input,
            output=self.output,
            handler=_adapted(self.handler, self.form),
            input_schema=self.input_schema,
            output_schema={},
            module=self.module,
            domain=self.domain,
        )
        return replace(self, record=record)

    def lookup(self, what: str, look: Callable[..., Any]) -> Tool:
        """A record that runs `look(ctx)` with the same rights, to complete an argument or to list entries."""
        outside = inspect.iscoroutinefunction(look)
        return replace(
            self.tool,
            kind="lookup",
            name=f"{self.kind}:{self.name}:{what}",
            effect="external" if outside else "read",
            inline=self.inline and not outside,
            input=LookedUp,
            output=list,
            handler=_without_arguments(look),
            input_schema={},
        )


class LookedUp(ToolInput):
    """What was looked up, for the digest in the audit log."""

    what: dict[str, str]


def _adapted(handler: Callable[..., Any], form: Callable[[Any], Any]) -> Callable[..., Any]:
    """The handler, whose value is brought into its one form; in its thread, if it has one."""

    def inside(ctx: Any, args: Any) -> Any:
        return form(handler(ctx, args))

    async def outside(ctx: Any, args: Any) -> Any:
        return form(await cast("Awaitable[Any]", handler(ctx, args)))

    return outside if inspect.iscoroutinefunction(handler) else inside


def _without_arguments(look: Callable[..., Any]) -> Callable[..., Any]:
    def handler(ctx: Any, args: LookedUp) -> Any:
        return look(ctx)

    return handler


def as_list(value: Any) -> list[Any]:
    """What a handler gave, as a list; a single value is a list of one."""
    return [*cast("Iterable[Any]", value)] if isinstance(value, list | tuple) else [value]


def common_fields(handler: Callable[..., Any], *, inline: bool, complete: Complete | None) -> dict[str, Any]:
    """What a handler says by itself. An async one is external, the others read; completers must be of its arguments."""
    outside = inspect.iscoroutinefunction(handler)
    if outside and inline:
        raise TypeError(f"{handler.__name__}: an async handler cannot run inline")
    given, _ = input_of(handler)
    schema = compact_schema(given, "validation")
    unknown = sorted(set(complete or {}) - set(schema.get("properties", {})))
    if unknown:
        raise TypeError(f"{handler.__name__} has no argument {', '.join(unknown)} to complete")
    return {
        "name": handler.__name__,
        "description": inspect.cleandoc(handler.__doc__ or ""),
        "effect": "external" if outside else "read",
        "inline": inline,
        "input": given,
        "input_schema": schema,
        "handler": handler,
        "complete": dict(complete or {}),
        "module": handler.__module__,
    }
