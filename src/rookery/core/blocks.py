"""Content that is more than text: what tools, resources and prompts may show besides it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Text:
    """Plain text or Markdown."""

    text: str


@dataclass(frozen=True, slots=True)
class Image:
    """A picture, as it is in its file."""

    data: bytes
    mime_type: str


@dataclass(frozen=True, slots=True)
class Audio:
    """A sound, as it is in its file."""

    data: bytes
    mime_type: str


@dataclass(frozen=True, slots=True)
class Embedded:
    """The contents of a resource, sent along. Bytes are sent as such, text as text."""

    uri: str
    text: str | bytes
    mime_type: str | None = None


@dataclass(frozen=True, slots=True)
class Link:
    """Where a resource can be read."""

    uri: str
    name: str
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None


Block = Text | Image | Audio | Embedded | Link


def block_bytes(block: Block) -> int:
    """About how much the block weighs on the wire, before it is encoded."""
    if isinstance(block, Image | Audio):
        return len(block.data)
    if isinstance(block, Link):
        return len(block.uri)
    return text_bytes(block.text)


def text_bytes(text: str | bytes) -> int:
    """The length in bytes. Half of a pair of surrogates counts as one."""
    return len(text.encode(errors="replace")) if isinstance(text, str) else len(text)
