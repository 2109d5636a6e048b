"""Publishing a pull request: its branch goes to the remote, and the review to GitHub. A step that only a person takes.

Not in a module where tools are looked for: nobody but the owner has it, and no session pays for its listing. It is
called, decided and recorded like any other.
"""

import asyncio

import sqlalchemy as sa
from pydantic import Field

from rookery.core.context import Context
from rookery.core.errors import Conflict, ServiceUnavailable, ValidationFailed
from rookery.core.tool import ToolInput, ToolOutput, tool
from rookery.db.tx import Tx
from rookery.domains.tracker.branch_merge import tip_of
from rookery.domains.tracker.inputs import Ref
from rookery.domains.tracker.merging import the_pr
from rookery.domains.tracker.notices import issue_changed
from rookery.domains.tracker.pr_store import UNDECIDED, Row
from rookery.domains.tracker.project_store import Projects
from rookery.domains.tracker.store import Issues
from rookery.domains.tracker.tables import prs
from rookery.domains.work.prompt import pr_address
from rookery.domains.work.pull_requests import REMOTE, TOOL, push_branch, repository_name
from rookery.engine.workspace_store import WorkspaceRows
from rookery.files.git import open_repository

MAX_TITLE = 200


class PublishPr(ToolInput):
    issue_id: Ref = Field(description="Id or identifier.")
    revision: int | None = Field(None, ge=1, description="Refuse unless it is this one.")


class PublishedPr(ToolOutput):
    """Where it is; `repeated`: it was there before."""

    identifier: str
    revision: int
    url: str
    repeated: bool


@tool(
    title="Publish PR", effect="external", action="tracker:publish", tier="act", group="Review", profiles="",
    default=False, principals="people", binds="project",
)  # fmt: skip
async def publish_pr(ctx: Context, args: PublishPr) -> PublishedPr:
    """Push the branch of an issue's pull request, without force, and open it on GitHub; once for each revision."""
    issue, pr, folder = await ctx.read(lambda tx: _look(tx, ctx, args))
    if pr.url is not None:
        return PublishedPr(identifier=issue.identifier, revision=pr.revision, url=pr.url, repeated=True)
    repository = await asyncio.to_thread(_checked, folder, issue, pr)
    # By its hash: the branch may have moved since it was looked at.
    fault = await push_branch(folder, pr.branch, pr.head)
    if fault is not None:
        raise ServiceUnavailable(fault, hint="see what the remote says; nothing is ever forced")
    url, repeated = await _open(ctx, issue, pr, repository)
    await ctx.write(lambda tx: _keep(tx, ctx, issue, pr, url))
    issue_changed(ctx, issue)
    return PublishedPr(identifier=issue.identifier, revision=pr.revision, url=url, repeated=repeated)


def _look(tx: Tx, ctx: Context, args: PublishPr) -> tuple[Row, Row, str]:
    issue = Issues(tx, ctx.actor).ours(args.issue_id)
    pr = the_pr(tx, issue)
    if args.revision is not None and args.revision != pr.revision:
        raise Conflict(
            f"the pull request of {issue.identifier} is at revision {pr.revision}, not {args.revision}",
            hint="read the change as it is now and publish that one",
        )
    if pr.status not in UNDECIDED:
        raise Conflict(
            f"revision {pr.revision} of {issue.identifier}'s pull request is {pr.status}",
            hint="what is open or approved can be published",
        )
    workspace = WorkspaceRows(tx, ctx.actor.tenant).of(issue.id)
    if workspace is not None and workspace.branch != pr.branch:
        raise Conflict(
            f"the work on {issue.identifier} is on the branch {pr.branch}, and not on its own, {workspace.branch}",
            hint=f"push it by hand if {pr.branch} is where it belongs",
        )
    folder = Projects(tx, ctx.actor).settings().path
    if folder is None:
        raise ValidationFailed("the project has no folder", hint="give it the folder of its repository")
    return issue, pr, folder


def _checked(folder: str, issue: Row, pr: Row) -> str:
    """The name of the repository on GitHub, if the branch has what is reviewed."""
    repository = open_repository(folder)
    if tip_of(repository, pr.branch) != pr.head:
        raise Conflict(
            f"the branch {pr.branch} of {issue.identifier} is not at the commit that is reviewed",
            hint="have what is there claimed, then publish that",
        )
    name = repository_name(folder)
    if name is None:
        raise ValidationFailed(
            f"the remote {REMOTE} of {repository.folder} is not on GitHub", hint=f"git remote add {REMOTE} ADDRESS"
        )
    return name


async def _open(ctx: Context, issue: Row, pr: Row, repository: str) -> tuple[str, bool]:
    title = f"{issue.identifier}: {' '.join(issue.title.split())}"[:MAX_TITLE]
    weight = f"Revision {pr.revision}, {pr.risk_level} risk."
    body = f"{issue.description}\n\n{weight}" if issue.description else weight
    given = {"repo": repository, "title": title, "body": body, "head": pr.branch, "base": pr.base}
    try:
        told = await ctx.call_tool(TOOL, given)
    except Conflict as error:
        # It was opened before: for an earlier revision, by hand, or by a call that died before it could keep that.
        known = pr_address(error.message)
        if known is None:
            raise
        return known, True
    url = pr_address(told.model_dump_json())
    if url is None:
        raise ServiceUnavailable(
            "GitHub did not say where the pull request is", hint="publish again, which looks first"
        )
    return url, False


def _keep(tx: Tx, ctx: Context, issue: Row, pr: Row, url: str) -> None:
    same = (prs.c.id == pr.id, prs.c.url.is_(None))
    if tx.run(sa.update(prs).where(*same).values(url=url)):
        Issues(tx, ctx.actor).comment(issue, f"**Published** (revision {pr.revision}): {url}")
