"""The owner's commands around a workspace."""

from typing import Literal

from rookery.engine.workspace_names import Site
from rookery.lifecycle.programs import run_command

Moment = Literal["after_create", "before_run", "after_run", "before_remove"]


async def run_hook(site: Site, moment: Moment, path: str) -> str | None:
    """Run what the owner has set for that moment in the workspace; what went wrong, or None."""
    command: str = getattr(site.hooks, moment)
    if not command.strip():
        return None
    ran = await run_command(command, path, site.hooks.limit_s)
    if ran.ok:
        return None
    code = "" if ran.exit_code is None else f" with exit code {ran.exit_code}"
    return f"the command {moment} of {site.slug} failed{code}: {ran.output}"
