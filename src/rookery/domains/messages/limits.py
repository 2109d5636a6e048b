"""What keeps agents from flooding each other: a rate for each sender, and a breaker for each receiver.

Both live in the database and go by its clock, so all servers of one database agree.
"""

from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from rookery.db.tx import Tx
from rookery.domains.messages.tables import breakers, messages, senders
from rookery.settings import Settings

MINUTE_MS = 60_000


@dataclass(frozen=True, slots=True)
class Limits:
    """How many messages a sender may send in a minute, when a receiver is left alone for a while, whether who cannot
    pay is stopped, what one session may send (0 is no limit there), and for how long messages are kept."""

    per_minute: int
    failures: int
    reset_ms: int
    successes: int
    must_pay: bool = False
    session_messages: int = 0
    session_targets: int = 0
    session_gap_ms: int = 0
    keep_days: int = 90


def limits_of(settings: Settings) -> Limits:
    """What the settings say."""
    return Limits(
        settings.agent_rate_limit_per_min,
        settings.agent_cb_failure_threshold,
        settings.agent_cb_reset_timeout_ms,
        settings.agent_cb_success_threshold,
        settings.credits_hard_stop,
        settings.session_max_agent_messages,
        settings.session_max_unique_targets,
        settings.session_message_interval_ms,
        settings.message_keep_days,
    )


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a message is not sent, as a code and a sentence, and in how many milliseconds it may be.

    `layer` is the one of `decide` that has spoken, if one has.
    """

    code: str
    error: str
    wait_ms: int = 0
    hint: str | None = None
    layer: str | None = None


class Refused(Exception):
    """Ends what was begun for a message that is not sent after all."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.error)
        self.refusal = refusal


_DIALECTS = (("sqlite", sqlite), ("postgresql", postgresql))
_HOLD = {
    name: dialect.insert(senders)
    .values(tenant=sa.bindparam("of_tenant"), sender=sa.bindparam("of_sender"), touched_ms=sa.bindparam("at_ms"))
    .on_conflict_do_update(index_elements=["tenant", "sender"], set_={"touched_ms": sa.bindparam("at_ms")})
    .returning(senders.c.sender)
    for name, dialect in _DIALECTS
}
_SENT = sa.select(sa.func.count().label("sent"), sa.func.min(messages.c.accepted_ms).label("first_ms")).where(
    messages.c.tenant == sa.bindparam("of_tenant"),
    messages.c.from_id == sa.bindparam("of_sender"),
    messages.c.accepted_ms > sa.bindparam("since_ms"),
)
_THIS = (breakers.c.tenant == sa.bindparam("of_tenant"), breakers.c.target == sa.bindparam("of_target"))
_OPENED = sa.select(breakers.c.opened_ms).where(*_THIS)
_TRY = (
    sa.update(breakers)
    .where(*_THIS, breakers.c.opened_ms <= sa.bindparam("until_ms"))
    .values(opened_ms=sa.bindparam("at_ms"))
    .returning(breakers.c.opened_ms)
)
_NOW = sa.bindparam("at_ms", type_=sa.BigInteger)
_SPOILT = sa.or_(breakers.c.opened_ms.is_not(None), breakers.c.failures + 1 >= sa.bindparam("threshold"))
_FAILED = {
    name: dialect.insert(breakers)
    .values(
        tenant=sa.bindparam("of_tenant"),
        target=sa.bindparam("of_target"),
        failures=1,
        successes=0,
        opened_ms=sa.case((sa.bindparam("threshold", type_=sa.BigInteger) <= 1, _NOW)),
    )
    .on_conflict_do_update(
        index_elements=["tenant", "target"],
        set_={
            "failures": breakers.c.failures + 1,
            "successes": 0,
            "opened_ms": sa.case((_SPOILT, _NOW)),
        },
    )
    .returning(breakers.c.target)
    for name, dialect in _DIALECTS
}
_CLOSES = sa.or_(breakers.c.opened_ms.is_(None), breakers.c.successes + 1 >= sa.bindparam("threshold"))
_SUCCEEDED = (
    sa.update(breakers)
    .where(*_THIS)
    .values(
        failures=sa.case((_CLOSES, 0), else_=breakers.c.failures),
        successes=sa.case((_CLOSES, 0), else_=breakers.c.successes + 1),
        # From the first success on the next trial need not wait.
        opened_ms=sa.case((_CLOSES, None), else_=0),
    )
    .returning(breakers.c.target)
)


def hold_sender(tx: Tx, tenant: str, sender: str, at_ms: int) -> None:
    """From here to the commit nobody else sends as `sender`, so what is counted stays true."""
    tx.one(_HOLD[tx.dialect], {"of_tenant": tenant, "of_sender": sender, "at_ms": at_ms})


def over_rate(tx: Tx, tenant: str, sender: str, at_ms: int, limits: Limits) -> Refusal | None:
    """Why this sender has to wait, if it has sent as much as it may within the last minute."""
    row = tx.one(_SENT, {"of_tenant": tenant, "of_sender": sender, "since_ms": at_ms - MINUTE_MS})
    if row is None or row.sent < limits.per_minute:
        return None
    return Refusal(
        "RATE_LIMITED",
        f"at most {limits.per_minute} messages a minute may be sent, no session was created",
        row.first_ms + MINUTE_MS - at_ms,
    )


def circuit_open(tx: Tx, tenant: str, target: str, name: str, at_ms: int, limits: Limits) -> Refusal | None:
    """Why nobody may write to this receiver just now. Once the time is over, one message is let through as a trial."""
    which = {"of_tenant": tenant, "of_target": target}
    opened_ms = tx.scalar(_OPENED, which)
    if opened_ms is None:
        return None
    if tx.one(_TRY, {**which, "at_ms": at_ms, "until_ms": at_ms - limits.reset_ms}) is not None:
        return None
    return Refusal(
        "CIRCUIT_OPEN",
        f"{name} has failed to answer too often and is left alone for a while, no session was created",
        max(opened_ms + limits.reset_ms - at_ms, 1),
    )


def note_failure(tx: Tx, tenant: str, target: str, at_ms: int, limits: Limits) -> None:
    """A delivery failed. Enough of them in a row, or a failed trial, and the receiver is left alone."""
    which = {"of_tenant": tenant, "of_target": target, "at_ms": at_ms, "threshold": limits.failures}
    tx.one(_FAILED[tx.dialect], which)


def note_success(tx: Tx, tenant: str, target: str, limits: Limits) -> None:
    """A delivery was answered. Enough of them after a pause, and everything is as before."""
    tx.one(_SUCCEEDED, {"of_tenant": tenant, "of_target": target, "threshold": limits.successes})
