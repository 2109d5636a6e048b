"""Pauses as their owner sets them, for tests of what follows from them."""

from typing import Any

from rookery.core.actor import Actor
from rookery.lifecycle.pauses import Pause, Pauses, Scope
from rookery.lifecycle.pausing import Pausing, list_pauses, pause_agents, resume_agents
from tests.platform_fixtures import Fleet

REASON = "it deletes branches"


class PauseDesk:
    """Calls the tools of people by what they are, since no session lists them."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet

    async def pause(self, actor: Actor | None = None, **arguments: Any) -> Pausing:
        told = {"reason": REASON, **arguments}
        return (await self.fleet.platform.calls.run(actor or self.fleet.owner, pause_agents, told)).value

    async def resume(self, actor: Actor | None = None, **arguments: Any) -> Pausing:
        return (await self.fleet.platform.calls.run(actor or self.fleet.owner, resume_agents, arguments)).value

    async def listed(self, actor: Actor | None = None) -> list[tuple[str, str | None, str]]:
        found = (await self.fleet.platform.calls.run(actor or self.fleet.owner, list_pauses, {})).value
        return [(each.scope, each.target, each.reason) for each in found.pauses]

    def holding(self, project: str | None = None, agent: str | None = None, tenant: str = "default") -> Pause | None:
        return self.fleet.platform.database.direct(lambda tx: Pauses(tx, tenant).holding(project, agent))

    def scope_of(self, agent: str, project: str) -> Scope | None:
        """What holds that agent in that project, both by name."""
        actor = self.fleet.actor(agent=agent, project=project)
        held = self.holding(actor.project, actor.agent)
        return None if held is None else held.scope
