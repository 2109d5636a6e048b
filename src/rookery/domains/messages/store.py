"""Keeps messages. A message moves on by guarded statements only, and lies in at most one inbox at a time."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import sqlalchemy as sa

from rookery.core.errors import Conflict, NotFound
from rookery.core.ids import new_id
from rookery.db.clock import now_ms
from rookery.db.tx import Tx
from rookery.domains.messages.charging import charge
from rookery.domains.messages.forgetting import TOLD_MS, forget, forget_refused
from rookery.domains.messages.limits import Limits, Refusal, Refused, circuit_open, hold_sender, over_rate
from rookery.domains.messages.session_limits import over_session
from rookery.domains.messages.tables import messages
from rookery.domains.messages.thread import MAX_HISTORY, Said

WAKE = "messages"
WINDOW_MS = 30_000
"""For so long the same message to the same receiver is sent once."""
ALIKE = 200
"""Messages that begin with the same characters, as many as this, are the same."""
MAX_ERROR = 2_000
MAX_RESPONSE = 100_000
OPEN = ("pending", "processing")
Row = sa.Row[Any]
Way = Literal["session", "work", "inbox"]
"""Who takes a message: a session of the receiver that answers, its work tasks, or its inbox."""

_MINE = messages.c.tenant == sa.bindparam("of_tenant")
_ONE = (_MINE, messages.c.id == sa.bindparam("the_id"))
_OF = sa.select(messages).where(*_ONE)
_DUPLICATE = (
    sa.select(messages)
    .where(
        _MINE,
        messages.c.from_id == sa.bindparam("of_sender"),
        messages.c.accepted_ms > sa.bindparam("since_ms"),
        messages.c.digest == sa.bindparam("the_digest"),
    )
    .limit(1)
)
_TOOK_PART = sa.or_(messages.c.from_id == sa.bindparam("the_part"), messages.c.to_id == sa.bindparam("the_part"))
_THREAD = sa.select(messages).where(
    _MINE, messages.c.thread_id == sa.bindparam("the_thread"), messages.c.accepted_ms.is_not(None), _TOOK_PART
)
_NEWEST_OF_THREAD = _THREAD.order_by(messages.c.created_ms.desc(), messages.c.id.desc())
# In SQL: a delivery that comes late must find what was said before, however much was said since.
_BEFORE = (
    _THREAD.where(messages.c.id != sa.bindparam("the_id"), messages.c.created_ms <= sa.bindparam("until_ms"))
    .order_by(messages.c.created_ms.desc(), messages.c.id.desc())
    .limit(MAX_HISTORY)
)
_TOLD = sa.case((messages.c.told_ms.is_(None), 0), else_=1)
_INBOX = (
    sa.select(messages)
    .where(
        _MINE,
        messages.c.mailbox == sa.bindparam("of_reader"),
        sa.or_(messages.c.told_ms.is_(None), messages.c.told_ms > sa.bindparam("since_ms")),
    )
    .order_by(_TOLD, messages.c.arrived_ms, messages.c.id)
)
_OVER = sa.select(messages.c.id).where(
    messages.c.id.in_(sa.bindparam("the_ids", expanding=True)), messages.c.status.not_in(OPEN)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewMessage:
    """What is known of a message when it is sent. `held` is what the receiver's session is held to, `payer` the agent
    that pays for it, if one does."""

    from_id: str
    from_name: str
    to_id: str
    to_name: str
    content: str
    thread_id: str | None
    project_id: str | None
    held: dict[str, Any]
    payer: str | None = None
    session: str | None = None

    @property
    def digest(self) -> str:
        """The same for messages of one sender that are duplicates of each other."""
        return hashlib.sha256(f"{self.to_id}\0{self.content[:ALIKE]}".encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Posted:
    """A message that was sent, the one of which it is a duplicate, or one that a limit refused."""

    row: Row
    duplicate: bool = False
    refusal: Refusal | None = None


class Messages:
    """The messages of one tenant."""

    def __init__(self, tx: Tx, tenant: str) -> None:
        self.tx = tx
        self.tenant = tenant

    def post(self, new: NewMessage, limits: Limits, way: Way) -> Posted:
        """Take a message in. Duplicates change nothing; what a limit refuses is kept as failed, with its code.

        Those of one sender come one after the other, so two servers take no message twice and none beyond the rate.
        """
        at = self._hold(new.from_id)
        same = {"of_tenant": self.tenant, "of_sender": new.from_id, "the_digest": new.digest}
        first = self.tx.one(_DUPLICATE, {**same, "since_ms": at - WINDOW_MS})
        if first is not None:
            return Posted(first, duplicate=True)
        message_id = new_id("msg")
        refusal = over_rate(self.tx, self.tenant, new.from_id, at, limits)
        refusal = refusal or over_session(self.tx, self.tenant, new.session, new.to_id, at, limits)
        refusal = refusal or self._sent(new, limits, way, at, message_id)
        if refusal is not None:
            return self._refuse(new, refusal, at)
        forget(self.tx, self.tenant, new.from_id, at, limits.keep_days)
        return Posted(self._insert(new, at, message_id, to_inbox=way == "inbox"))

    def refuse(self, new: NewMessage, refusal: Refusal) -> Posted:
        """Keep a message that is not sent, with the reason; the newest of each sender only."""
        return self._refuse(new, refusal, self._hold(new.from_id))

    def _hold(self, sender: str) -> int:
        hold_sender(self.tx, self.tenant, sender, now_ms(self.tx))
        # Only now: whoever waited for another sender of this name has to look at what that one did.
        return now_ms(self.tx)

    def _sent(self, new: NewMessage, limits: Limits, way: Way, at: int, message_id: str) -> Refusal | None:
        """Pay, and use the trial of a receiver that failed too often; or neither, for the reason that is returned."""
        try:
            with self.tx.savepoint():
                charge(self.tx, self.tenant, new.payer, message_id, limits)
                # What no session answers is no trial of one.
                closed = way == "session" and circuit_open(self.tx, self.tenant, new.to_id, new.to_name, at, limits)
                if closed:
                    raise Refused(closed)
        except Refused as refused:
            return refused.refusal
        return None

    def _refuse(self, new: NewMessage, refusal: Refusal, at: int) -> Posted:
        row = self._insert(new, at, new_id("msg"), refusal)
        forget_refused(self.tx, self.tenant, new.from_id)
        return Posted(row, refusal=refusal)

    def _insert(
        self, new: NewMessage, at: int, message_id: str, refusal: Refusal | None = None, *, to_inbox: bool = False
    ) -> Row:
        delivered = to_inbox and refusal is None
        values = {
            "id": message_id,
            "tenant": self.tenant,
            "thread_id": new.thread_id or new_id("thr"),
            "from_id": new.from_id,
            "from_name": new.from_name,
            "to_id": new.to_id,
            "to_name": new.to_name,
            "content": new.content,
            "digest": new.digest,
            "from_session": new.session,
            "status": "failed" if refusal is not None else "delivered" if delivered else "pending",
            "error_code": refusal.code if refusal is not None else None,
            "error": kept(refusal.error, MAX_ERROR) if refusal is not None else None,
            "project_id": new.project_id,
            "held": new.held,
            "cost_micros": 0,
            "mailbox": new.to_id if delivered else None,
            "created_ms": at,
            "accepted_ms": at if refusal is None else None,
            "arrived_ms": at if delivered else None,
            "completed_ms": at if refusal is not None else None,
        }
        row = self.tx.one(sa.insert(messages).values(**values).returning(*messages.c))
        assert row is not None
        return row

    def find(self, message_id: str) -> Row | None:
        """The message, or None."""
        return self.tx.one(_OF, {"of_tenant": self.tenant, "the_id": message_id})

    def check_thread(self, thread_id: str, reader: str) -> None:
        """NotFound unless `reader` has written or been written to in the thread."""
        if not self.thread(thread_id, reader, 1):
            raise NotFound(f"there is no thread {thread_id}", hint="leave thread out to begin one")

    def thread(self, thread_id: str, reader: str, limit: int) -> Sequence[Row]:
        """The newest messages of a thread that `reader` wrote or was sent, the newest first."""
        wanted = {"of_tenant": self.tenant, "the_thread": thread_id, "the_part": reader}
        return self.tx.all(_NEWEST_OF_THREAD.limit(limit), wanted)

    def before(self, message: Row) -> list[Said]:
        """What was said in the thread before this message, as far as its sender was there; the oldest first."""
        wanted = {"of_tenant": self.tenant, "the_thread": message.thread_id, "the_part": message.from_id}
        earlier = self.tx.all(_BEFORE, {**wanted, "the_id": message.id, "until_ms": message.created_ms})
        said: list[Said] = []
        for row in reversed(earlier):
            said.append(Said(row.from_name, row.content))
            if row.response is not None:
                said.append(Said(row.to_name, row.response))
        return said

    def inbox(self, reader: str, limit: int) -> Sequence[Row]:
        """What waits for `reader`, the oldest first; after it, for a day, the answers that a call was given already."""
        wanted = {"of_tenant": self.tenant, "of_reader": reader, "since_ms": now_ms(self.tx) - TOLD_MS}
        return self.tx.all(_INBOX.limit(limit), wanted)

    def begin(self, message_id: str) -> Row | None:
        """The message, whose delivery is under way from now on; None if it is over."""
        return self._move(message_id, messages.c.status.in_(OPEN), status="processing")

    def note_session(self, message_id: str, session_id: str) -> None:
        """Keep which session answers."""
        self._move(message_id, messages.c.status.in_(OPEN), session_id=session_id)

    def to_inbox(self, message_id: str) -> Row | None:
        """Leave an undelivered message in the receiver's inbox."""
        found = self.find(message_id)
        if found is None:
            return None
        at = now_ms(self.tx)
        self.tx.wake(WAKE)
        return self._move(
            message_id, messages.c.status.in_(OPEN), status="delivered", mailbox=found.to_id, arrived_ms=at
        )

    def answer(self, message: Row, response: str, **values: Any) -> Row | None:
        """The answer has come and lies in the sender's inbox; None if the message was over already."""
        return self._end(message, messages.c.status.in_(OPEN), status="completed", response=kept(response), **values)

    def fail(self, message: Row, code: str, error: str, **values: Any) -> Row | None:
        """The message comes to nothing, which its sender finds in its inbox; None if it was over already."""
        return self._end(
            message,
            messages.c.status.in_(OPEN),
            status="failed",
            error_code=code,
            error=kept(error, MAX_ERROR),
            **values,
        )

    def _end(self, message: Row, guard: sa.ColumnElement[bool], **values: Any) -> Row | None:
        at = now_ms(self.tx)
        self.tx.wake(WAKE)
        return self._move(message.id, guard, mailbox=message.from_id, arrived_ms=at, completed_ms=at, **values)

    def told(self, message_id: str, sender: str) -> None:
        """Note that a call of the sender is given the answer. It stays in the inbox for those who never got it."""
        in_inbox = (messages.c.mailbox == sender, messages.c.from_id == sender)
        self._move(message_id, *in_inbox, messages.c.told_ms.is_(None), told_ms=now_ms(self.tx))

    def acknowledge(self, message_id: str, reader: str, reply: str | None) -> Row:
        """Take a message out of the reader's inbox, with an answer to its sender if there is one."""
        found = self.find(message_id)
        if found is None or reader not in (found.from_id, found.to_id) or found.accepted_ms is None:
            raise NotFound(f"there is no message {message_id}", hint="read_inbox shows yours")
        if reader == found.from_id:
            return self._acknowledge_answer(found, reader, reply)
        if reply is None:
            done = self._move(found.id, messages.c.status == "delivered", status="read", mailbox=None)
        else:
            unanswered = messages.c.status.in_(("delivered", "read"))
            done = self._end(found, unanswered, status="completed", response=kept(reply))
        if done is None:
            raise Conflict(f"the message is {found.status} already", hint="send_message writes another")
        return done

    def _acknowledge_answer(self, found: Row, reader: str, reply: str | None) -> Row:
        if reply is not None:
            raise Conflict(
                "this message is your own", hint=f"write again with send_message and thread {found.thread_id}"
            )
        done = self._move(found.id, messages.c.mailbox == reader, messages.c.from_id == reader, mailbox=None)
        if done is None:
            raise Conflict("no answer to this message is in your inbox", hint="read_inbox shows what is")
        return done

    def _move(self, message_id: str, *guards: sa.ColumnElement[bool], **values: Any) -> Row | None:
        mine = (messages.c.tenant == self.tenant, messages.c.id == message_id)
        return self.tx.one(sa.update(messages).where(*mine, *guards).values(**values).returning(*messages.c))


def over_among(tx: Tx, message_ids: Sequence[str]) -> set[str]:
    """Which of these messages, of whatever tenants, nobody delivers any more."""
    return {row.id for row in tx.all(_OVER, {"the_ids": message_ids})}


def kept(text: str, limit: int = MAX_RESPONSE) -> str:
    """The text as far as both databases can keep it, its middle left out where it is too long."""
    text = text.replace("\0", "").encode("utf-8", "replace").decode()
    if len(text) <= limit:
        return text
    half = limit // 2 - 10
    return f"{text[:half]}\n[…]\n{text[-half:]}"
