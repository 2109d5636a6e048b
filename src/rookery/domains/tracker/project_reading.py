"""How a project is set up for its work, for people who look at it.

Not in a module where tools are looked for: no agent has it, and no session pays for its listing.
"""

from rookery.core.context import Context
from rookery.core.tool import NoInput, tool
from rookery.domains.tracker.project_store import Projects
from rookery.domains.tracker.project_tools import Configured, shown_settings


@tool(
    title="Show project settings", effect="read", action="tracker:read", tier="observe", group="Read", profiles="",
    default=False, principals="people", binds="project",
)  # fmt: skip
def show_project_settings(ctx: Context, args: NoInput) -> Configured:
    """Show what configure_project has set for the bound project, and the defaults where it has set nothing."""
    return shown_settings(Projects(ctx.tx, ctx.actor).settings())
