"""Where a call waits for a person's yes, if `decide` says that it needs one."""

from typing import TYPE_CHECKING, Any, Protocol

from rookery.core.context import Call
from rookery.core.errors import ApprovalRequired
from rookery.core.tool import Tool, ToolInput

if TYPE_CHECKING:
    from rookery.core.call import Calls

TOKEN = "approval_token"
"""The argument, of whatever tool, that names the approval for which a call came back. The same call without will do."""


class Gate(Protocol):
    """Lets calls through that a person has approved."""

    async def let_through(self, calls: "Calls", call: Call, args: ToolInput, token: str | None) -> str:
        """What the audit log notes of the approval, which is used up now; else an error that says how to get one."""
        ...


class ClosedGate:
    """Lets nothing through: for installations without anybody to ask."""

    async def let_through(self, calls: "Calls", call: Call, args: ToolInput, token: str | None) -> str:
        raise ApprovalRequired(f"{call.tool.name} needs a person's approval", hint="ask the owner", layer="gate")


def without_token(tool: Tool, arguments: dict[str, Any]) -> tuple[dict[str, Any], str | None]:
    """The arguments that are the tool's own, and the approval token that came along with them."""
    if TOKEN not in arguments or tool.kind != "tool" or TOKEN in tool.input.model_fields:
        return arguments, None
    rest = {name: value for name, value in arguments.items() if name != TOKEN}
    token = arguments[TOKEN]
    # What is no text is no token; the empty one is never right.
    return rest, token if isinstance(token, str) else ""
