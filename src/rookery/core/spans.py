"""What the call path needs to put a run on a trace."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from rookery.core.context import Call
from rookery.core.tool import Tool

Span = Callable[[str, Call], AbstractContextManager[Any]]
"""Puts what happens in its block on a trace, if anybody collects traces."""


def no_span(name: str, call: Call) -> AbstractContextManager[Any]:
    return nullcontext()


SPANS = {"tool": "tool_execution", "resource": "resource_read", "prompt": "prompt_generation", "lookup": "lookup"}


def span_name(tool: Tool) -> str:
    """What a run is called on a trace, such as `tool_execution:ping` or `resource_read:echo`."""
    name = tool.name if tool.kind == "tool" else tool.name.partition(":")[2]
    return f"{SPANS[tool.kind]}:{name}"
