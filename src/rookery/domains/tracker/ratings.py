"""What a verdict says of the agent whose work was judged: a rating from 1 to 5 that counts for its reputation."""

from typing import Literal

from rookery.db.tx import Tx
from rookery.repute.events import ReputationEvent, add_events, agent_called

RATINGS = {"approved": 5, "rejected": 1}


def rate(tx: Tx, tenant: str, whose: str, verdict: Literal["approved", "rejected"], judged: str) -> None:
    """Count a verdict for the agent `whose` work it was, once for each thing `judged`; people are not rated."""
    agent_id = agent_called(tx, tenant, whose)
    if agent_id is None:
        return
    received = ReputationEvent(
        tenant=tenant,
        agent_id=agent_id,
        type="review_received",
        impact=RATINGS[verdict],
        about={"judged": judged, "verdict": verdict},
        key=f"review:{judged}",
    )
    add_events(tx, [received])
