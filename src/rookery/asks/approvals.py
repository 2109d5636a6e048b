"""Approvals: a person's yes to one call of one agent. Bound to its exact input, usable once and for a while."""

import hashlib
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from rookery.asks.answering import read_decision
from rookery.asks.store import HOUR_MS, MINUTE_MS, Asks, NewAsk, digest_of
from rookery.asks.tables import ANSWERED, OPEN, WITHDRAWN, approvals, asks
from rookery.core.errors import ApprovalRequired, PermissionDenied, RateLimited
from rookery.core.moments import iso
from rookery.db.clock import DbNow, now_ms
from rookery.db.tx import Tx
from rookery.identity.tables import EPOCH

ATTENDED_MS, UNATTENDED_MS = 4 * HOUR_MS, 10 * MINUTE_MS
"""How long a person has to decide."""
USABLE_MS = 2 * HOUR_MS
"""How long a yes waits for its call."""
FINAL_MS = 10 * MINUTE_MS
"""For so long a no is the answer to the same call; later it may be asked again."""
MAX_OPEN, MAX_OPENED = 200, 30
"""So many may wait; so many may be opened within FINAL_MS, whatever became of them but a yes that was used."""
Row = sa.Row[Any]

_NEWEST = (
    sa.select(approvals)
    .where(
        approvals.c.tenant == sa.bindparam("of_tenant"),
        approvals.c.asker == sa.bindparam("by"),
        approvals.c.digest == sa.bindparam("what"),
    )
    .order_by(approvals.c.number.desc())
    .limit(1)
)
_OF_TOKEN = sa.select(approvals).where(
    approvals.c.tenant == sa.bindparam("of_tenant"), approvals.c.token_hash == sa.bindparam("hashed")
)
_RIGHTS = sa.text("SELECT value FROM epochs WHERE name = :name")
_RECENT = (
    sa.select(sa.func.count())
    .select_from(asks)
    .where(
        asks.c.tenant == sa.bindparam("of_tenant"),
        asks.c.agent_id == sa.bindparam("by"),
        asks.c.kind == "approval",
        asks.c.created_ms > DbNow() - sa.bindparam("spell_ms", type_=sa.BigInteger),
        ~sa.exists().where(approvals.c.ask_id == asks.c.id, approvals.c.used_ms.is_not(None)),
    )
)
_USE = (
    sa.update(approvals)
    .where(
        approvals.c.tenant == sa.bindparam("of_tenant"),
        approvals.c.ask_id == sa.bindparam("of_ask"),
        approvals.c.used_ms.is_(None),
    )
    .values(used_ms=DbNow())
    .returning(approvals.c.ask_id)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What somebody wants to do, and how it is put to a person."""

    asker: str
    tool: str
    digest: str
    question: str
    card: str
    project_id: str | None
    session: str | None
    unattended: bool
    follow: Mapping[str, Any] | None = None
    """The job that the decision leads to: see `NewAsk`."""
    lasting_right: str | None = None
    """What a yes that lasts is a yes to: the tool, unless said otherwise; empty if none may last."""


@dataclass(frozen=True, slots=True)
class Ticket:
    """The ask about a call. `token` is there for whoever opened it, this once."""

    ask: Row
    rights: int
    """What the count of changes of rights was at that time."""
    token: str | None = None


def rights_of(tx: Tx) -> int:
    """How often rights have been changed so far."""
    return tx.scalar(_RIGHTS, {"name": EPOCH}) or 0


def hash_of(token: str) -> str:
    return hashlib.sha256(token.encode(errors="surrogatepass")).hexdigest()


class Approvals:
    """The approvals of one tenant."""

    def __init__(self, tx: Tx, tenant: str) -> None:
        self.tx = tx
        self.tenant = tenant

    def ask(self, wanted: Wanted, token: str | None) -> Ticket:
        """The ask about this very call: the one of the token, the newest that is still of use, or a new one."""
        if token is not None:
            return Ticket(self._ask(self._of_token(wanted, token)), rights_of(self.tx))
        last = self.tx.one(_NEWEST, {"of_tenant": self.tenant, "by": wanted.asker, "what": wanted.digest})
        if last is not None and last.used_ms is None and self._of_use(wanted, last):
            return Ticket(self._ask(last), rights_of(self.tx))
        return self._open(wanted, 0 if last is None else last.number + 1)

    def _of_token(self, wanted: Wanted, token: str) -> Row:
        row = self.tx.one(_OF_TOKEN, {"of_tenant": self.tenant, "hashed": hash_of(token)})
        if row is None or row.asker != wanted.asker:
            raise _refused("the approval token is unknown", "leave it out: the call itself is what is approved")
        if row.digest != wanted.digest:
            raise _refused("the approval token is for another call", "call with exactly the input that was approved")
        if row.used_ms is not None:
            raise _refused("the approval token was used already", "leave it out to ask for a new approval")
        return row

    def _of_use(self, wanted: Wanted, last: Row) -> bool:
        """Whether the last ask about the same is still open, or its answer still counts."""
        ask, now = self._ask(last), now_ms(self.tx)
        if ask.status == OPEN and ask.expires_ms > now:
            return True
        if ask.status == WITHDRAWN:
            # Whom a person has sent away is not to come back at once; the asker itself may.
            return ask.answered_by is not None and ask.answered_ms + FINAL_MS > now
        if ask.status == ANSWERED:
            lasts = USABLE_MS if read_decision(ask.answer["text"]).verdict == "yes" else FINAL_MS
            return ask.answered_ms + lasts > now
        if ask.expires_ms - ask.created_ms < ATTENDED_MS and not wanted.unattended:
            # Nobody attended that one; somebody attends this.
            return False
        # Nobody decided: a session without a person is not to ask for ever.
        same = wanted.unattended and ask.session is not None and ask.session == wanted.session
        return same or ask.expires_ms + FINAL_MS > now >= ask.expires_ms

    def _ask(self, approval: Row) -> Row:
        ask = self.tx.one(sa.select(asks).where(asks.c.tenant == self.tenant, asks.c.id == approval.ask_id))
        if ask is None:
            raise _refused("the approval is no longer on record", "call again to ask for a new one")
        return ask

    def _open(self, wanted: Wanted, number: int) -> Ticket:
        store = Asks(self.tx, self.tenant)
        new = NewAsk(
            kind="approval",
            agent_id=wanted.asker,
            question=wanted.question,
            context=wanted.card,
            subject=wanted.tool,
            project_id=wanted.project_id,
            session=wanted.session,
            key=digest_of("approval", wanted.asker, wanted.digest, number),
            batch_key=digest_of("approval", wanted.tool),
            open_for_ms=UNATTENDED_MS if wanted.unattended else ATTENDED_MS,
            follow=wanted.follow,
        )
        ask, is_new = store.open(new)
        if not is_new:
            # The same call came twice at the same moment.
            return Ticket(ask, rights_of(self.tx))
        self._refuse_too_many(store, wanted.asker)
        token = secrets.token_urlsafe(16)
        right = wanted.tool if wanted.lasting_right is None else wanted.lasting_right
        row = {"tenant": self.tenant, "asker": wanted.asker, "tool": right, "digest": wanted.digest}
        made = {"ask_id": ask.id, "number": number, "token_hash": hash_of(token), "used_ms": None}
        self.tx.run(sa.insert(approvals).values(**row, **made))
        return Ticket(ask, rights_of(self.tx), token)

    def _refuse_too_many(self, store: Asks, asker: str) -> None:
        if store.open_of(asker) > MAX_OPEN:
            raise RateLimited(f"{MAX_OPEN} of your asks are open already", hint="wait until some are decided")
        recent = self.tx.scalar(_RECENT, {"of_tenant": self.tenant, "by": asker, "spell_ms": FINAL_MS})
        if recent > MAX_OPENED:
            raise RateLimited(
                f"more than {MAX_OPENED} approvals were asked for in ten minutes", hint="wait, and ask for less"
            )

    def use(self, ticket: Ticket) -> str:
        """Use the approval up, and say which it is. Without one: why not, and whether to come back."""
        if rights_of(self.tx) != ticket.rights:
            # Of what the caller had when it came, something may be gone: whoever comes back is looked up anew.
            raise _come_back(ticket, "rights were changed while it waited")
        ask = self.tx.one(sa.select(asks).where(asks.c.tenant == self.tenant, asks.c.id == ticket.ask.id))
        if ask is None or (ask.status == OPEN and ask.expires_ms > now_ms(self.tx)):
            raise _come_back(ticket)
        if ask.status == WITHDRAWN and ask.answered_by is None:
            # Whoever asked may have been another session of the same agent.
            raise _come_back(ticket, "whoever asked for it took that back")
        if ask.status == WITHDRAWN:
            raise _refused(f"the ask about {ask.subject} was dismissed", "work without it")
        if ask.status != ANSWERED:
            raise _refused(f"nobody decided about {ask.subject} in time", "work without it, or ask again later")
        decision = read_decision(ask.answer["text"])
        if decision.verdict != "yes":
            why = f": {decision.reason}" if decision.reason else ""
            raise _refused(f"{ask.answered_by} denied {ask.subject}{why}", "work without it")
        if ask.answered_ms + USABLE_MS <= now_ms(self.tx):
            raise _refused("the approval has expired", "call again to ask for a new one")
        if self.tx.one(_USE, {"of_tenant": self.tenant, "of_ask": ask.id}) is None:
            raise _refused(
                "the approval was used already, by the same call", "see what that one did before you ask for another"
            )
        return f"approved {ask.id[:8]}"


def _refused(message: str, hint: str) -> PermissionDenied:
    return PermissionDenied(message, hint=hint, layer="gate")


def _come_back(ticket: Ticket, why: str = "") -> ApprovalRequired:
    ask = ticket.ask
    error = ApprovalRequired(
        f"approval_required: {why or f'a person has to approve {ask.subject} and was asked'}; ask_id: {ask.id}",
        hint="do other work, then call again with the same arguments: it runs once they have approved",
        layer="gate",
    )
    error.approval = {"status": "approval_required", "ask_id": ask.id, "expires_at": iso(ask.expires_ms)}
    if ticket.token is not None:
        error.approval["approval_token"] = ticket.token
    return error
