"""Whether a person can publish a pull request on GitHub, and in words why not."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rookery.core.errors import RookeryError
from rookery.domains.github.allowed import check_allowed
from rookery.domains.github.credentials import SET_HINT
from rookery.domains.tracker.pr_store import UNDECIDED
from rookery.domains.work.pull_requests import REMOTE, repository_name
from rookery.engine.publishing import publish_pr
from rookery.web.visit import Visit

Standing = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Publishing:
    """`repository` is where it can be published; without one, `refused` says why not. Both are empty where there is
    nothing to say."""

    repository: str = ""
    refused: str = ""


async def publishing_of(visit: Visit, standing: Standing) -> Publishing:
    """What can be said of a revision. Git is asked only on behalf of those who could publish it."""
    pr, issue = standing["pr"], standing["identifier"]
    if pr["url"] or pr["revision"] != standing["newest"] or pr["status"] not in (*UNDECIDED, "merged"):
        return Publishing()
    if pr["status"] == "merged":
        return Publishing(refused="it is merged already, and only what is open or approved is published")
    if not await visit.may(publish_pr, issue=issue):
        return Publishing(refused="only the owner publishes")
    actor = await visit.actor(issue=issue)
    if "github" not in actor.services:
        return Publishing(refused=f"GitHub is not set up here: {SET_HINT}")
    projects = (await visit.call("list_projects"))["projects"]
    folder = next((each["path"] for each in projects if each["id"] == actor.project), None)
    return await _in_folder(folder, visit.platform.settings.github_allow)


async def _in_folder(folder: str | None, allow: tuple[str, ...]) -> Publishing:
    if not folder:
        return Publishing(refused="the project has no folder, and so no repository to push from")
    try:
        repository = await asyncio.to_thread(repository_name, folder)
        if repository is None:
            return Publishing(refused=f"the remote {REMOTE} of the project's repository is not on GitHub")
        check_allowed(allow, repository)
    except RookeryError as error:
        return Publishing(refused=error.message)
    return Publishing(repository=repository)
