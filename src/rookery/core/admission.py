"""Whether a call may start: the decision about its caller, and the check of its arguments."""

from typing import Any

from pydantic import ValidationError

from rookery.core.actor import Actor
from rookery.core.decide import decide
from rookery.core.errors import ApprovalRequired, InvalidParams, NotFound, PermissionDenied
from rookery.core.tool import Tool, ToolInput


def refuse_unless_allowed(actor: Actor, tool: Tool) -> None:
    """Raise what `decide` says unless it allows the call."""
    decision = decide(actor, tool)
    if decision.outcome == "allow":
        return
    if decision.outcome == "hide":
        raise NotFound(f"there is no tool {tool.name}", hint=decision.hint, layer=decision.layer)
    kind = ApprovalRequired if decision.outcome == "ask" else PermissionDenied
    raise kind(decision.reason, hint=decision.hint, layer=decision.layer)


def validate(tool: Tool, arguments: dict[str, Any]) -> ToolInput:
    """The arguments as the tool's model, or InvalidParams that names each field at fault."""
    try:
        return tool.input.model_validate(arguments)
    except ValidationError as error:
        faults = "; ".join(
            f"{'.'.join(str(part) for part in fault['loc']) or 'arguments'}: {fault['msg']}"
            for fault in error.errors(include_url=False, include_input=False, include_context=False)[:8]
        )
        names = ", ".join(tool.input_schema.get("properties", {})) or "none"
        raise InvalidParams(f"{tool.name}: {faults}", hint=f"arguments: {names}") from None
