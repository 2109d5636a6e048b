"""A stand-in for the tool that opens pull requests; it remembers what it was asked for."""

from pydantic import Field

from rookery.core.context import Context
from rookery.core.errors import ServiceUnavailable
from rookery.core.tool import ToolInput, ToolOutput, tool

ASKED: list["GithubCreatePr"] = []


class GithubCreatePr(ToolInput):
    repo: str = Field(description="Owner and name.")
    title: str = Field(description="Its title.")
    body: str = Field(description="Its text.")
    head: str = Field(description="The branch.")
    base: str = Field("main", description="Where it should go.")


class Opened(ToolOutput):
    url: str


@tool(
    title="Create pull request", effect="external", action="git:create_pr", tier="act", group="Write", profiles="",
    default=True, scheduler_blocked=True,
)  # fmt: skip
async def github_create_pr(ctx: Context, args: GithubCreatePr) -> Opened:
    """Stands in for the real one. Use it in tests. Returns an address. Does nothing else."""
    ASKED.append(args)
    if args.title.endswith("down"):
        raise ServiceUnavailable("the hub is down")
    return Opened(url=f"https://github.com/{args.repo}/pull/{len(ASKED)}")
