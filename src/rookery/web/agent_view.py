"""What the pages of agents share: who is meant, what is paused, and why a tool is there or not."""

from typing import Any

from rookery.core.errors import NotFound
from rookery.lifecycle.pausing import list_pauses
from rookery.web.visit import Visit

Row = dict[str, Any]
LAYERS = {
    "available": "Set up here",
    "principal": "For agents",
    "scopes": "Scopes of the token",
    "role": "Held by list, profile, bundle or grant",
    "allowed": "Allowed by the profile",
    "disallowed": "Not disallowed by the profile",
    "scope_file": "Scope file of the session",
    "scheduler": "Scheduled sessions",
    "unattended": "A person is there",
    "source": "Sessions that agents start",
    "depth": "Depth of the chain",
    "binding": "Bound issue or project",
    "phase": "Phase",
    "trust": "Trust",
    "budget": "Budget",
    "paused": "Not paused",
    "gate": "Approval",
}


async def agent_named(visit: Visit) -> Row:
    """The agent of the address, by its name or id, with what pauses it."""
    wanted = visit.path["name"].lower()
    agents = (await visit.call("list_agent_settings"))["agents"]
    found = next((each for each in agents if wanted in (each["id"], each["name"].lower())), None)
    if found is None:
        raise NotFound(f"there is no agent {visit.path['name'][:100]}", hint="the page Agents lists them")
    pauses = (await visit.call(list_pauses))["pauses"]
    return {**found, "pauses": [each for each in pauses if each["scope"] == "all" or each["id"] == found["id"]]}


async def explanation(visit: Visit, agent: str | None, agent_type: str, *, scheduled: bool) -> Row | None:
    """What each layer says of the tool that the page is asked about; None if it is asked about none."""
    wanted = visit.query.get("tool", "")
    if not wanted:
        return None
    asked = {"tool": wanted, "agent": agent, "agent_type": agent_type or None, "project": visit.project}
    found = await visit.call("explain_access", {**asked, "scheduler": scheduled})
    spoken = found["layer"]
    layers = [
        {**each, "says": LAYERS.get(each["layer"], each["layer"]), "first": each["layer"] == spoken}
        for each in found["layers"]
    ]
    return {**found, "layers": layers}
