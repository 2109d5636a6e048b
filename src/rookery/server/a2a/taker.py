"""The agent that takes tasks: what its card tells of it."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rookery.attest.keys import address_of, public_from
from rookery.attest.log import published_log
from rookery.core.errors import NotFound
from rookery.core.tool import Tool
from rookery.db.tx import Tx
from rookery.identity.resolve import Binding
from rookery.identity.store import DEFAULT_AGENT, DEFAULT_TENANT, IdentityStore

if TYPE_CHECKING:
    from rookery.app import Platform


@dataclass(frozen=True, slots=True)
class Taker:
    """An agent, the tools that a task can be done with, and its wallet if it has published attestations."""

    agent_id: str
    name: str
    skills: frozenset[str]
    wallet: str | None = None


NOBODY = Taker("", "", frozenset())


def usual_taker(tx: Tx, platform: "Platform") -> Taker:
    """The one that the settings name; nobody if it is not there."""
    try:
        return taker_of(tx, platform, DEFAULT_TENANT, platform.settings.a2a_agent or DEFAULT_AGENT)
    except NotFound:
        return NOBODY


def taker_of(tx: Tx, platform: "Platform", tenant: str, name_or_id: str) -> Taker:
    """The agent of that name or id; NotFound if there is none."""
    agent = IdentityStore(tx, tenant).agent(name_or_id)
    bound = Binding(tenant=tenant, agent=agent.id, source="agent", scheduler=True)
    actor = platform.resolver.resolve(tx, bound).actor
    skills = frozenset(tool.name for tool in platform.registry.listed(actor) if _is_skill(tool))
    log = published_log(tx, agent.id)
    last = None if log is None else log.last()
    wallet = None if last is None else address_of(public_from(last.public_key))
    return Taker(agent.id, agent.name, skills, wallet)


def _is_skill(tool: Tool) -> bool:
    """Whether it is told of: what an agent was given besides the usual, and what plugins bring, is nobody's affair."""
    return tool.default and tool.tier != "privileged" and tool.module.startswith("rookery.")
