"""Tools that change what an account on GitHub has: stars, follows and forks. Done twice is done once."""

from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any

from rookery.core.context import Context
from rookery.core.errors import PermissionDenied
from rookery.core.tool import tool
from rookery.domains.github.allowed import check_allowed
from rookery.domains.github.answers import Json, an_object, checked, inside, line
from rookery.domains.github.client import GitHub
from rookery.domains.github.inputs import FollowUser, ForkRepo, OfRepo
from rookery.domains.github.tools import Told, told
from rookery.outgoing.client import Answer

OLD_S = 60
_SHOWN = {"fork": "full_name", "url": "html_url", "default_branch": "default_branch"}
_ACTS: dict[str, Any] = {
    "effect": "external", "tier": "act", "group": "Write", "profiles": "", "default": True, "needs": "github",
    "outline": False,
}  # fmt: skip


@tool(title="Github star repo", action="git:star", **_ACTS)
async def github_star_repo(ctx: Context, args: OfRepo) -> Told:
    """Use it to star a repository. Returns only its name."""
    await _account_change(ctx, "PUT", args.repo)
    return told({"starred": args.repo})


@tool(title="Github unstar repo", action="git:unstar", **_ACTS)
async def github_unstar_repo(ctx: Context, args: OfRepo) -> Told:
    """Use it to take a star back. Returns only the name."""
    await _account_change(ctx, "DELETE", args.repo)
    return told({"unstarred": args.repo})


async def _account_change(ctx: Context, method: str, repo: str) -> None:
    github = GitHub(ctx, account=True)
    check_allowed(github.allow, repo)
    checked(await github.change(method, f"/user/starred/{repo}"), f"repository {repo}")


@tool(title="Github follow user", action="git:follow", **_ACTS)
async def github_follow_user(ctx: Context, args: FollowUser) -> Told:
    """Use it to follow a user. Returns only the name."""
    github = GitHub(ctx, account=True)
    check_allowed(github.allow, args.username)
    checked(await github.change("PUT", f"/user/following/{args.username}"), f"account {args.username}")
    return told({"following": args.username})


@tool(
    title="Github fork repo",
    action="git:fork",
    **_ACTS,
    scheduler_blocked=True,
    bundles=("preset-devops",),
)
async def github_fork_repo(ctx: Context, args: ForkRepo) -> Told:
    """Use it to fork. Returns the url; not ready at once."""
    github = GitHub(ctx)
    path = f"{github.repository(args.repo)}/forks"
    await _check_target(github, args.org)
    sent = {} if args.org is None else {"organization": args.org}
    # Who has a fork already is given that one, so nothing is forked twice.
    answer = checked(await github.change("POST", path, sent, again=True), f"repository {args.repo}")
    fork = an_object(answer)
    existed = _is_old(fork, answer)
    if not existed:
        ctx.publish("GithubRepoForked", subject=args.repo)
    shown = {name: line(fork.get(key)) for name, key in _SHOWN.items()}
    return told({**shown, "existed": existed})


async def _check_target(github: GitHub, org: str | None) -> None:
    """PermissionDenied unless the owner allows the account that the fork would go to."""
    if org is None and github.allow:
        answer = await github.get("/user")
        org = line(inside(answer.json(), "login")) if answer.ok else ""
        if not org:
            # An App has no account of its own.
            raise PermissionDenied(
                "GitHub does not tell which account the fork would go to",
                hint="name one that the owner allows: org",
                layer="github_allow",
            )
    if org is not None:
        check_allowed(github.allow, org)


def _is_old(fork: Json, answer: Answer) -> bool:
    """Whether the fork was there before, by GitHub's own clock."""
    try:
        now = parsedate_to_datetime(answer.headers.get("date", ""))
        return (now - datetime.fromisoformat(line(fork.get("created_at")))).total_seconds() > OLD_S
    except (ValueError, TypeError):
        return False
