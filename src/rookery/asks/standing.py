"""A yes that lasts: the owner agrees to all calls of one tool by one agent, for a while."""

from typing import Any

import sqlalchemy as sa

from rookery.core.errors import ValidationFailed
from rookery.db.clock import now_ms
from rookery.db.tx import Tx
from rookery.identity.access import AccessStore
from rookery.identity.store import IdentityStore


def agree_in_advance(tx: Tx, tenant: str, ask: sa.Row[Any], for_s: int, person: str) -> None:
    """Let the agent of an approval call its tool without being asked until `for_s` from now are over."""
    agent = IdentityStore(tx, tenant).find_agent(ask.agent_id)
    if ask.kind != "approval" or agent is None:
        raise ValidationFailed("only an approval of one of our agents can last a while", hint="approve this one call")
    reason = f"approved for a while in ask {ask.id[:8]}"
    AccessStore(tx, tenant).grant(agent.id, ask.subject, reason, person, now_ms(tx) + for_s * 1000, standing=True)
