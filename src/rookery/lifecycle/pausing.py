"""What people pause and resume with. No session of an agent lists these: they are called from the command line."""

from pydantic import Field, model_validator

from rookery.core.context import Context
from rookery.core.moments import iso
from rookery.core.tool import NoInput, ToolInput, ToolOutput, tool
from rookery.lifecycle.pauses import MAX_REASON, Pause, Pauses, Scope


class PausedPart(ToolInput):
    project: str | None = Field(None, min_length=1, max_length=100, description="Slug or id.")
    agent: str | None = Field(None, min_length=1, max_length=100, description="Name or id.")

    @model_validator(mode="after")
    def _one_at_most(self) -> "PausedPart":
        if self.project is not None and self.agent is not None:
            raise ValueError("give a project or an agent, not both; each can be paused by itself")
        return self

    @property
    def part(self) -> tuple[Scope, str | None]:
        if self.project is not None:
            return "project", self.project
        return ("agent", self.agent) if self.agent is not None else ("all", None)


class PauseAgents(PausedPart):
    reason: str = Field("", max_length=MAX_REASON, description="Why; the agents are told.")


class ShownPause(ToolOutput):
    scope: str
    target: str | None
    id: str | None
    reason: str
    by: str
    since: str | None


class Pausing(ToolOutput):
    changed: bool
    pauses: list[ShownPause]


class PauseList(ToolOutput):
    pauses: list[ShownPause]


def _shown(pause: Pause) -> ShownPause:
    return ShownPause(
        scope=pause.scope,
        target=pause.name,
        id=pause.target,
        reason=pause.reason,
        by=pause.by_name,
        since=iso(pause.at_ms),
    )


@tool(
    title="Pause agents", effect="write", action="pauses:write", tier="act", group="System", profiles="",
    default=False, principals="operators", interactive=True, idempotent=True,
)  # fmt: skip
def pause_agents(ctx: Context, args: PauseAgents) -> Pausing:
    """Keep all agents, or those of a project, or one, from doing anything but looking on. Use it when something goes
    wrong: who is at work is told and then stopped. Returns everything that is paused now. People go on."""
    pauses = Pauses(ctx.tx, ctx.actor.tenant)
    scope, target = args.part
    pause, new = pauses.pause(scope, target, reason=args.reason.strip(), by=ctx.actor.subject)
    if new:
        ctx.publish("ScopeChanged")
        ctx.publish("AgentsPaused", subject=pause.target, scope=scope, reason=pause.reason)
    return Pausing(changed=new, pauses=[_shown(each) for each in pauses.all()])


@tool(
    title="Resume agents", effect="write", action="pauses:write", tier="act", group="System", profiles="",
    default=False, principals="operators", interactive=True, idempotent=True,
)  # fmt: skip
def resume_agents(ctx: Context, args: PausedPart) -> Pausing:
    """Take one pause back. Use it for each that stands: whoever is under another as well waits for that too. Returns
    what is still paused. Work that was put off begins at once."""
    pauses = Pauses(ctx.tx, ctx.actor.tenant)
    scope, target = args.part
    gone = pauses.resume(scope, target)
    if gone:
        ctx.publish("ScopeChanged")
        ctx.publish("AgentsResumed", scope=scope)
    return Pausing(changed=gone, pauses=[_shown(each) for each in pauses.all()])


@tool(
    title="List pauses", effect="read", action="pauses:read", tier="observe", group="System", profiles="",
    default=False, principals="people",
)  # fmt: skip
def list_pauses(ctx: Context, args: NoInput) -> PauseList:
    """Say what is paused, by whom and why. Use it before a resume. Returns the widest first."""
    return PauseList(pauses=[_shown(each) for each in Pauses(ctx.tx, ctx.actor.tenant).all()])
