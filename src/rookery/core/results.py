"""What a call gives back: the value, and the two faces of it that clients show their models."""

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from pydantic import BaseModel


@runtime_checkable
class OwnText(Protocol):
    """A result that writes its own text for clients that show no structured content."""

    def as_text(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Result:
    """A handler's answer. `structured` and `text` carry the same content: some clients show only one of them."""

    value: BaseModel
    structured: dict[str, Any]
    text: str


def make_result(value: BaseModel) -> Result:
    """Both faces of `value`."""
    text = value.as_text() if isinstance(value, OwnText) else value.model_dump_json()
    return Result(value, value.model_dump(mode="json"), text)
