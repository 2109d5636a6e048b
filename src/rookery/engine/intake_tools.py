"""The tool with which people and agents bring requests."""

from typing import Annotated

from pydantic import Field, StringConstraints

from rookery.core.context import Context
from rookery.core.tool import ToolInput, ToolOutput, tool
from rookery.domains.tracker.store import author
from rookery.engine.intake_store import MAX_TEXT, Requests
from rookery.identity.store import IdentityStore

MAX_AT_ONCE = 100
RequestText = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_TEXT)]


class SubmitRequests(ToolInput):
    requests: list[RequestText] = Field(max_length=MAX_AT_ONCE, description="Texts.")


class SubmittedRequest(ToolOutput):
    id: str
    state: str
    known: bool


class SubmittedRequests(ToolOutput):
    requests: list[SubmittedRequest]


@tool(
    title="Submit requests", effect="write", action="tracker:write", tier="act", group="Write", profiles="WRSAP",
    default=False, binds="project", outline=False,
)  # fmt: skip
def submit_requests(ctx: Context, args: SubmitRequests) -> SubmittedRequests:
    """Use it to hand in raw requests for intake, up to 100. Returns ids."""
    actor = ctx.actor
    project = IdentityStore(ctx.tx, actor.tenant).project(actor.project or "")
    stored = Requests(ctx.tx, actor.tenant).submit(project.id, args.requests, source=actor.source, by=author(actor))
    return SubmittedRequests(
        requests=[SubmittedRequest(id=each.id, state=each.state, known=each.known) for each in stored]
    )
