"""Tells followers of resources what has changed."""

from typing import Any

import sqlalchemy as sa

from rookery.core.context import Context


def issue_changed(ctx: Context, issue: sa.Row[Any]) -> None:
    """Whoever follows the issue or the bound project's board hears of it after the commit."""
    ctx.publish("ResourceUpdated", subject=f"issue://{issue.identifier}")
    ctx.publish("ResourceUpdated", subject=f"project://{ctx.actor.project_slug}/board")
