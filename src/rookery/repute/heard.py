"""What audit records say of the reputation of agents: sessions in which they act, and calls that are refused them."""

from collections.abc import Sequence

from rookery.core.record import Record
from rookery.db.tx import Tx
from rookery.repute.events import DAY_MS, ReputationEvent, add_events, session_key

VIOLATIONS = frozenset({
    "principal", "scopes", "role", "allowed", "disallowed", "scope_file", "scheduler", "source", "trust",
})  # fmt: skip
"""The layers of a decision whose no means that somebody reached for what it was not given. The others say that the
moment is wrong: no person, no issue, another phase, no credits."""
DENIED = "PERMISSION_DENIED"
REMEMBERED = 20_000


class Heard:
    """Adds events in the transaction of the records. One object for each database; it remembers what it has added."""

    def __init__(self) -> None:
        self._sessions: set[tuple[str, str, str | None, int]] = set()

    def __call__(self, tx: Tx, records: Sequence[Record]) -> None:
        """Add what is new in the records."""
        found: list[ReputationEvent] = []
        for record in records:
            if record.agent is None:
                continue
            if record.code == DENIED:
                found += _violation(record, record.agent)
            elif record.session is not None and record.code is None:
                found += self._session(record, record.agent, record.session)
        add_events(tx, found)

    def _session(self, record: Record, agent: str, session: str) -> list[ReputationEvent]:
        """A session counts from its first call that succeeds, once a day."""
        known = (record.tenant, agent, session, record.at_ms // DAY_MS)
        if known in self._sessions:
            return []
        if len(self._sessions) >= REMEMBERED:
            # Whoever is forgotten is added again, which changes nothing: the key is there.
            self._sessions.clear()
        self._sessions.add(known)
        told = ReputationEvent(
            tenant=record.tenant,
            agent_id=agent,
            type="session_completed",
            impact=1,
            about={"source": record.source},
            key=session_key(session, record.at_ms),
        )
        return [told]


def _violation(record: Record, agent: str) -> list[ReputationEvent]:
    """The same tool again on the same day (UTC) is one violation."""
    if record.layer not in VIOLATIONS:
        return []
    told = ReputationEvent(
        tenant=record.tenant,
        agent_id=agent,
        type="security_violation",
        impact=-20,
        about={"tool": record.tool, "layer": record.layer},
        key=f"refused:{record.at_ms // DAY_MS}:{record.tool}",
    )
    return [told]
