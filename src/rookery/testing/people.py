"""Who sits at the client's end of a test: a person who fills in forms, and a model that answers."""

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import mcp_types as types


@dataclass(frozen=True, slots=True)
class Asked:
    """A question that the server asked the client."""

    kind: Literal["elicit", "sample", "roots"]
    message: str = ""
    """The question to the person, or the last message to the model."""
    schema: dict[str, Any] = field(default_factory=dict[str, Any])
    """The form that the person is asked to fill in."""
    system: str | None = None
    max_tokens: int | None = None


Filled = Mapping[str, Any] | Literal["decline", "cancel"]
Person = Filled | Callable[[Asked], Filled | Awaitable[Filled]]
"""How a person answers: always with these fields, as far as the form has them; with a refusal; or as they decide."""
Model = str | Callable[[Asked], str | Awaitable[str]]
"""What a model says: always this, or what it makes of the question."""


@dataclass(frozen=True, slots=True)
class People:
    """Who is at the client's end. What is None the client cannot be asked for."""

    person: Person | None = None
    model: Model | None = None
    roots: Sequence[str] | None = None


async def _decided(how: Any, asked: Asked) -> Any:
    decided = how(asked) if callable(how) else how
    return await decided if inspect.isawaitable(decided) else decided


async def fill_in(person: Person, asked: Asked) -> types.ElicitResult:
    """What `person` answers."""
    filled: Filled = await _decided(person, asked)
    if isinstance(filled, str):
        return types.ElicitResult(action=filled)
    wanted = asked.schema.get("properties", {})
    # Somebody who was asked gave exactly this answer; what is always said is cut to the form.
    content = dict(filled) if callable(person) else {name: filled[name] for name in wanted if name in filled}
    return types.ElicitResult(action="accept", content=content)


async def say(model: Model, asked: Asked) -> types.CreateMessageResult:
    """What `model` says."""
    text: str = await _decided(model, asked)
    said = types.TextContent(type="text", text=text)
    return types.CreateMessageResult(role="assistant", content=said, model="stand-in", stop_reason="endTurn")


def elicit_asked(params: types.ElicitRequestParams) -> Asked:
    schema = params.requested_schema if isinstance(params, types.ElicitRequestFormParams) else {}
    return Asked("elicit", params.message, dict(schema))


def sample_asked(params: types.CreateMessageRequestParams) -> Asked:
    content = params.messages[-1].content if params.messages else []
    blocks = content if isinstance(content, list) else [content]
    text = "\n".join(block.text for block in blocks if isinstance(block, types.TextContent))
    return Asked("sample", text, system=params.system_prompt, max_tokens=params.max_tokens)
