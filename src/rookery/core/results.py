"""What a call gives back: the value, and the two faces of it that clients show their models."""

import json
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel
from pydantic_core import PydanticSerializationError

from rookery.core.blocks import Block, block_bytes, text_bytes


@dataclass(frozen=True, slots=True)
class Result:
    """A handler's answer. `structured` and `text` carry the same content: some clients show only one of them.

    With `blocks` these are shown instead of the text. A resource's and a prompt's answer is its value alone.
    """

    value: Any
    structured: dict[str, Any]
    text: str
    blocks: tuple[Block, ...] | None = None

    def size(self) -> int:
        """About how many bytes go to the client."""
        return text_bytes(self.text) if self.blocks is None else sum(block_bytes(block) for block in self.blocks)


def make_result(value: BaseModel) -> Result:
    """Both faces of `value`. A result with `as_text` writes its own text, the others are shown as JSON.

    One with `as_blocks` brings its own content.
    """
    kind = type(value)
    as_text = getattr(kind, "as_text", None)
    as_blocks = getattr(kind, "as_blocks", None)
    blocks = None if as_blocks is None else tuple(as_blocks(value))
    try:
        text = as_text(value) if as_text is not None else value.model_dump_json()
        return Result(value, value.model_dump(mode="json"), text, blocks)
    except (PydanticSerializationError, UnicodeEncodeError):
        # Half of a pair of surrogates, as file names can have, is a question mark.
        written = json.dumps(value.model_dump(), ensure_ascii=False, default=str).encode(errors="replace").decode()
        return Result(value, json.loads(written), written if as_text is None else as_text(value), blocks)
