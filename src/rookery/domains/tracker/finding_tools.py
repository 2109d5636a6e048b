"""The tool with which agents put on record what they found."""

from typing import Literal

from pydantic import Field

from rookery.core.context import Context
from rookery.core.tool import ToolOutput, tool
from rookery.domains.tracker.coverage_tools import FilePath, plain_path
from rookery.domains.tracker.finding_store import Findings
from rookery.domains.tracker.inputs import LongText, OnIssue, Title
from rookery.domains.tracker.notices import issue_changed
from rookery.domains.tracker.store import Issues


class AddFinding(OnIssue):
    category: Literal["test_result", "code_pattern", "architecture", "bug", "gap"] = Field(description="Its kind.")
    summary: Title = Field(description="One line.")
    details: LongText | None = Field(None, description="The rest, in Markdown.")
    files: list[FilePath] = Field([], max_length=50, description="Related files, relative paths.")


class Recorded(ToolOutput):
    id: str


@tool(
    title="Add finding", effect="write", action="tracker:write", tier="act", group="Write", profiles="WRJSAP",
    default=False, binds="issue", outline=False,
)  # fmt: skip
def add_finding(ctx: Context, args: AddFinding) -> Recorded:
    """Record a finding on the bound issue: a test result, bug, pattern or gap. Use it as soon as you know.
    Returns its id. It cannot be changed or removed."""
    files = list(dict.fromkeys(plain_path(path) for path in args.files))
    store = Issues(ctx.tx, ctx.actor)
    issue = store.held(args.fence)
    finding = Findings(ctx.tx, ctx.actor).add(issue, args.category, args.summary, args.details, files)
    store.touch(issue)
    issue_changed(ctx, issue)
    return Recorded(id=finding)
