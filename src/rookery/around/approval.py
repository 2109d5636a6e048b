"""The gate: a call that a person has to approve is put to them, held for a while, and goes on once they agree."""

from typing import TYPE_CHECKING, cast

from rookery.asks.approvals import Approvals, Ticket, Wanted
from rookery.asks.cards import card, digest_of_call, question
from rookery.asks.store import asker_of
from rookery.asks.tables import OPEN
from rookery.asks.waiting import until_settled
from rookery.core.context import Call
from rookery.core.events import Event
from rookery.core.tool import ToolInput
from rookery.db.database import Database
from rookery.db.tx import Tx

if TYPE_CHECKING:
    from rookery.core.call import Calls

WRITE_S = 30.0


class ApprovalGate:
    """Holds calls for `hold_s` at most; who waited in vain comes back with the same call."""

    def __init__(self, hold_s: float) -> None:
        self._hold_s = hold_s

    async def let_through(self, calls: "Calls", call: Call, args: ToolInput, token: str | None) -> str:
        """Which approval it was. Nobody but a person can have given it: see `Asks.answer`."""
        tenant, digest = call.actor.tenant, digest_of_call(call, args)
        wanted = Wanted(
            asker=asker_of(call.actor),
            tool=call.tool.name,
            digest=digest,
            question=question(call),
            card=card(call, args, digest),
            project_id=call.actor.project,
            session=call.actor.session,
            unattended=call.actor.unattended,
        )
        ticket = await self._ask(calls, tenant, wanted, token)
        if ticket.ask.status == OPEN:
            await self._hold(calls, call, ticket)

        def use(tx: Tx) -> str:
            return Approvals(tx, tenant).use(ticket)

        return await calls.database.write(use, records=lambda error: [], timeout_s=WRITE_S)

    async def _ask(self, calls: "Calls", tenant: str, wanted: Wanted, token: str | None) -> Ticket:
        made: list[Ticket] = []

        def ask(tx: Tx) -> Ticket:
            # The database may run this again after a rolled-back batch: the last time counts.
            made.append(Approvals(tx, tenant).ask(wanted, token))
            return made[-1]

        def publish() -> None:
            ticket = made[-1]
            if ticket.token is not None:
                told = {"kind": "approval", "agent": wanted.asker, "question": wanted.question}
                calls.events.publish(Event(name="AskOpened", tenant=tenant, subject=ticket.ask.id, payload=told))

        return await calls.database.write(ask, records=lambda error: [], timeout_s=WRITE_S, on_commit=publish)

    async def _hold(self, calls: "Calls", call: Call, ticket: Ticket) -> None:
        """Until it is decided, or put off, or held for long enough."""
        message = f"waiting for approval; ask_id: {ticket.ask.id}"

        def show(waited_s: float) -> None:
            call.door.tell("progress", {"progress": waited_s, "total": self._hold_s, "message": message})

        await until_settled(
            cast(Database, calls.database),
            call.actor.tenant,
            ticket.ask.id,
            self._hold_s,
            each_look=show,
            enough=lambda row: row.later_ms != ticket.ask.later_ms,
        )
