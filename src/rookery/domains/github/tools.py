"""Tools that look at repositories on GitHub, and change nothing there."""

import asyncio
from typing import Any

from pydantic import ConfigDict

from rookery.core.context import Context
from rookery.core.errors import RookeryError, ServiceUnavailable, ValidationFailed
from rookery.core.tool import ToolOutput, tool
from rookery.domains.github import shown
from rookery.domains.github.answers import API_HINT, Json, an_object, checked, line
from rookery.domains.github.client import DIFF, GitHub
from rookery.domains.github.diffs import page_of
from rookery.domains.github.inputs import GetPrDiff, ListIssues, ListPrs, OfRepo
from rookery.domains.github.joined import joined
from rookery.domains.github.listing import listed, place_of

SIZED = 30
"""Of so many pull requests it is asked how much they change, which takes a request each."""
AT_ONCE = 5
SIZES_S = 10.0
"""So long sizes are waited for, and no longer than half the call's time: the list is what was asked for."""
TOO_LONG = 406
_READS: dict[str, Any] = {
    "effect": "external", "action": "git:read", "tier": "observe", "group": "Read", "profiles": "", "default": True,
    "needs": "github", "outline": False,
}  # fmt: skip


class Told(ToolOutput):
    """Its fields are listed for no agent: whoever calls sees them."""

    model_config = ConfigDict(extra="allow")


def told(fields: dict[str, Any]) -> Told:
    return Told.model_validate(fields)


class PrList(ToolOutput):
    prs: list[dict[str, Any]]
    cursor: str | None

    def as_text(self) -> str:
        return f"{shown.pull_lines(self.prs)}{_more(self.cursor)}"


class IssueList(ToolOutput):
    issues: list[dict[str, Any]]
    cursor: str | None

    def as_text(self) -> str:
        return f"{shown.issue_lines(self.issues)}{_more(self.cursor)}"


class DiffPage(ToolOutput):
    diff: str
    cursor: str | None
    characters: int

    def as_text(self) -> str:
        return f"{self.diff}{_more(self.cursor)}" if self.characters else "the diff is empty"


def _more(cursor: str | None) -> str:
    return f"\n(more: call again with cursor={cursor})" if cursor else ""


@tool(
    title="Github list prs",
    **_READS,
    bundles=("preset-code-reviewer", "preset-github-ops", "preset-full-stack"),
)
async def github_list_prs(ctx: Context, args: ListPrs) -> PrList:
    """Use it to list pull requests. Returns up to 10 a page, newest first."""
    github = GitHub(ctx)
    limit = args.limit
    path = f"{github.repository(args.repo)}/pulls"
    found, cursor = await listed(
        github,
        path,
        {"state": args.state or "open"},
        args.repo,
        limit=limit,
        place=place_of(args.cursor, limit),
        wanted=lambda pull: True,
    )
    return PrList(prs=await _sized(github, path, found), cursor=cursor)


async def _sized(github: GitHub, path: str, pulls: list[Json]) -> list[dict[str, Any]]:
    """The pull requests with how much each changes, where that could be found out."""
    turn = asyncio.Semaphore(AT_ONCE)
    ends = asyncio.get_running_loop().time() + min(SIZES_S, github.ctx.remaining_s / 2)

    async def size(pull: dict[str, Any]) -> dict[str, Any]:
        try:
            async with asyncio.timeout_at(ends), turn:
                answer = checked(await github.get(f"{path}/{pull['number']}"), "a pull request")
            return pull | shown.sizes(an_object(answer))
        except (RookeryError, TimeoutError):
            return pull

    shorts = [shown.short_pull(pull) for pull in pulls]
    return [*await asyncio.gather(*(size(pull) for pull in shorts[:SIZED])), *shorts[SIZED:]]


@tool(
    title="Github list issues",
    **_READS,
    bundles=("preset-analyst", "preset-github-ops", "preset-full-stack"),
)
async def github_list_issues(ctx: Context, args: ListIssues) -> IssueList:
    """Use it to list issues. Returns up to 30 a page, newest first."""
    github = GitHub(ctx)
    limit = args.limit
    query = {"state": args.state or "open", "labels": ",".join(args.labels) if args.labels else None}
    found, cursor = await listed(
        github,
        f"{github.repository(args.repo)}/issues",
        query,
        args.repo,
        limit=limit,
        place=place_of(args.cursor, limit),
        # For GitHub every pull request is an issue as well.
        wanted=lambda issue: "pull_request" not in issue,
    )
    return IssueList(issues=[shown.short_issue(issue) for issue in found], cursor=cursor)


@tool(title="Github repo info", **_READS, bundles=("preset-analyst", "preset-github-ops"))
async def github_repo_info(ctx: Context, args: OfRepo) -> Told:
    """Use it to see what a repository is. Returns its facts, no files."""
    github = GitHub(ctx)
    answer = checked(await github.get(github.repository(args.repo)), f"repository {args.repo}")
    return told(shown.repository(an_object(answer)))


@tool(
    title="Github get pr diff",
    **_READS,
    bundles=("preset-code-reviewer", "preset-github-ops", "preset-full-stack"),
)
async def github_get_pr_diff(ctx: Context, args: GetPrDiff) -> DiffPage:
    """Use it to read a diff. Returns one page only; it says how to go on."""
    diff = await _diff(GitHub(ctx), args.repo, args.pr_number)
    part, cursor = page_of(diff, args.cursor)
    return DiffPage(diff=part, cursor=cursor, characters=len(diff))


async def _diff(github: GitHub, repo: str, number: int) -> str:
    path, what = f"{github.repository(repo)}/pulls/{number}", f"pull request {number} of {repo}"
    try:
        answer = await github.get(path, accept=DIFF)
    except ValidationFailed as error:
        raise ValidationFailed(error.message, hint="GitHub gives it only whole: read it with git") from None
    if answer.status == TOO_LONG:
        return await joined(github, path, what)
    checked(answer, what)
    kind = line(answer.headers.get("content-type"))
    if "html" in kind or "json" in kind:
        raise ServiceUnavailable(f"GitHub answered with {kind} instead of a diff", hint=API_HINT)
    # Of files in other encodings what cannot be read is marked, and the rest stays.
    return answer.body.decode("utf-8", "replace")
