"""Opening a pull request for a finished branch, with the tool that the installation has for it."""

import re
from collections.abc import Awaitable, Callable
from typing import Any

from rookery.core.actor import Actor
from rookery.core.errors import RookeryError
from rookery.domains.work.prompt import pr_address
from rookery.files.git import ask, open_repository
from rookery.jobs.running import Running
from rookery.lifecycle.programs import run_program
from rookery.lifecycle.session_calls import call_approved

TOOL = "github_create_pr"
REMOTE = "origin"
PUSH_LIMIT_S = 300.0
MAX_ADDRESS = 500
Who = Callable[[], Awaitable[Actor]]
_GITHUB = re.compile(r"[\w.-]*github[\w.-]*[:/]([\w.-]+/[\w.-]+?)(?:\.git)?/?$")


def repository_name(project: str) -> str | None:
    """The `owner/name` of the project's remote, if it is on GitHub. Blocks."""
    address = ask(open_repository(project), "config", "--get", f"remote.{REMOTE}.url")
    # An agent can write into the project's git config, and a pattern takes the square of a long line's length.
    found = _GITHUB.search(address) if len(address) <= MAX_ADDRESS else None
    return found[1] if found else None


async def push_branch(folder: str, branch: str, commit: str | None = None) -> str | None:
    """Bring the branch, or exactly that `commit` of it, to the remote, with the credentials of whoever runs the server;
    what went wrong, or None."""
    ref = f"refs/heads/{branch}"
    what = f"{commit or ref}:{ref}"
    words = ("git", "-c", "core.hooksPath=/dev/null", "push", "--quiet", "--no-verify", REMOTE, what)
    ran = await run_program(words, folder, PUSH_LIMIT_S)
    return None if ran.ok else f"the branch could not be pushed: {ran.output}"


async def create_pr(job: Running, who: Who, arguments: dict[str, Any], key: str) -> tuple[str | None, str | None]:
    """The address of a new pull request, or None and the reason. A person who has to approve it has a while."""
    try:
        result = await call_approved(job, who, TOOL, arguments, session=key)
    except RookeryError as error:
        return None, f"no pull request: {error.message}"
    return pr_address(result.text), None
