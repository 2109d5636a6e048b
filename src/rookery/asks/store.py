"""Keeps asks. Every change of one is a single guarded statement, so of several answers exactly one counts."""

import hashlib
import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import sqlalchemy as sa

from rookery.asks import statements
from rookery.asks.answering import DECISIONS, read_answer, read_decision
from rookery.asks.standing import agree_in_advance
from rookery.asks.tables import ANSWERED, EXPIRED, OPEN, WITHDRAWN, approvals, asks
from rookery.core.actor import Actor
from rookery.core.errors import Conflict, NotFound, PermissionDenied, ValidationFailed
from rookery.db.clock import DbNow, now_ms
from rookery.db.tx import Tx
from rookery.jobs.store import Jobs

Kind = Literal["question", "approval", "elicitation", "schedule", "verdict"]
DECIDED: tuple[Kind, ...] = ("approval", "schedule", "verdict")
"""Kinds that are answered with a decision, not with just any words."""
DISMISSED: tuple[Kind, ...] = ("question", "elicitation", "approval")
"""Kinds that can end without an answer, since only the asker waits for it."""
HOUR_MS = 3_600_000
MINUTE_MS = 60_000
OPEN_FOR_MS = 72 * HOUR_MS
KEPT_READY_MS = 72 * HOUR_MS
"""For so long an answer that nobody has fetched yet is the answer to the same words."""
AGAIN_MS = 10 * MINUTE_MS
"""And for so long one that was handed over: whether it arrived nobody knows, since clients die. Never a decision."""
SHORT_ID = 8
ATTEMPTS = 5
TRIES = 5
WAKE = "asks"
AT_CLIENT = "elicitation"
"""Given by the person at the agent's own client."""
TELL_WITHDRAWN = "owner.tell_withdrawn"
EXPIRE, DELIVER = "owner.expire_asks", "owner.deliver_ask"
QUEUE = "owner"
Row = sa.Row[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class NewAsk:
    """What is asked. With a `key`, asking again while it is open, or while its answer still stands, adds nothing.

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
    follow: Mapping[str, Any] | None = None
    """The job `{job, args, queue}` that an answer leads to, in the transaction of the answer; it is told the ask."""
    once: bool = False
    """An answer that was handed over is none to the same words later: the asker had it for certain."""


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
            found = self._again(new.key, once=new.once) if new.key is not None else None
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
        ask_id = uuid.uuid4().hex
        values = {
            "id": ask_id,
            "short_id": ask_id[:SHORT_ID],
            "tenant": self.tenant,
            "kind": new.kind,
            "agent_id": new.agent_id,
            "project_id": new.project_id,
            "session": new.session,
            "subject": new.subject,
            "question": new.question,
            "options": options_of(new),
            "context": new.context,
            "status": OPEN,
            "batch_key": alike,
            "key": new.key,
            "created_ms": at,
            "expires_ms": at + new.open_for_ms,
            "follow": None if new.follow is None else dict(new.follow),
        }
        return self.tx.one(statements.INSERT[self.tx.dialect].values(values))

    def _again(self, key: str, *, once: bool) -> Row | None:
        """The ask of that key that is open, or whose answer still stands."""
        row = self.tx.one(statements.NEWEST, {"of_tenant": self.tenant, "wanted": key})
        if row is None:
            return None
        now = now_ms(self.tx)
        if row.status == OPEN and row.expires_ms <= now:
            # The job that ends it tells everybody; here it only makes room for the next.
            self.tx.one(statements.LET_GO, {"of_tenant": self.tenant, "ask_id": row.id})
            return None
        return row if row.status == OPEN or _stands(row, now, once=once) else None

    def _see_to_it(self, row: Row) -> None:
        jobs = Jobs(self.tx, self.tenant)
        how: dict[str, Any] = {"queue": QUEUE, "attempts": ATTEMPTS}
        jobs.defer(DELIVER, {"ask_id": row.id}, key=f"ask-deliver:{row.id}", backoff_s=2.0, **how)
        # One job ends all that are over by the same minute.
        minute = row.expires_ms // MINUTE_MS + 1
        jobs.defer(EXPIRE, {}, at_ms=minute * MINUTE_MS, key=f"asks-expire:{minute}", **how)
        self.tx.wake(WAKE)

    def find(self, ask_id: str) -> Row | None:
        """The ask of exactly this id, or None."""
        row = self.tx.one(statements.OF, {"of_tenant": self.tenant, "ask_id": ask_id})
        return row if row is not None and self._visible(row) else None

    def of(self, ask_id: str) -> Row:
        """The ask; the first eight characters of its id are enough if no other has them. Else NotFound."""
        wanted = ask_id.strip().lower()
        if SHORT_ID <= len(wanted) < 32 and wanted.isascii() and wanted.isalnum():
            alike = self.tx.all(statements.BEGINNING, {"of_tenant": self.tenant, "beginning": wanted[:SHORT_ID]})
            rows = [row for row in alike if row.id.startswith(wanted) and self._visible(row)]
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

    def answer(
        self, ask_id: str, text: str, person: str, via: str, *, similar: bool = False, seen_ms: int | None = None
    ) -> list[Row]:
        """Answer an ask, and those like it of the same agent if `similar`; the answered ones, it first.

        The first answer counts: whoever comes later is told whose that was. The caller vouches for `person`. A decision
        about several is about those that the person has seen: none that were asked after `seen_ms`.
        """
        found = self.of(ask_id)
        if similar and found.kind in DECIDED and seen_ms is None:
            raise ValidationFailed("nobody decides about what they have not seen", hint="give seen_ms, as listed")
        if via == AT_CLIENT and found.kind not in ("question", "elicitation"):
            # It comes through the agent's own connection, which cannot vouch for a person where rights depend on it.
            raise PermissionDenied(f"the agent's own client cannot decide on {found.kind}s", layer="principal")
        decision = read_decision(text) if found.kind in DECIDED else None
        if decision is not None and decision.verdict == "later":
            # Not now is not no: it stays open, and whoever waits is told to come back.
            return self._settle(found, statements.LATER, {}, similar=similar, seen_ms=seen_ms)
        if decision is not None and decision.for_s is not None:
            agree_in_advance(self.tx, self.tenant, found, decision.for_s, person)
        given = {"given": asdict(read_answer(text, found.options)), "person": person, "through": via}
        rows = self._settle(found, statements.ANSWER, given, similar=similar, seen_ms=seen_ms)
        for row in rows:
            self._follow(row)
        return rows

    def dismiss(self, ask_id: str, person: str | None, via: str, *, similar: bool = False) -> list[Row]:
        """End an ask without an answer, and those like it if `similar`; without a `person` the asker takes it back."""
        found = self.of(ask_id)
        if found.kind not in DISMISSED:
            raise Conflict(
                f"ask {found.short_id} waits for a decision that cannot be left out",
                hint="a person says approve, deny or later",
            )
        return self._settle(found, statements.WITHDRAW, {"person": person, "through": via}, similar=similar)

    def _settle(
        self, found: Row, change: sa.Executable, values: dict[str, Any], *, similar: bool, seen_ms: int | None = None
    ) -> list[Row]:
        """Do this to the ask, and to those like it; those to which it was done, it first. Conflict if it is over."""
        ids = [found.id]
        if similar:
            alike = {"of_agent": found.agent_id, "batch": found.batch_key, "of_kind": found.kind}
            until_ms = now_ms(self.tx) if seen_ms is None else seen_ms
            locked = self.tx.all(statements.LOCK_ALIKE, {"of_tenant": self.tenant, "until_ms": until_ms, **alike})
            ids += [row.id for row in locked if row.id != found.id]
        rows: list[Row] = []
        for ask_id in ids:
            row = self.tx.one(change, {"of_tenant": self.tenant, "ask_id": ask_id, **values})
            if row is not None:
                rows.append(row)
            elif ask_id == found.id:
                raise self._too_late(ask_id)
        self._wake(rows)
        return rows

    def _follow(self, row: Row) -> None:
        """Defer the job that the answer leads to."""
        if row.follow is not None:
            Jobs(self.tx, self.tenant).defer(
                row.follow["job"],
                {**row.follow["args"], "ask_id": row.id},
                key=f"ask-follow:{row.id}",
                queue=row.follow.get("queue", QUEUE),
                attempts=ATTEMPTS,
            )

    def _too_late(self, ask_id: str) -> Conflict:
        row = self.tx.one(statements.OF, {"of_tenant": self.tenant, "ask_id": ask_id})
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
        row = self.tx.one(
            statements.WITHDRAW, {"of_tenant": self.tenant, "ask_id": ask_id, "person": None, "through": None}
        )
        if row is not None:
            jobs, key = Jobs(self.tx, self.tenant), f"ask-withdrawn:{row.id}"
            jobs.defer(TELL_WITHDRAWN, {"ask_id": row.id}, key=key, queue=QUEUE, attempts=ATTEMPTS)
            self._wake([row])
        return row

    def expire(self) -> Sequence[Row]:
        """End what has been open for too long; those that this ended."""
        over = (asks.c.tenant == self.tenant, statements.IS_OPEN, asks.c.expires_ms <= DbNow())
        rows = self.tx.all(sa.update(asks).where(*over).values(status=EXPIRED).returning(*asks.c))
        self._wake(rows)
        return rows

    def forget(self, keep_days: int, room: int = 500) -> int:
        """Drop some of the asks that have been over for so long, and what hangs on them; how many."""
        values = {"of_tenant": self.tenant, "keep_ms": keep_days * 24 * HOUR_MS, "room": room}
        ids = [row.id for row in self.tx.all(statements.FORGOTTEN, values)]
        if ids:
            self.tx.run(sa.delete(approvals).where(approvals.c.ask_id.in_(ids)))
            self.tx.run(sa.delete(asks).where(asks.c.tenant == self.tenant, asks.c.id.in_(ids)))
        return len(ids)

    def tell(self, ask_id: str) -> None:
        """Note that the answer was handed to the asker."""
        self.tx.one(statements.TELL, {"of_tenant": self.tenant, "ask_id": ask_id})

    def similar(self, row: Row) -> Sequence[Row]:
        """The other open asks of the same agent that are answered along with this one."""
        alike = {"of_agent": row.agent_id, "batch": row.batch_key, "of_kind": row.kind}
        return self.tx.all(statements.SIMILAR, {"of_tenant": self.tenant, "ask_id": row.id, **alike})

    def page(self, status: str | None, limit: int) -> Sequence[Row]:
        """Asks of a status, or of all: of the open ones the oldest first, else the newest."""
        wanted = sa.select(asks).where(asks.c.tenant == self.tenant)
        if status == OPEN:
            return self.tx.all(wanted.where(*statements.STILL_OPEN).order_by(asks.c.created_ms, asks.c.id).limit(limit))
        if status is not None:
            wanted = wanted.where(asks.c.status == status)
        return self.tx.all(wanted.order_by(asks.c.created_ms.desc(), asks.c.id).limit(limit))

    def open_of(self, agent_id: str) -> int:
        """How many of its asks nobody has answered yet."""
        return self.tx.scalar(statements.OPEN_OF, {"of_tenant": self.tenant, "of_agent": agent_id})

    def _wake(self, rows: Sequence[Row]) -> None:
        for row in rows:
            self.tx.wake(wake_name(row.id))
        if rows:
            self.tx.wake(WAKE)


def _stands(row: Row, now: int, *, once: bool) -> bool:
    """Whether the answer is still the one to the same words."""
    if row.status != ANSWERED or row.answered_ms + KEPT_READY_MS <= now:
        return False
    if row.told_ms is None:
        return True
    return not once and row.kind not in DECIDED and row.told_ms + AGAIN_MS > now


def options_of(new: NewAsk) -> list[str]:
    """What can be chosen: for a decision always the same."""
    if new.kind not in DECIDED:
        return list(new.options)
    return list(DECISIONS if new.kind == "approval" else DECISIONS[:-1])


def asker_of(actor: Actor) -> str:
    """Whose asks those of this caller are: an agent's id, or whoever else it is, who can never pass for an agent."""
    return actor.agent if actor.kind == "agent" and actor.agent else f"{actor.kind}:{actor.subject}"
