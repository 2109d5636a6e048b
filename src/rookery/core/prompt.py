"""The declaration of a prompt: `@prompt` beside its handler. It is had by the right of the tool that it names."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from rookery.core.blocks import Block, Text, block_bytes
from rookery.core.declared import Complete, Declared, as_list, common_fields
from rookery.core.errors import SerializationError
from rookery.core.tool import DEFAULT_TIMEOUT_S


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a prompt."""

    role: Literal["user", "assistant"]
    content: str | Block

    @property
    def block(self) -> Block:
        return Text(self.content) if isinstance(self.content, str) else self.content


@dataclass(frozen=True, slots=True)
class Messages:
    """What a prompt's handler gave, in its one form."""

    messages: tuple[Message, ...]

    def size(self) -> int:
        return sum(block_bytes(message.block) for message in self.messages)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt(Declared):
    """One prompt."""

    kind: ClassVar[Literal["resource", "prompt"]] = "prompt"
    output: ClassVar[type[Any]] = Messages

    def form(self, value: Any) -> Messages:
        """Text, which the user says, or a list of messages."""
        if isinstance(value, str):
            return Messages((Message("user", value),))
        parts = as_list(value)
        if not all(isinstance(part, Message) for part in parts):
            raise SerializationError(f"{self.name} returned {type(value).__name__}, not the messages of a prompt")
        return Messages(tuple(parts))


def prompt(
    *,
    title: str,
    right: str,
    complete: Complete | None = None,
    scopes: tuple[str, ...] = (),
    inline: bool = False,
    timeout_s: float = DEFAULT_TIMEOUT_S,
) -> Callable[[Callable[..., Any]], Prompt]:
    """Declare the decorated handler as a prompt.

    `right` names the tool without which nobody has it; `scopes` are needed besides those of that tool. Clients send
    arguments as text, which the handler's model reads. `inline` is for handlers that touch neither database nor files.
    """

    def declare(handler: Callable[..., Any]) -> Prompt:
        fields = common_fields(handler, inline=inline, complete=complete)
        return Prompt(title=title, right=right, scopes=scopes, timeout_s=timeout_s, **fields)

    return declare
