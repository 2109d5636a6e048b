"""Tools that post on GitHub in the name of an agent: pull requests, reviews, issues, comments."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from rookery.core.context import Context
from rookery.core.errors import Conflict
from rookery.core.tool import tool
from rookery.domains.github.allowed import check_allowed
from rookery.domains.github.answers import Json, a_list, checked, is_taken, last_page, line
from rookery.domains.github.client import PAGE, GitHub
from rookery.domains.github.inputs import CommentOnPr, CreateIssue, CreatePr, ReviewPr
from rookery.domains.github.posting import Post, Posted, Posting
from rookery.domains.github.tools import Told, told
from rookery.outgoing.client import Answer

SLACK_MS = 600_000
"""Their clock may differ from ours."""
LOOKED_PAGES = 3
_POSTS: dict[str, Any] = {
    "effect": "external", "tier": "act", "profiles": "", "default": True, "needs": "github", "outline": False,
}  # fmt: skip
Test = Callable[[Json], bool]


def _told(ctx: Context, kind: str, posted: Posted, **more: str) -> Told:
    if posted.first:
        ctx.publish("GithubPosted", subject=posted.url, kind=kind)
    shown = {"url": posted.url, "number": posted.number, "repeated": posted.repeated, **more}
    return told({name: value for name, value in shown.items() if value is not None})


@tool(
    title="Github create pr", action="git:create_pr", **_POSTS, group="Write", scheduler_blocked=True,
    bundles=("preset-devops", "preset-github-ops", "preset-full-stack"),
)  # fmt: skip
async def github_create_pr(ctx: Context, args: CreatePr) -> Told:
    """Use it once a branch is pushed. Returns the url; no undo. Also takes model."""
    github = GitHub(ctx)
    path = f"{github.repository(args.repo)}/pulls"
    base = args.base or "main"
    owner, _, name = args.repo.partition("/")
    whose = args.head.partition(":")[0] if ":" in args.head else owner
    if whose.lower() != owner.lower():
        # Its diff is shown to whoever reads the pull request.
        check_allowed(github.allow, f"{whose}/{name}")
    head = args.head if ":" in args.head else f"{owner}:{args.head}"

    async def find(test: Test, since_ms: int) -> Json | None:
        return next((pull for pull in await of_branch("all") if test(pull)), None)

    async def of_branch(state: str) -> list[Json]:
        query = {"head": head, "base": base, "state": state, "sort": "created", "direction": "desc", "per_page": PAGE}
        return a_list(checked(await github.get(path, query), args.repo))

    async def refused(answer: Answer) -> None:
        if is_taken(answer):
            known = ", ".join(line(pull.get("html_url")) for pull in await of_branch("open"))
            raise Conflict(f"there is a pull request for {args.head} already: {known}", hint="push to its branch")

    sent = {"title": args.title, "head": args.head, "base": base}
    post = Post(path=path, what=args.repo, sent=sent, body=args.body, find=find, refused=refused)
    return _told(ctx, "pull_request", await Posting(github, args, post).run())


@tool(
    title="Github create issue", action="git:create_issue", **_POSTS, group="Write", scheduler_blocked=True,
    bundles=("preset-github-ops", "preset-full-stack"),
)  # fmt: skip
async def github_create_issue(ctx: Context, args: CreateIssue) -> Told:
    """Use it to open an issue. Returns the url; no undo. Also takes model."""
    github = GitHub(ctx)
    path = f"{github.repository(args.repo)}/issues"

    async def find(test: Test, since_ms: int) -> Json | None:
        query = {"state": "all", "sort": "created", "direction": "desc", "per_page": PAGE}
        for page in range(1, LOOKED_PAGES + 1):
            issues = a_list(checked(await github.get(path, {**query, "page": page}), args.repo))
            found = next((issue for issue in issues if test(issue)), None)
            if found is not None or len(issues) < PAGE:
                return found
        return None

    sent = {"title": args.title, **({"labels": args.labels} if args.labels else {})}
    post = Post(path=path, what=args.repo, sent=sent, body=args.body or "", find=find)
    return _told(ctx, "issue", await Posting(github, args, post).run())


@tool(
    title="Github comment on pr", action="git:comment", **_POSTS, group="Write", scheduler_blocked=True,
    bundles=("preset-code-reviewer", "preset-github-ops", "preset-full-stack"),
)  # fmt: skip
async def github_comment_on_pr(ctx: Context, args: CommentOnPr) -> Told:
    """Use it to comment on a pull request. Returns the url; no undo. Also takes model."""
    github = GitHub(ctx)
    what = f"pull request {args.pr_number} of {args.repo}"
    # A pull request is an issue as well, and this is where its conversation is.
    path = f"{github.repository(args.repo)}/issues/{args.pr_number}/comments"

    async def find(test: Test, since_ms: int) -> Json | None:
        since = datetime.fromtimestamp((since_ms - SLACK_MS) / 1000, UTC)
        comments, _ = await github.pages(path, {"since": f"{since:%Y-%m-%dT%H:%M:%SZ}"}, what)
        return next((comment for comment in comments if test(comment)), None)

    post = Post(path=path, what=what, sent={}, body=args.body, find=find)
    return _told(ctx, "comment", await Posting(github, args, post).run())


@tool(
    title="Github review pr", action="git:review_pr", **_POSTS, group="Review",
    bundles=("preset-code-reviewer", "preset-github-ops", "preset-full-stack"),
)  # fmt: skip
async def github_review_pr(ctx: Context, args: ReviewPr) -> Told:
    """Use it to review a pull request. Returns the url; no undo. Also takes model."""
    github = GitHub(ctx)
    what = f"pull request {args.pr_number} of {args.repo}"
    path = f"{github.repository(args.repo)}/pulls/{args.pr_number}/reviews"
    event = args.event or "COMMENT"

    async def find(test: Test, since_ms: int) -> Json | None:
        # They come oldest first, so the newest are at the end.
        first = checked(await github.get(path, {"per_page": PAGE}), what)
        reviews, last = a_list(first), last_page(first)
        for page in range(max(2, last - 1), last + 1):
            reviews += a_list(checked(await github.get(path, {"per_page": PAGE, "page": page}), what))
        return next((review for review in reviews if test(review)), None)

    post = Post(path=path, what=what, sent={"event": event}, body=args.body, find=find)
    return _told(ctx, "review", await Posting(github, args, post).run(), event=event)
