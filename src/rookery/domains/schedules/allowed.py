"""Whether actions can be done here, and whether whoever schedules them could do them now."""

from rookery.core.admission import refuse_unless_allowed
from rookery.core.context import Context
from rookery.core.errors import ValidationFailed
from rookery.domains.schedules.action import TOOLS, Action
from rookery.identity.store import IdentityStore


def checked_actions(ctx: Context, agent_id: str, actions: list[Action]) -> list[Action]:
    """The actions, with projects by their ids.

    Refused are those whose tool is not here, and those whose tool the calling agent may not use: a schedule must not
    be a way around its own limits, such as those of a session that a schedule started.
    """
    identities = IdentityStore(ctx.tx, ctx.actor.tenant)
    closed = ctx.actor.closed if ctx.actor.kind != "human" else identities.closed_to(agent_id)
    found: list[Action] = []
    for action in actions:
        _check_tool(ctx, action)
        if action.project_id is not None:
            project = identities.project(action.project_id, closed)
            action = action.model_copy(update={"project_id": project.id})
        found.append(action)
    return found


def _check_tool(ctx: Context, action: Action) -> None:
    name = TOOLS.get(action.type)
    if name is None:
        return
    needed = ctx.platform.registry.get(name)
    if needed is None or (needed.requires is not None and needed.requires not in ctx.actor.services):
        raise ValidationFailed(
            f"schedule_actions: {action.type} needs the tool {name}, which this installation lacks",
            hint="install what brings it, or choose another action",
        )
    if ctx.actor.kind != "human":
        refuse_unless_allowed(ctx.actor, needed)
