"""What a message costs its sender, in credits."""

from rookery.db.tx import Tx
from rookery.domains.messages.limits import Limits, Refusal
from rookery.ledger.store import InsufficientCredits, Ledger, wallet_of

RATE = "credits_per_agent_message"


def cost(tx: Tx, tenant: str) -> int:
    """What one message costs; 0 if nothing."""
    return Ledger(tx, tenant).config()[RATE]


def too_poor(tx: Tx, tenant: str, payer: str | None, limits: Limits) -> Refusal | None:
    """Why this agent may not send, where whoever cannot pay is stopped. Who is no agent pays nothing."""
    if payer is None or not limits.must_pay:
        return None
    needed, available = cost(tx, tenant), Ledger(tx, tenant).of_agent(payer).available
    if available >= needed:
        return None
    return Refusal("SPENDING_LIMIT", f"a message costs {needed} credits and {available} are available", 0)


def charge(tx: Tx, tenant: str, payer: str | None, message_id: str) -> None:
    """Take the price of a message once. An agent that cannot pay is charged nothing."""
    needed = cost(tx, tenant) if payer is not None else 0
    ledger = Ledger(tx, tenant, payer)
    if payer is None or needed < 1 or ledger.of_agent(payer).available < needed:
        return
    try:
        ledger.deduct(wallet_of(payer), "agent_message", needed, message_id, key=f"message:{message_id}")
    except InsufficientCredits:
        return
