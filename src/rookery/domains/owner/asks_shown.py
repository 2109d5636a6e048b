"""Asks as their readers see them: the one who asked, and those who answer."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from rookery.asks.answering import numbered
from rookery.asks.store import DECIDED, SHORT_ID, Row
from rookery.asks.tables import ANSWERED, EXPIRED, OPEN, WITHDRAWN
from rookery.db.clock import now_ms
from rookery.db.tx import Tx
from rookery.domains.owner.channel_notice import Notice
from rookery.identity.store import IdentityStore

AGAIN = "You had this answer already. The same words count as the same question for 10 minutes."
EVENTS = {ANSWERED: "AskAnswered", WITHDRAWN: "AskWithdrawn", OPEN: "AskPutOff"}
"""What is told of an ask to which a person has done something, by how it stands then."""
UNDECIDED = "Not decided yet: do other work and call again."
LATER = "No answer yet: use your best judgement. The question stays open; check_answer shows the answer when it comes."


def status_of(row: Row, now: int) -> str:
    """How the ask stands: what is open for too long has expired, whether or not a job has noted it."""
    return EXPIRED if row.status == OPEN and row.expires_ms <= now else row.status


def outcome(row: Row, now: int, *, repeated: bool = False) -> dict[str, Any]:
    """What the asker reads: the answer, or that there is none yet and under which id it will be found."""
    status = status_of(row, now)
    shown: dict[str, Any] = {"ask_id": row.id, "status": status}
    if status == ANSWERED:
        return {
            **shown,
            "answer": row.answer["text"],
            "option": row.answer["option"],
            "answered_by": row.answered_by,
            "via": row.answered_via,
            "answered_ms": row.answered_ms,
            **({"note": AGAIN} if repeated else {}),
        }
    return {**shown, "note": _note(row, status)}


def _note(row: Row, status: str) -> str:
    """What the asker does without an answer. Of what needs a yes nobody else is the judge."""
    if row.kind in DECIDED:
        return UNDECIDED if status == OPEN else f"Nobody decided, {_ended(row)}: work without it."
    return LATER if status == OPEN else f"Nobody will answer, {_ended(row)}: use your best judgement."


def _ended(row: Row) -> str:
    if row.status != WITHDRAWN:
        return "it has expired"
    return f"{row.answered_by} has dismissed it" if row.answered_by else "it has been withdrawn"


def told(shown: Mapping[str, Any]) -> str:
    """The same as text."""
    if shown["status"] != ANSWERED:
        return f"{shown['note']}\nask_id: {shown['ask_id']}"
    chosen = "" if shown["option"] is None else f"Option {shown['option']}: "
    note = f"\n{shown['note']}" if "note" in shown else ""
    by = f"answered by {shown['answered_by']} via {shown['via']}; ask_id: {shown['ask_id']}"
    return f"{chosen}{shown['answer']}\n{by}{note}"


def listed(tx: Tx, tenant: str, rows: Sequence[Row]) -> list[dict[str, Any]]:
    """What people read: who asks what, with what to answer, and how many of those shown are alike."""
    names = {agent.id: agent.name for agent in IdentityStore(tx, tenant).agents()} if rows else {}
    now = now_ms(tx) if rows else 0
    alike = Counter((row.agent_id, row.kind, row.batch_key) for row in rows if row.status == OPEN)
    return [
        {
            "id": row.id,
            "short": row.id[:SHORT_ID],
            "status": status_of(row, now),
            "kind": row.kind,
            "agent": names.get(row.agent_id, row.agent_id),
            "question": row.question,
            "options": numbered(row.options),
            "context": row.context,
            "subject": row.subject,
            "session": row.session,
            "created_ms": row.created_ms,
            "waited_s": max(0, (row.answered_ms or now) - row.created_ms) // 1000,
            "expires_ms": row.expires_ms,
            "similar": max(0, alike[row.agent_id, row.kind, row.batch_key] - 1),
            "answer": None if row.answer is None else row.answer["text"],
            "option": None if row.answer is None else row.answer["option"],
            "answered_by": row.answered_by,
            "via": row.answered_via,
            "put_off": row.status == OPEN and row.later_ms is not None,
        }
        for row in rows
    ]


def ask_notice(ask: Row, sender: str = "", delivery: str = "") -> Notice:
    """The ask as channels tell it."""
    return Notice(
        delivery=delivery,
        about="ask",
        id=ask.id,
        title=f"{ask.kind.capitalize()}{f' from {sender}' if sender else ''}: {ask.question}"[:200],
        text=ask.question,
        level="warning",
        sender=sender,
        options=tuple(str(option) for option in ask.options or ()),
        context=ask.context,
        decides=ask.kind in DECIDED,
    )
