"""Reads what agents have done, and keeps the score that it comes to."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from rookery.db.clock import now_ms
from rookery.db.tx import Tx
from rookery.domains.reputation.score import ACTIVE_DAYS, WINDOW_DAYS, Deeds, Score, score_of
from rookery.domains.reputation.tables import agent_reputation
from rookery.repute.tables import reputation_events

Row = sa.Row[Any]
DAY_MS, HOUR_MS = 86_400_000, 3_600_000
SHOWN_EVENTS = 10
_e, _r = reputation_events.c, agent_reputation.c
_MINE = (_e.tenant == sa.bindparam("of_tenant"), _e.agent_id == sa.bindparam("of_agent"))
_SUMS = (
    sa.select(_e.type, sa.func.count().label("times"), sa.func.sum(sa.func.abs(_e.impact)).label("impact"))
    .where(
        *_MINE,
        _e.type.in_(sa.bindparam("types", expanding=True)),
        _e.created_ms >= sa.bindparam("since_ms"),
        # What weighs nothing is told and not counted.
        _e.impact != 0,
    )
    .group_by(_e.type)
)
_HOURS = sa.select(sa.func.count(sa.distinct(_e.created_ms // HOUR_MS))).where(
    *_MINE, _e.type == "session_completed", _e.created_ms >= sa.bindparam("since_ms")
)
_NEWEST = sa.select(reputation_events).where(*_MINE).order_by(_e.seq.desc()).limit(SHOWN_EVENTS)
_KEPT = sa.select(agent_reputation).where(
    _r.tenant == sa.bindparam("of_tenant"), _r.agent_id == sa.bindparam("of_agent")
)
_KEEP = {
    name: dialect.insert(agent_reputation)
    for name, dialect in (("sqlite", sqlite), ("postgresql", postgresql))
}  # fmt: skip
_LATELY = ("task_completed", "task_failed", "credit_earned", "credit_spent", "security_violation")


class Reputation:
    """The reputation of the agents of one tenant."""

    def __init__(self, tx: Tx, tenant: str) -> None:
        self.tx = tx
        self.tenant = tenant

    def score(self, agent_id: str) -> Score:
        """The agent's score as of now, which is kept nowhere."""
        return score_of(self._deeds(agent_id))

    def recompute(self, agent_id: str) -> tuple[Score, Row]:
        """The agent's score as of now, and the row in which it is kept from here on."""
        score = self.score(agent_id)
        values = {
            "overall_score": score.overall,
            "trust_level": score.trust,
            **asdict(score.components),
            "computed_ms": now_ms(self.tx),
        }
        keep = _KEEP[self.tx.dialect].values(tenant=self.tenant, agent_id=agent_id, **values)
        kept = self.tx.one(
            keep.on_conflict_do_update(index_elements=[_r.tenant, _r.agent_id], set_=values).returning(*_r)
        )
        assert kept is not None
        return score, kept

    def kept(self, agent_id: str) -> Row | None:
        """The score that was computed last, or None."""
        return self.tx.one(_KEPT, self._of(agent_id))

    def newest_events(self, agent_id: str) -> Sequence[Row]:
        """The last ten things that were noted of the agent, newest first."""
        return self.tx.all(_NEWEST, self._of(agent_id))

    def note_attestation(self, agent_id: str, digest: str) -> None:
        """The agent's newest attestation has this hash."""
        mine = (_r.tenant == self.tenant, _r.agent_id == agent_id)
        self.tx.run(sa.update(agent_reputation).where(*mine).values(attestation_hash=digest))

    def _deeds(self, agent_id: str) -> Deeds:
        lately = self._sums(agent_id, _LATELY, WINDOW_DAYS)
        reviews = self._sums(agent_id, ("review_received",), None)
        return Deeds(
            completed=lately["task_completed"][0],
            failed=lately["task_failed"][0],
            ratings=reviews["review_received"][0],
            rating_sum=reviews["review_received"][1],
            earned=lately["credit_earned"][1],
            spent=lately["credit_spent"][1],
            violations=lately["security_violation"][0],
            sessions=self._sessions(agent_id),
        )

    def _sessions(self, agent_id: str) -> int:
        """Of the sessions of an hour one counts: whoever connects again and again is not more active."""
        since_ms = now_ms(self.tx) - ACTIVE_DAYS * DAY_MS
        return self.tx.scalar(_HOURS, {**self._of(agent_id), "since_ms": since_ms})

    def _sums(self, agent_id: str, types: Sequence[str], days: int | None) -> Mapping[str, tuple[int, int]]:
        """By type, how often something happened and what it weighed in all."""
        since_ms = 0 if days is None else now_ms(self.tx) - days * DAY_MS
        rows = self.tx.all(_SUMS, {**self._of(agent_id), "types": list(types), "since_ms": since_ms})
        return dict.fromkeys(types, (0, 0)) | {row.type: (row.times, int(row.impact)) for row in rows}

    def _of(self, agent_id: str) -> dict[str, str]:
        return {"of_tenant": self.tenant, "of_agent": agent_id}
