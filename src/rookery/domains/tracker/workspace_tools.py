"""The tool with which an agent makes sure that it is where its work belongs."""

from rookery.core.context import Context
from rookery.core.tool import NoInput, ToolOutput, tool
from rookery.domains.tracker.store import Issues
from rookery.domains.tracker.worktree import branch_named, verify_worktree


class VerifiedWorkspace(ToolOutput):
    valid: bool
    path: str
    issue: str
    branch: str
    message: str


@tool(
    title="Verify workspace", effect="read", action="tracker:read", tier="observe", group="System", profiles="WRAP",
    critical="W", default=False, binds="issue", outline=False,
)  # fmt: skip
def verify_workspace(ctx: Context, args: NoInput) -> VerifiedWorkspace:
    """Check that you are in your issue's worktree. Use it first, before any work.
    Returns path, issue and branch; refused with the way back if you are not there."""
    actor = ctx.actor
    issue = Issues(ctx.tx, actor).bound()
    workspace = verify_worktree(actor.worktree, actor.cwd, issue.identifier, issue.id)
    message = "Workspace verified. You are in the correct worktree."
    current = branch_named(workspace.path)
    if current is not None and current != workspace.branch:
        message += f" The branch {current} is checked out there instead of {workspace.branch}."
    return VerifiedWorkspace(
        valid=True, path=workspace.path, issue=workspace.issue, branch=workspace.branch, message=message
    )
