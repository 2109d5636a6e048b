"""Tells identities which agents have spent their credits, where the installation stops those."""

from rookery.db.tx import Tx
from rookery.ledger.store import Ledger

CREDITS = frozenset({"credits"})


class CreditLimit:
    """The port `Budgets` of identities. An agent that was never given credits has none.

    What is held back for a session under way counts: the session may spend it.
    """

    def exhausted(self, tx: Tx, tenant: str, agent: str) -> frozenset[str]:
        return CREDITS if Ledger(tx, tenant).of_agent(agent).balance <= 0 else frozenset()
