"""Prompts about the server itself."""

from rookery.core.context import Context
from rookery.core.prompt import prompt
from rookery.core.tool import NoInput


@prompt(title="Who am I?", right="ping", inline=True)
def who_am_i(ctx: Context, args: NoInput) -> str:
    """Tells an agent its name, its project and the tools it may use, as they are now."""
    actor = ctx.actor
    name = actor.agent_name or "a person"
    lines = [f"You are {name}, in project {actor.project_slug}."]
    if actor.profile:
        lines.append(f"You work as {actor.profile}.")
    if actor.issue:
        lines.append(f"You work on issue {actor.issue_identifier or actor.issue}.")
    tools = [f"- {tool.name}: {tool.title}" for tool in ctx.platform.registry.listed(actor)]
    return "\n".join([*lines, "", "Your tools:", *tools])
