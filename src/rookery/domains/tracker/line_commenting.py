"""With what people comment on lines of a pull request.

Not in a module where tools are looked for: agents say the same with reject_pr, and no session pays for a listing.
"""

import asyncio
from typing import Annotated

from pydantic import Field, StringConstraints

from rookery.core.context import Context
from rookery.core.errors import Conflict, ValidationFailed
from rookery.core.tool import ToolInput, ToolOutput, tool
from rookery.db.tx import Tx
from rookery.domains.tracker.diff import MAX_PATH_BYTES
from rookery.domains.tracker.diff_files import Side, line_at
from rookery.domains.tracker.inputs import Ref
from rookery.domains.tracker.line_comment_store import LineComments
from rookery.domains.tracker.merging import the_pr
from rookery.domains.tracker.notices import issue_changed
from rookery.domains.tracker.pr_store import UNDECIDED, Row
from rookery.domains.tracker.store import Issues

Words = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=5_000)]


class AddLineComment(ToolInput):
    issue_id: Ref = Field(description="Id or identifier.")
    revision: int = Field(ge=1, description="The revision that was read.")
    path: str = Field(min_length=1, max_length=MAX_PATH_BYTES, description="The file, as the diff names it.")
    side: Side = Field("new", description="Before or after the change.")
    line: int = Field(ge=1, le=10**9, description="The line on that side.")
    content: Words = Field(description="Markdown.")


class RemoveLineComment(ToolInput):
    issue_id: Ref = Field(description="Id or identifier.")
    comment_id: Ref = Field(description="One of your own.")


class LineCommented(ToolOutput):
    id: str
    identifier: str


@tool(
    title="Add line comment", effect="external", action="tracker:judge", tier="act", group="Review", profiles="",
    default=False, principals="operators", binds="project", open_world=False,
)  # fmt: skip
async def add_line_comment(ctx: Context, args: AddLineComment) -> LineCommented:
    """Comment on a line of an issue's pull request while it is undecided; a rejection takes the comment along."""
    actor = ctx.actor
    issue, pr = await ctx.read(lambda tx: _undecided(tx, Issues(tx, actor).ours(args.issue_id), args.revision))
    code = await asyncio.to_thread(line_at, pr.diff, args.path, args.side, args.line)
    if code is None:
        raise ValidationFailed(
            f"the change shows no line {args.line} of {args.path[:200]} {_when(args.side)}",
            hint="choose a line that the diff shows",
        )

    def record(tx: Tx) -> Row:
        store = Issues(tx, actor)
        current, same = _undecided(tx, store.ours(args.issue_id, lock=True), args.revision)
        store.touch(current)
        return LineComments(tx, actor).add(
            same, path=args.path, side=args.side, line=args.line, code=code, content=args.content
        )

    comment = await ctx.write(record)
    issue_changed(ctx, issue)
    return LineCommented(id=comment.id, identifier=issue.identifier)


@tool(
    title="Remove line comment", effect="write", action="tracker:judge", tier="act", group="Review", profiles="",
    default=False, principals="operators", binds="project",
)  # fmt: skip
def remove_line_comment(ctx: Context, args: RemoveLineComment) -> LineCommented:
    """Take back a comment of one's own on a line, while the pull request is undecided."""
    store = Issues(ctx.tx, ctx.actor)
    issue, pr = _undecided(ctx.tx, store.ours(args.issue_id, lock=True))
    LineComments(ctx.tx, ctx.actor).remove(pr, args.comment_id)
    store.touch(issue)
    issue_changed(ctx, issue)
    return LineCommented(id=args.comment_id, identifier=issue.identifier)


def _undecided(tx: Tx, issue: Row, revision: int | None = None) -> tuple[Row, Row]:
    """The issue with the newest revision of its pull request, if that is the one that was read and still undecided."""
    pr = the_pr(tx, issue)
    if revision is not None and revision != pr.revision:
        raise Conflict(
            f"the pull request of {issue.identifier} is at revision {pr.revision}, not {revision}",
            hint="read the change as it is now",
        )
    if pr.status not in UNDECIDED:
        raise Conflict(
            f"revision {pr.revision} of {issue.identifier}'s pull request is {pr.status}",
            hint="comment on the issue instead",
        )
    return issue, pr


def _when(side: Side) -> str:
    return "before the change" if side == "old" else "after the change"
