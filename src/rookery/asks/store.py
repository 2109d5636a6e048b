"""Keeps asks. Every change of one is a single guarded statement, so of several answers exactly one counts."""

import hashlib
import json
import uuid
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from rookery.asks.answering import read_answer
from rookery.asks.tables import ANSWERED, EXPIRED, OPEN, WITHDRAWN, asks
from rookery.core.actor import Actor
from rookery.core.errors import Conflict, NotFound, PermissionDenied
from rookery.db.clock import DbNow, now_ms
from rookery.db.tx import Tx
from rookery.jobs.store import Jobs

Kind = Literal["question", "approval", "elicitation", "schedule", "verdict"]
HOUR_MS = 3_600_000
MINUTE_MS = 60_000
OPEN_FOR_MS = 72 * HOUR_MS
SHORT_ID = 8
TRIES = 5
WAKE = "asks"
AT_CLIENT = "elicitation"
"""Given by the person at the agent's own client."""
EXPIRE, DELIVER = "owner.expire_asks", "owner.deliver_ask"
QUEUE = "owner"
Row = sa.Row[Any]

_MINE = asks.c.tenant == sa.bindparam("of_tenant")
_THIS = (_MINE, asks.c.id == sa.bindparam("ask_id"))
_STILL_OPEN = (asks.c.status == OPEN, asks.c.expires_ms > DbNow())
_OF = sa.select(asks).where(*_THIS)
_NEWEST = (
    sa.select(asks)
    .where(_MINE, asks.c.key == sa.bindparam("wanted"))
    .order_by(asks.c.created_ms.desc(), asks.c.id.desc())
    .limit(1)
)
_INSERT = {
    name: dialect.insert(asks).on_conflict_do_nothing().returning(*asks.c)
    for name, dialect in (("sqlite", sqlite), ("postgresql", postgresql))
}
_GIVEN: dict[str, Any] = {
    "status": ANSWERED,
    "answer": sa.bindparam("given", type_=sa.JSON),
    "answered_by": sa.bindparam("person"),
    "answered_via": sa.bindparam("through"),
    "answered_ms": DbNow(),
}
_ANSWER = sa.update(asks).where(*_THIS, *_STILL_OPEN).values(_GIVEN).returning(*asks.c)
_ANSWER_ALIKE = (
    sa.update(asks)
    .where(
        _MINE,
        *_STILL_OPEN,
        asks.c.agent_id == sa.bindparam("of_agent"),
        asks.c.batch_key == sa.bindparam("batch"),
        asks.c.kind == sa.bindparam("of_kind"),
        asks.c.id != sa.bindparam("ask_id"),
    )
    .values(_GIVEN)
    .returning(*asks.c)
)
_TELL = sa.update(asks).where(*_THIS, asks.c.status == ANSWERED, asks.c.told_ms.is_(None)).values(told_ms=DbNow())


@dataclass(frozen=True, slots=True, kw_only=True)
class NewAsk:
    """What is asked. With a `key`, asking again while it is open, or before the answer was told, adds nothing.

    Without a `batch_key` asks are alike whose kind, question and options are the same.
    """

    kind: Kind
    agent_id: str
    question: str
    options: Sequence[str] = ()
    context: str = ""
    subject: str | None = None
    project_id: str | None = None
    session: str | None = None
    key: str | None = None
    batch_key: str | None = None
    open_for_ms: int = OPEN_FOR_MS


def wake_name(ask_id: str) -> str:
    """What whoever waits for this ask is woken by."""
    return f"ask:{ask_id}"


