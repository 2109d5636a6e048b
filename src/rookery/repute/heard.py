"""What audit records say of the reputation of agents: sessions in which they act, and calls that are refused them."""

from collections.abc import Sequence

from rookery.core.record import Record
from rookery.db.tx import Tx
from rookery.repute.events import DAY_MS, ReputationEvent, add_events, is_there, session_key

VIOLATIONS = frozenset({
    "principal", "scopes", "role", "allowed", "disallowed", "scope_file", "scheduler", "source", "trust",
})  # fmt: skip
"""The layers of a decision whose no means that somebody reached for what it was not given. The others say that the
moment is wrong: no person, no issue, another phase, no credits."""
DENIED = "PERMISSION_DENIED"
REMEMBERED = 20_000
Known = tuple[str, str, str, int]


class Heard:
    """Adds events in the transaction of the records. One object for each database; it remembers what it has found
    there, not what it has added: that may be rolled back."""

    def __init__(self) -> None:
        self._sessions: set[Known] = set()

    def __call__(self, tx: Tx, records: Sequence[Record]) -> None:
        """Add what is new in the records."""
        found: list[ReputationEvent] = []
        sessions: dict[Known, ReputationEvent] = {}
        for record in records:
            if record.agent is None:
                continue
            if record.code == DENIED:
                found += _violation(record, record.agent)
            elif record.session is not None and record.outcome == "done" and record.code is None:
                known = (record.tenant, record.agent, record.session, record.at_ms // DAY_MS)
                if known not in self._sessions and known not in sessions:
                    sessions[known] = _session(record, record.agent, record.session)
        add_events(tx, found + [told for known, told in sessions.items() if not self._found(tx, known, told)])

    def _found(self, tx: Tx, known: Known, told: ReputationEvent) -> bool:
        """Whether an earlier transaction has added it, which is remembered."""
        if not is_there(tx, told):
            return False
        if len(self._sessions) >= REMEMBERED:
            # Whoever is forgotten is looked for again, and found.
            self._sessions.clear()
        self._sessions.add(known)
        return True


def _session(record: Record, agent: str, session: str) -> ReputationEvent:
    """A session counts from its first call that has done something, once a day. Of one that reads it is known only
    that it began: its record is there before its answer."""
    return ReputationEvent(
        tenant=record.tenant,
        agent_id=agent,
        type="session_completed",
        impact=1,
        about={"source": record.source},
        key=session_key(session, record.at_ms),
    )


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
