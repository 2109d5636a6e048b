"""The tool that says why an issue waits."""

from pydantic import Field

from rookery.core.context import Context
from rookery.core.errors import NotFound
from rookery.core.tool import EVERY_PROFILE, ToolInput, ToolOutput, tool
from rookery.db.tx import Tx
from rookery.domains.tracker.inputs import Ref
from rookery.domains.tracker.issue_tools import wanted_issue
from rookery.engine.leading import leader
from rookery.engine.plan import World, plan
from rookery.engine.standing import Code
from rookery.engine.world import read_world


class WhyWaiting(ToolInput):
    issue_id: Ref | None = Field(None, description="Else bound.")


class Waiting(ToolOutput):
    identifier: str
    code: Code
    reason: str
    until_ms: int | None


def present_world(ctx: Context, tx: Tx, issue_id: str | None = None) -> World:
    """The world as the next tick would see it, if somebody ticks."""
    facts = ctx.platform.facts
    last = leader(tx)
    led = last is not None and last.left_ms > 0
    return read_world(tx, facts["settings"], runtime=facts.get("runtime") is not None, led=led, issue_id=issue_id)


@tool(
    title="Why waiting", effect="read", action="tracker:read", tier="observe", group="Read", profiles=EVERY_PROFILE,
    default=False, outline=False,
)  # fmt: skip
def why_waiting(ctx: Context, args: WhyWaiting) -> Waiting:
    """Say why no agent has an issue. Use it if one waits. Returns a reason."""
    issue = wanted_issue(ctx, args.issue_id)
    told = plan(present_world(ctx, ctx.tx, issue.id)).about(issue.tenant, issue.id)
    if told is None:
        raise NotFound(f"{issue.identifier} has just been moved", hint="ask again")
    return Waiting(identifier=issue.identifier, code=told.code, reason=told.reason, until_ms=told.until_ms)
