"""The declaration of a resource: `@resource` beside its handler. It is read by the right of the tool that it names."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

from pydantic import BaseModel

from rookery.core.blocks import text_bytes
from rookery.core.declared import Complete, Declared, as_list, common_fields
from rookery.core.errors import SerializationError
from rookery.core.tool import DEFAULT_TIMEOUT_S
from rookery.core.uri import Template


@dataclass(frozen=True, slots=True)
class Contents:
    """One part of what a resource holds. Without an address of its own it has that of the request."""

    text: str | bytes
    uri: str | None = None
    mime_type: str | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """One address of a template that can list what it holds."""

    uri: str
    name: str
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """What a resource's handler gave, in its one form."""

    contents: tuple[Contents, ...]

    def size(self) -> int:
        return sum(text_bytes(part.text) for part in self.contents)


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource(Declared):
    """One resource, or all resources of a template."""

    template: Template
    mime_type: str | None
    entries: Callable[..., Any] | None
    kind: ClassVar[Literal["resource", "prompt"]] = "resource"
    output: ClassVar[type[Any]] = Reading

    def form(self, value: Any) -> Reading:
        """Text, bytes, a model (as JSON) or a list of Contents."""
        if isinstance(value, str | bytes):
            return Reading((Contents(value, mime_type=self.mime_type),))
        if isinstance(value, BaseModel):
            return Reading((Contents(value.model_dump_json(), mime_type=self.mime_type or "application/json"),))
        parts = as_list(value)
        if not all(isinstance(part, Contents) for part in parts):
            raise SerializationError(f"{self.name} returned {type(value).__name__}, not contents of a resource")
        return Reading(tuple(part if part.mime_type else replace(part, mime_type=self.mime_type) for part in parts))


def resource(
    uri: str,
    *,
    title: str,
    right: str,
    mime_type: str | None = None,
    entries: Callable[..., Any] | None = None,
    complete: Complete | None = None,
    scopes: tuple[str, ...] = (),
    inline: bool = False,
    timeout_s: float = DEFAULT_TIMEOUT_S,
) -> Callable[[Callable[..., Any]], Resource]:
    """Declare the decorated handler as a resource at `uri`, or at every address of a template like `echo://{message}`.

    `right` names the tool without which nobody reads it; `scopes` are needed besides those of that tool. `entries`
    lists the addresses of a template: `(ctx) -> list[Entry]`. `inline` is for handlers that touch neither database nor
    files.
    """

    def declare(handler: Callable[..., Any]) -> Resource:
        fields = common_fields(handler, inline=inline, complete=complete)
        template, schema = Template(uri), fields["input_schema"]
        if not set(schema.get("required", ())) <= set(template.variables) <= set(schema.get("properties", {})):
            raise TypeError(f"{handler.__name__}: the variables of {uri} are not the fields of its input")
        if entries is not None and not template.variables:
            raise TypeError(f"{handler.__name__}: only a template can list entries")
        return Resource(
            template=template,
            title=title,
            mime_type=mime_type,
            right=right,
            scopes=scopes,
            entries=entries,
            timeout_s=timeout_s,
            **fields,
        )

    return declare
