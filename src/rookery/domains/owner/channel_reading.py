"""The channels by which people are told something, for those who look at them. Never their secrets.

Not in a module where tools are looked for: no agent has it, and no session pays for its listing.
"""

from typing import Any

from rookery.core.context import Context
from rookery.core.tool import NoInput, ToolOutput, tool
from rookery.domains.owner.notify_tools import all_shown


class ChannelsShown(ToolOutput):
    channels: list[dict[str, Any]]


@tool(
    title="Show channels", effect="read", action="owner:read", tier="observe", group="Read", profiles="",
    default=False, principals="people",
)  # fmt: skip
def show_channels(ctx: Context, args: NoInput) -> ChannelsShown:
    """Show all channels, of people and of agents, with the names of what is set for each."""
    return ChannelsShown(channels=all_shown(ctx.tx, ctx.actor))
