"""What a call gives back: the value, and the two faces of it that clients show their models."""

from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel


@dataclass(frozen=True, slots=True)
class Result:
    """A handler's answer. `structured` and `text` carry the same content: some clients show only one of them."""

    value: BaseModel
    structured: dict[str, Any]
    text: str


def make_result(value: BaseModel) -> Result:
    """Both faces of `value`. A result that has `as_text` writes its own text; the others are shown as JSON."""
    as_text = getattr(type(value), "as_text", None)
    text = as_text(value) if as_text is not None else value.model_dump_json()
    return Result(value, value.model_dump(mode="json"), text)
