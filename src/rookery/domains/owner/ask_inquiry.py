"""One question of an agent on its way: stored, told to everybody who may answer, and waited for."""

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from typing import Any, cast

from rookery.asks.answering import put_to_person
from rookery.asks.store import AT_CLIENT, Asks, NewAsk, Row
from rookery.asks.tables import ANSWERED, OPEN
from rookery.asks.waiting import until_settled
from rookery.core.admission import storable
from rookery.core.context import Context
from rookery.core.errors import Conflict, RateLimited, RookeryError
from rookery.core.events import Event
from rookery.db.database import Database
from rookery.db.tx import Tx

MAX_ANSWER = 20_000
MAX_OPEN = 200
"""So many unanswered asks of one agent nobody reads."""
SIGN_OF_LIFE_S = 10.0
SHOWN_LETTERS = 200
FORM: dict[str, Any] = {
    "type": "object",
    "properties": {"answer": {"type": "string", "title": "Answer", "description": "A number, or your own words"}},
    "required": ["answer"],
}


class Inquiry:
    """Asks what `new` says for the caller of `ctx`. Whatever becomes of the call, the question stays."""

    def __init__(self, ctx: Context, new: NewAsk) -> None:
        self._ctx = ctx
        self._new = new
        self._tenant = ctx.actor.tenant
        self._shown_s = 0.0

    async def settled(self, within_s: float) -> Row:
        """The ask once it is settled, or as it is after `within_s`. Asking again goes on from where it was."""
        ctx = self._ctx
        row = await self._change(self._open)
        # Whoever loses the connection from here on knows under which id to look.
        ctx.progress(0, within_s, f"the owner is asked; ask_id: {row.id}")
        if row.status == OPEN:
            row = await self._wait(row, within_s)
        if row.status == ANSWERED:
            await ctx.write(lambda tx: Asks(tx, self._tenant).tell(row.id))
        return row

    def _open(self, tx: Tx) -> tuple[Row, Event | None]:
        store = Asks(tx, self._tenant)
        row, is_new = store.open(self._new)
        if not is_new:
            return row, None
        if store.open_of(row.agent_id) > MAX_OPEN:
            raise RateLimited(f"{MAX_OPEN} of your asks are open already", hint="decide yourself, or wait for answers")
        return row, self._event("AskOpened", row, question=row.question[:SHOWN_LETTERS])

    async def _wait(self, row: Row, within_s: float) -> Row:
        """Wait for an answer from wherever; the person at the client is one of those who may give it."""
        database = cast(Database, self._ctx.platform.database)
        aside = asyncio.create_task(self._ask_client(row)) if self._ctx.client.elicitation else None
        self._shown_s = 0.0

        def show(waited_s: float) -> None:
            if waited_s - self._shown_s >= SIGN_OF_LIFE_S:
                # Many clients give up on a call that is silent for long.
                self._shown_s = waited_s
                self._ctx.progress(waited_s, within_s, "waiting for the owner")

        try:
            return await until_settled(database, self._tenant, row.id, within_s, aside=aside, each_look=show)
        finally:
            if aside is not None:
                aside.cancel()
                await asyncio.gather(aside, return_exceptions=True)

    async def _ask_client(self, row: Row) -> None:
        """Put the question to the person at the client. If they decline, or somebody was faster, nothing happens.

        With a client of 2026-07-28 this ends the call; it comes again with the answer, and finds the same ask.
        """
        try:
            given = await self._ctx.elicit(put_to_person(row.question, row.options, row.context), FORM, key=row.id)
        except RookeryError:
            return
        said = _said(given)
        if said is None:
            return
        name = "".join(letter for letter in self._ctx.client.name[:80] if letter.isprintable())
        person = f"the person at {name or 'the client'}"

        def answer(tx: Tx) -> tuple[Row, Event]:
            answered = Asks(tx, self._tenant).answer(row.id, said, person, AT_CLIENT)[0]
            return answered, self._event("AskAnswered", answered, session=answered.session)

        with contextlib.suppress(Conflict):
            await self._change(answer)

    async def _change(self, work: Callable[[Tx], tuple[Row, Event | None]]) -> Row:
        """What `work` gives, committed; its event is told at once, also if the caller goes away at that moment."""
        calls = self._ctx.platform
        made: list[tuple[Row, Event | None]] = []

        def publish() -> None:
            event = made[-1][1]
            if event is not None:
                calls.events.publish(event)

        def kept(tx: Tx) -> Row:
            # The database may run this again; what counts is the last time.
            made.append(work(tx))
            return made[-1][0]

        limit_s = self._ctx.remaining_s
        return await calls.database.write(kept, records=lambda error: [], timeout_s=limit_s, on_commit=publish)

    def _event(self, name: str, row: Row, **payload: Any) -> Event:
        told = {"kind": row.kind, "agent": row.agent_id, **payload}
        return Event(name=name, tenant=self._tenant, subject=row.id, payload=told)


def _said(given: Mapping[str, Any] | None) -> str | None:
    """The answer in a form that a client has sent, or None if there is none that we could keep."""
    text = given.get("answer") if given is not None else None
    if not isinstance(text, str) or not text.strip() or len(text) > MAX_ANSWER or not storable(text):
        return None
    return text
