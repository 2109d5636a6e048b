"""A yes that lasts: the owner agrees to further calls of one agent, for a while."""

from typing import Any

import sqlalchemy as sa

from rookery.asks.tables import approvals
from rookery.core.errors import ValidationFailed
from rookery.db.clock import now_ms
from rookery.db.tx import Tx
from rookery.identity.access import AccessStore
from rookery.identity.store import IdentityStore


def agree_in_advance(tx: Tx, tenant: str, ask: sa.Row[Any], for_s: int, person: str) -> None:
    """Let the agent of an approval do what it covers without being asked until `for_s` from now are over.

    That is its tool, if that is one of ours. ValidationFailed where a yes counts once.
    """
    agent = IdentityStore(tx, tenant).find_agent(ask.agent_id)
    if ask.kind != "approval" or agent is None:
        raise ValidationFailed("only an approval of one of our agents can last a while", hint="approve this one call")
    mine = (approvals.c.tenant == tenant, approvals.c.ask_id == ask.id)
    approval = tx.one(sa.select(approvals.c.tool).where(*mine))
    right = ask.subject if approval is None else approval.tool
    if not right:
        raise ValidationFailed(
            "a yes counts once in a session that nobody attends, for a tool that is not ours",
            hint="approve this one call",
        )
    reason = f"approved for a while in ask {ask.id[:8]}"
    AccessStore(tx, tenant).grant(agent.id, right, reason, person, now_ms(tx) + for_s * 1000, standing=True)
