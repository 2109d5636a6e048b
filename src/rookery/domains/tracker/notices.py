"""Tells followers of resources what has changed."""

from typing import Any

import sqlalchemy as sa

from rookery.core.context import Context
from rookery.lifecycle.issue_tables import issues


def issue_changed(ctx: Context, issue: sa.Row[Any]) -> None:
    """Whoever follows the issue, its parent or the bound project's board hears of it after the commit."""
    for name in (issue.identifier, issue.id):
        ctx.publish("ResourceUpdated", subject=f"issue://{name}")
    if issue.parent_id is not None and ctx.tx is not None:
        # It shows its subtasks, and the last one that finishes unblocks it.
        parent = ctx.tx.scalar(sa.select(issues.c.identifier).where(issues.c.id == issue.parent_id))
        ctx.publish("ResourceUpdated", subject=f"issue://{parent}")
    ctx.publish("ResourceUpdated", subject=f"project://{ctx.actor.project_slug}/board")
