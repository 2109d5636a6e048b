"""A work task as its readers see it."""

from typing import Any

import sqlalchemy as sa

from rookery.core.moments import with_moments

SHORT = ("id", "status", "branch_name", "agent_id", "project_id", "description", "pr_url", "error", "created_ms")
LONG = (
    "id", "status", "description", "agent_id", "project_id", "branch_name", "original_branch", "iteration",
    "session_id", "source", "source_id", "pr_url", "pull_request", "summary", "error", "worktree_dir",
    "cost_micros", "created_ms", "updated_ms", "completed_ms",
)  # fmt: skip
SHORT_TEXT = 200


def short(row: sa.Row[Any]) -> dict[str, Any]:
    """For lists: long texts are cut."""
    return with_moments({name: _cut(getattr(row, name)) for name in SHORT})


def whole(row: sa.Row[Any]) -> dict[str, Any]:
    """Everything that is kept of it, but for what the session said at length."""
    return with_moments({name: getattr(row, name) for name in LONG})


def _cut(value: Any) -> Any:
    return f"{value[:SHORT_TEXT]}…" if isinstance(value, str) and len(value) > SHORT_TEXT else value
