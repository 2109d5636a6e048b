"""What a message costs its sender, in credits."""

from rookery.db.tx import Tx
from rookery.domains.messages.limits import Limits, Refusal, Refused
from rookery.ledger.store import InsufficientCredits, Ledger, wallet_of

RATE = "credits_per_agent_message"


def charge(tx: Tx, tenant: str, payer: str | None, message_id: str, limits: Limits) -> None:
    """Take the price of a message once. An agent that cannot pay is charged nothing, or Refused where it must pay.

    Who is no agent pays nothing. The ledger's own guard decides, so nothing is sent that others have just made
    too dear.
    """
    ledger = Ledger(tx, tenant, payer)
    needed = ledger.config()[RATE] if payer is not None else 0
    if payer is None or needed < 1:
        return
    available = ledger.of_agent(payer).available
    if available < needed and not limits.must_pay:
        return
    try:
        ledger.deduct(wallet_of(payer), "agent_message", needed, message_id, key=f"message:{message_id}")
    except InsufficientCredits:
        if limits.must_pay:
            available = ledger.of_agent(payer).available
            told = f"a message costs {needed} credits and {available} are available"
            raise Refused(Refusal("SPENDING_LIMIT", told, hint="the owner can give more: grant_credits")) from None
