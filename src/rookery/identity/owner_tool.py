"""The declaration that the tools of identity share: for people, in no profile and in no default set."""

from collections.abc import Callable
from typing import Any, Literal

from rookery.core.tool import Tool, tool


def owner_tool(
    *, title: str, effect: Literal["read", "write"], destructive: bool = False
) -> Callable[[Callable[..., Any]], Tool]:
    """Declare the decorated handler as a tool with which people manage identities."""
    return tool(
        title=title,
        effect=effect,
        action=f"identity:{effect}",
        tier="destructive" if destructive else "observe" if effect == "read" else "act",
        group="System",
        profiles="",
        default=False,
        principals="people",
        # A session of the owner that nobody attends gives no rights.
        interactive=effect == "write",
    )
