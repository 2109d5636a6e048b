"""What a finished task proposes to be merged: the record of its pull request, whoever looks at it and wherever."""

import asyncio
from typing import Any, Protocol

from rookery.core.actor import Actor
from rookery.core.errors import ValidationFailed
from rookery.domains.work.worktree import Place, tip


class Changes(Protocol):
    """Measures changes. The installation offers it; without one a record does not say how large and risky they are."""

    async def measured(self, actor: Actor, folder: str, base: str) -> dict[str, Any]:
        """The sums and files of what is committed in `folder` since `base`, and its risk by the project's settings.

        ValidationFailed for what cannot be read as a diff, such as one that is too large.
        """
        ...


async def pull_request(
    changes: Changes | None, actor: Actor, place: Place, base_branch: str | None, commits: int
) -> dict[str, Any]:
    """The record. What could not be measured is said in it."""
    record: dict[str, Any] = {
        "branch": place.branch,
        "base_branch": base_branch,
        "base": place.base,
        "head": await asyncio.to_thread(tip, place),
        "commits": commits,
    }
    if changes is None or not commits:
        return record
    try:
        return record | await changes.measured(actor, place.folder, place.base)
    except ValidationFailed as error:
        return record | {"unmeasured": error.message}