def digest_of(*parts: Any) -> str:
    """A short name for some values: the same for the same ones."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True, ensure_ascii=True).encode()).hexdigest()


class Asks:
    """The asks of one tenant; with an `asker`, only its own."""

    def __init__(self, tx: Tx, tenant: str, asker: Actor | None = None) -> None:
        self.tx = tx
        self.tenant = tenant
        self.asker = asker

    def open(self, new: NewAsk) -> tuple[Row, bool]:
        """The ask, and whether it is new. A new one will be told on every channel and expires by itself."""
        for _ in range(TRIES):
            found = self._again(new.key) if new.key is not None else None
            if found is not None:
                return found, False
            made = self._insert(new)
            if made is not None:
                self._see_to_it(made)
                return made, True
            # Somebody who asks the same was first by a moment.
        raise Conflict("the same is asked and answered at this very moment", hint="ask again")

    def _insert(self, new: NewAsk) -> Row | None:
        """The new ask, or None if one of its key is open."""
        at = now_ms(self.tx)
        alike = new.batch_key or digest_of(new.question.split(), [option.casefold() for option in new.options])
        values = {
            "id": uuid.uuid4().hex,
            "tenant": self.tenant,
            "kind": new.kind,
            "agent_id": new.agent_id,
            "project_id": new.project_id,
            "session": new.session,
            "subject": new.subject,
            "question": new.question,
            "options": list(new.options),
            "context": new.context,
            "status": OPEN,
            "batch_key": alike,
            "key": new.key,
            "created_ms": at,
            "expires_ms": at + new.open_for_ms,
        }
        return self.tx.one(_INSERT[self.tx.dialect].values(values))

    def _again(self, key: str) -> Row | None:
        """The ask of that key that is open, or whose answer nobody has been told yet."""
        row = self.tx.one(_NEWEST, {"of_tenant": self.tenant, "wanted": key})
        if row is None:
            return None
        if row.status == OPEN and row.expires_ms <= now_ms(self.tx):
            self.expire(key)
            return None
        return row if row.status == OPEN or (row.status == ANSWERED and row.told_ms is None) else None

    def _see_to_it(self, row: Row) -> None:
        jobs = Jobs(self.tx, self.tenant)
        jobs.defer(DELIVER, {"ask_id": row.id}, key=f"ask-deliver:{row.id}", queue=QUEUE)
        # One job ends all that are over by the same minute.
        minute = row.expires_ms // MINUTE_MS + 1
        jobs.defer(EXPIRE, {}, at_ms=minute * MINUTE_MS, key=f"asks-expire:{minute}", queue=QUEUE)
        self.tx.wake(WAKE)

    def find(self, ask_id: str) -> Row | None:
        """The ask of exactly this id, or None."""
        row = self.tx.one(_OF, {"of_tenant": self.tenant, "ask_id": ask_id})
        return row if row is not None and self._visible(row) else None

    def of(self, ask_id: str) -> Row:
        """The ask; the first eight characters of its id are enough if no other has them. Else NotFound."""
        wanted = ask_id.strip().lower()
        if SHORT_ID <= len(wanted) < 32 and wanted.isascii() and wanted.isalnum():
            alike = sa.select(asks).where(asks.c.tenant == self.tenant, asks.c.id.startswith(wanted)).limit(9)
            rows = [row for row in self.tx.all(alike) if self._visible(row)]
            if len(rows) > 1:
                raise Conflict(f"more than one ask begins with {wanted}", hint="give more of its id")
            row = rows[0] if rows else None
        else:
            row = self.find(wanted)
        if row is None:
            raise NotFound(f"there is no ask {ask_id[:64]}", hint="give the id as it was returned")
        return row

    def _visible(self, row: Row) -> bool:
        asker = self.asker
        if asker is None:
            return True
        return row.agent_id == asker_of(asker) and row.project_id not in asker.closed

    def answer(self, ask_id: str, text: str, person: str, via: str, *, similar: bool = False) -> list[Row]:
        """Answer an ask, and those like it of the same agent if `similar`; the answered ones, it first.

        The first answer counts: whoever comes later is told whose that was. The caller vouches for `person`.
        """
        found = self.of(ask_id)
        if via == AT_CLIENT and found.kind not in ("question", "elicitation"):
            # It comes through the agent's own connection, which cannot vouch for a person where rights depend on it.
            raise PermissionDenied(f"the agent's own client cannot decide on {found.kind}s", layer="principal")
        given = {"given": asdict(read_answer(text, found.options)), "person": person, "through": via}
        mine = {"of_tenant": self.tenant, "ask_id": found.id}
        answered = self.tx.one(_ANSWER, {**mine, **given})
        if answered is None:
            raise self._too_late(found.id)
        rows = [answered]
        if similar:
            alike = {"of_agent": found.agent_id, "batch": found.batch_key, "of_kind": found.kind}
            rows += self.tx.all(_ANSWER_ALIKE, {**mine, **given, **alike})
        self._wake(rows)
        return rows

    def _too_late(self, ask_id: str) -> Conflict:
        row = self.tx.one(_OF, {"of_tenant": self.tenant, "ask_id": ask_id})
        short = ask_id[:SHORT_ID]
        if row is not None and row.status == ANSWERED:
            return Conflict(
                f"ask {short} was already answered by {row.answered_by} via {row.answered_via}",
                hint="the first answer counts",
            )
        if row is not None and row.status == WITHDRAWN:
            return Conflict(f"ask {short} was withdrawn", hint="nobody waits for the answer any more")
        return Conflict(f"ask {short} has expired", hint="the agent can ask again")

    def withdraw(self, ask_id: str) -> Row | None:
        """Take an ask back that nobody needs answered any more; None if it was not open."""
        taken = sa.update(asks).where(*_THIS, asks.c.status == OPEN).values(status=WITHDRAWN).returning(*asks.c)
        row = self.tx.one(taken, {"of_tenant": self.tenant, "ask_id": ask_id})
        self._wake([] if row is None else [row])
        return row

    def expire(self, key: str | None = None) -> Sequence[Row]:
        """End what has been open for too long, everything or what was asked under `key`; those that this ended."""
        over = [asks.c.tenant == self.tenant, asks.c.status == OPEN, asks.c.expires_ms <= DbNow()]
        if key is not None:
            over.append(asks.c.key == key)
        rows = self.tx.all(sa.update(asks).where(*over).values(status=EXPIRED).returning(*asks.c))
        self._wake(rows)
        return rows

    def tell(self, ask_id: str) -> None:
        """Note that the asker has the answer. Who asks the same from now on asks anew."""
        self.tx.one(_TELL.returning(asks.c.id), {"of_tenant": self.tenant, "ask_id": ask_id})

    def similar(self, row: Row) -> Sequence[Row]:
        """The other open asks of the same agent that are answered along with this one."""
        alike = (asks.c.agent_id == row.agent_id, asks.c.batch_key == row.batch_key, asks.c.kind == row.kind)
        return self.tx.all(
            sa.select(asks)
            .where(asks.c.tenant == self.tenant, *_STILL_OPEN, *alike, asks.c.id != row.id)
            .order_by(asks.c.created_ms, asks.c.id)
        )

    def page(self, status: str | None, limit: int) -> Sequence[Row]:
        """Asks of a status, or of all: of the open ones the oldest first, else the newest."""
        wanted = sa.select(asks).where(asks.c.tenant == self.tenant)
        if status == OPEN:
            return self.tx.all(wanted.where(*_STILL_OPEN).order_by(asks.c.created_ms, asks.c.id).limit(limit))
        if status is not None:
            wanted = wanted.where(asks.c.status == status)
        return self.tx.all(wanted.order_by(asks.c.created_ms.desc(), asks.c.id).limit(limit))

    def open_of(self, agent_id: str) -> int:
        """How many of its asks nobody has answered yet."""
        mine = (asks.c.tenant == self.tenant, asks.c.agent_id == agent_id, *_STILL_OPEN)
        return self.tx.scalar(sa.select(sa.func.count()).select_from(asks).where(*mine))

    def _wake(self, rows: Sequence[Row]) -> None:
        for row in rows:
            self.tx.wake(wake_name(row.id))
        if rows:
            self.tx.wake(WAKE)


def asker_of(actor: Actor) -> str:
    """Whose asks those of this caller are: an agent's id, or whoever else it is, who can never pass for an agent."""
    return actor.agent if actor.kind == "agent" and actor.agent else f"{actor.kind}:{actor.subject}"
