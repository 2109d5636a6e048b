"""`rookery merge` and `rookery publish`: what a person does with a pull request that was reviewed."""

from typing import TYPE_CHECKING, Any

import click

from rookery.cli.options import given, managing
from rookery.cli.session import actor_of, opened, owner_flags
from rookery.cli.show import fields

if TYPE_CHECKING:
    from rookery.app import Platform
    from rookery.core.tool import Tool


@click.command()
@click.argument("issue")
@click.option("--ff", "method", flag_value="ff", help="Move the base branch to the commit; refused if it has others.")
@click.option("--merge-commit", "method", flag_value="merge", help="Make a merge commit, in your name.")
@click.option("--reason", help="Kept as a comment.")
@managing
def merge(issue: str, method: str | None, reason: str | None, home: str | None, as_json: bool) -> None:
    """Merge an approved pull request into its base branch, in the project's folder.

    Without --ff or --merge-commit it is done as the project is set up. Nothing is pushed.
    """
    from rookery.domains.tracker.merge_tools import merge_pr

    fields(_on_issue(home, issue, merge_pr, given(reason=reason, method=method), as_set_up=True), as_json=as_json)


@click.command()
@click.argument("issue")
@managing
def publish(issue: str, home: str | None, as_json: bool) -> None:
    """Push the branch of a pull request, and open it on GitHub.

    Asked again, it says where it is.
    """
    from rookery.engine.publishing import publish_pr

    fields(_on_issue(home, issue, publish_pr, {}), as_json=as_json)


def _on_issue(
    home: str | None, issue: str, tool: "Tool", arguments: dict[str, Any], *, as_set_up: bool = False
) -> dict[str, Any]:
    """What the tool says of an issue of any project, called as the owner."""
    import asyncio

    with opened(owner_flags(home)) as platform:
        project, method = _project_of(platform, issue)
        flags = owner_flags(home, project)
        actor = actor_of(platform, {"source": "cli", **flags})
        wanted = {**({"method": method} if as_set_up else {}), **arguments, "issue_id": issue}
        return asyncio.run(platform.calls.run(actor, tool, wanted)).structured


def _project_of(platform: "Platform", issue: str) -> tuple[str | None, str]:
    """The project that an issue is in, and how its pull requests are merged; None if there is no such issue."""
    from rookery.db.tx import Tx
    from rookery.engine.project_settings import OrchestratorProjects
    from rookery.identity.store import DEFAULT_TENANT
    from rookery.lifecycle.issue_ref import find_issue

    def look(tx: Tx) -> tuple[str | None, str]:
        row = find_issue(tx, DEFAULT_TENANT, issue)
        project_id = None if row is None else row.project_id
        return project_id, OrchestratorProjects(tx, DEFAULT_TENANT).of(project_id or "")[1].merge

    return platform.database.direct(look)
