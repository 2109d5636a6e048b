"""Stand-ins for tools of other domains: each notes how it was called, and fails if it was told to."""

from typing import Any

from pydantic import Field

from rookery.core.context import Context
from rookery.core.errors import ServiceUnavailable
from rookery.core.tool import NoInput, Tool, ToolInput, ToolOutput, tool

HOW: dict[str, Any] = {
    "title": "Deed", "effect": "write", "action": "deed:do", "tier": "act", "group": "Write", "profiles": "",
    "default": True,
}  # fmt: skip


class Repo(ToolInput):
    repo: str = Field(description="Which.")


class Message(ToolInput):
    to_agent: str = Field(description="To whom.")
    message: str = Field(description="What.")


class Work(ToolInput):
    description: str = Field(description="What.")
    project_id: str | None = Field(None, description="Where.")
    source_id: str | None = Field(None, description="A key.")


class Place(ToolInput):
    project_id: str | None = Field(None, description="Where.")


class Did(ToolOutput):
    id: str
    status: str = "pending"


class Health(ToolOutput):
    snapshot: dict[str, int]


def _do(ctx: Context, args: ToolInput) -> Did:
    deeds = ctx.platform.facts["deeds"]
    given = args.model_dump(exclude_none=True)
    if ctx.call.tool.name in deeds.broken or given.get("repo") in deeds.broken:
        raise ServiceUnavailable(f"{ctx.call.tool.name} is out of order")
    deeds.done.append((ctx.call.tool.name, ctx.actor, given))
    return Did(id=f"deed-{len(deeds.done)}")


@tool(**HOW)
def github_star_repo(ctx: Context, args: Repo) -> Did:
    """Star a repository. Use it in tests. Returns an id. Does nothing else, needs nothing."""
    return _do(ctx, args)


@tool(**HOW, scheduler_blocked=True)
def github_fork_repo(ctx: Context, args: Repo) -> Did:
    """Fork a repository. Use it in tests. Returns an id. Does nothing else, needs nothing."""
    return _do(ctx, args)


@tool(**HOW, scheduler_blocked=True)
def send_message(ctx: Context, args: Message) -> Did:
    """Send a message. Use it in tests. Returns an id. Does nothing else, needs nothing."""
    return _do(ctx, args)


@tool(**HOW)
def publish_attestation(ctx: Context, args: NoInput) -> Did:
    """Publish an attestation. Use it in tests. Returns an id. Does nothing else, needs nothing."""
    return _do(ctx, args)


@tool(**HOW)
def create_work_task(ctx: Context, args: Work) -> Did:
    """Create a work task. Use it in tests. Returns an id. Does nothing else, needs nothing."""
    return _do(ctx, args)


@tool(**HOW)
def collect_health(ctx: Context, args: Place) -> Health:
    """Look at a codebase. Use it in tests. Returns numbers. Does nothing else, needs nothing."""
    _do(ctx, args)
    return Health(snapshot=ctx.platform.facts["deeds"].health)


DEEDS: dict[str, Tool] = {
    each.name: each
    for each in (
        github_star_repo, github_fork_repo, send_message, publish_attestation, create_work_task, collect_health
    )
}  # fmt: skip
