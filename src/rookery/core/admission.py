"""Whether a call may start: the decision about its caller, and the check of its arguments."""

from typing import Any, cast

from pydantic import ValidationError

from rookery.core.actor import Actor
from rookery.core.decide import Decision, decide
from rookery.core.errors import ApprovalRequired, InvalidParams, NotFound, PermissionDenied
from rookery.core.tool import Tool, ToolInput


def refuse_unless_listed(actor: Actor, tool: Tool) -> Decision:
    """What `decide` says, if it is not no: it allows the call, or asks for a person's approval."""
    decision = decide(actor, tool)
    if decision.outcome == "hide":
        raise NotFound(f"there is no tool {tool.name}", hint=decision.hint, layer=decision.layer)
    if decision.outcome == "deny":
        raise PermissionDenied(decision.reason, hint=decision.hint, layer=decision.layer)
    return decision


def refuse_unless_allowed(actor: Actor, tool: Tool) -> None:
    """Raise what `decide` says unless it allows the call outright."""
    decision = refuse_unless_listed(actor, tool)
    if decision.outcome == "ask":
        raise ApprovalRequired(decision.reason, hint=decision.hint, layer=decision.layer)


def storable(text: str) -> bool:
    """Whether both databases can keep the text: PostgreSQL takes no NUL, and half of a surrogate pair is no text."""
    if "\0" in text:
        return False
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _refuse_unstorable(tool: Tool, arguments: dict[str, Any]) -> None:
    """Raise InvalidParams for the first text that no database could keep, whatever the tool would do with it."""
    # No recursion: an argument may be nested as deeply as its sender likes.
    rest: list[Any] = [arguments]
    while rest:
        value = rest.pop()
        if isinstance(value, str):
            # Most text is decided here, without the cost of a call: every call of every tool passes.
            if (not value.isascii() or "\0" in value) and not storable(value):
                fault = f"{_field_at_fault(arguments)[:200]}: contains a NUL character or half of a surrogate pair"
                raise InvalidParams(f"{tool.name}: {fault}", hint="leave these characters out")
        elif isinstance(value, dict):
            rest += cast("dict[Any, Any]", value)
            rest += cast("dict[Any, Any]", value).values()
        elif isinstance(value, (list, tuple)):
            rest += cast("list[Any]", value)


def _field_at_fault(arguments: dict[str, Any]) -> str:
    """The dotted name of the field that is at fault; for a faulty key, of the field that has it."""
    rest: list[tuple[str, Any]] = [("", arguments)]
    while rest:
        place, value = rest.pop()
        if isinstance(value, str) and not storable(value):
            return place or "arguments"
        if isinstance(value, dict):
            members = cast("dict[Any, Any]", value)
            if not all(storable(key) for key in members if isinstance(key, str)):
                return place or "arguments"
            rest += [(f"{place}.{key}" if place else str(key), member) for key, member in members.items()]
        elif isinstance(value, (list, tuple)):
            rest += [(f"{place}.{number}", item) for number, item in enumerate(cast("list[Any]", value))]
    return "arguments"


def validate(tool: Tool, arguments: dict[str, Any]) -> ToolInput:
    """The arguments as the tool's model, or InvalidParams that names each field at fault."""
    _refuse_unstorable(tool, arguments)
    try:
        return tool.input.model_validate(arguments)
    except ValidationError as error:
        faults = "; ".join(
            f"{'.'.join(str(part) for part in fault['loc']) or 'arguments'}: {fault['msg']}"
            for fault in error.errors(include_url=False, include_input=False, include_context=False)[:8]
        )
        names = ", ".join(tool.input_schema.get("properties", {})) or "none"
        raise InvalidParams(f"{tool.name}: {faults}", hint=f"arguments: {names}") from None
