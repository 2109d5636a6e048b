"""An answer that the owner gives elsewhere than at a door of this server: it counts, and is recorded, like any."""

import time
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from rookery.around.audit import append
from rookery.asks.answering import read_decision
from rookery.asks.store import DECIDED, Asks
from rookery.asks.tables import OPEN
from rookery.core.admission import storable
from rookery.core.errors import ValidationFailed
from rookery.core.events import Event
from rookery.core.ids import new_id
from rookery.core.record import Record, input_digest
from rookery.db.tx import Tx
from rookery.domains.owner.ask_inquiry import MAX_ANSWER
from rookery.domains.owner.asks_shown import EVENTS, ask_notice
from rookery.domains.owner.channel_frames import Fit, one_line
from rookery.identity.store import IdentityStore

Row = sa.Row[Any]
TOOL = "answer_ask"


def answer_from_outside(tx: Tx, tenant: str, ask_id: str, text: str, via: str) -> Row:
    """Answer an ask in the owner's name, with an audit record of it; the ask, still open if they said: later.

    The caller vouches for `via`: what came by it came from the owner. Raises what answering raises, and then nothing
    has changed.
    """
    said = text.strip()
    if not said or len(said) > MAX_ANSWER or not storable(said):
        raise ValidationFailed(f"an answer has 1 to {MAX_ANSWER} characters", hint="say a number or a text")
    owner = IdentityStore(tx, tenant).owner()
    row = Asks(tx, tenant).answer(ask_id, said, owner.name, via)[0]
    append(tx, [_record(tenant, owner.id, via, {"ask_id": row.id, "answer": said})])
    return row


def refuse_unread(tx: Tx, tenant: str, ask_id: str, text: str, fit: Fit) -> None:
    """Raise if this says yes to what was cut where it was told: nobody can have read all of it there."""
    ask = Asks(tx, tenant).of(ask_id)
    if ask.kind not in DECIDED or read_decision(text).verdict != "yes":
        return
    if ask_notice(ask).told(fit).cut:
        raise ValidationFailed(
            "it is too long to be approved here",
            hint=f"open its link, or read it with: rookery asks {ask.id}, and then: rookery answer {ask.id} approve",
        )


def events_of(rows: Sequence[Row]) -> list[Event]:
    """What other domains are told of answers once they are committed, and of what was put off."""
    return [_event(row) for row in rows]


def _event(row: Row) -> Event:
    payload = {"kind": row.kind, "agent": row.agent_id, "session": row.session}
    return Event(name=EVENTS[row.status], tenant=row.tenant, subject=row.id, payload=payload)


def noted(row: Row) -> str:
    """What the person is told who has answered."""
    if row.status == OPEN:
        return "Not now: it stays open, and can be answered later."
    if row.answer["option"] is None:
        return f"Noted. {row.answer['text']}"
    return f"Noted. Option {row.answer['option']}: {one_line(row.answer['text'])}"


def _record(tenant: str, person: str, via: str, arguments: dict[str, Any]) -> Record:
    return Record(
        at_ms=time.time_ns() // 1_000_000,
        tenant=tenant,
        kind="human",
        subject=person,
        agent=None,
        profile=None,
        project=None,
        issue=None,
        session=None,
        source=via,
        request=new_id("req"),
        trace=None,
        tool=TOOL,
        effect="write",
        outcome="done",
        code=None,
        layer=None,
        input_digest=input_digest(arguments)[0],
        duration_us=0,
    )
