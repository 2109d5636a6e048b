"""Measures what was committed somewhere by the settings of its project: the sums of the diff, and its risk."""

import asyncio
from typing import Any

from rookery.core.actor import Actor
from rookery.db.database import Database
from rookery.domains.tracker.diff import parse_diff
from rookery.domains.tracker.project_store import Projects
from rookery.domains.tracker.risk import risk_of
from rookery.domains.tracker.worktree import diff_against

MOST_FILES = 200


class ProjectChanges:
    """For whoever has a worktree and is no issue of the tracker: it measures as the tracker measures pull requests."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def measured(self, actor: Actor, folder: str, base: str) -> dict[str, Any]:
        """The sums and files of what is committed in `folder` since `base`, and its risk by the project's settings.

        ValidationFailed for what cannot be read as a diff, such as one that is too large.
        """
        settings = await self._database.read(lambda tx: Projects(tx, actor).settings())
        stats = parse_diff(await asyncio.to_thread(diff_against, folder, base))
        risk = risk_of(stats, settings.risk_thresholds, settings.sensitive_paths, ())
        return {
            **stats.as_json(MOST_FILES),
            "risk": risk.score,
            "risk_level": risk.level,
            "risk_reasons": risk.reasons,
        }
