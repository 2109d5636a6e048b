"""One question of an agent on its way: stored, told to everybody who may answer, and waited for."""

import asyncio
import contextlib
import time
from collections.abc import Callable, Mapping
from typing import Any, cast

from rookery.asks.answering import put_to_person
from rookery.asks.store import AT_CLIENT, Asks, NewAsk, Row
from rookery.asks.tables import ANSWERED, OPEN
from rookery.asks.waiting import until_settled
from rookery.core.admission import storable
from rookery.core.context import Context
from rookery.core.errors import Conflict, DatabaseError, RateLimited, RookeryError, TimedOut
from rookery.core.events import Event
from rookery.core.questions import InputRequired
from rookery.db.clock import now_ms
from rookery.db.database import Database
from rookery.db.tx import Tx

MAX_ANSWER = 20_000
MAX_OPEN = 200
"""So many unanswered asks of one agent nobody reads."""
SIGN_OF_LIFE_S = 10.0
ASKS_BY_ANSWERS = "2026-07-28"
"""From this revision on a client is asked by ending its call, and nobody can end its waiting for its person."""
HEAD_START_S = 5.0
"""For so long such a client is left alone, in case that somebody elsewhere answers."""
RETRY_S, RETRIED_S = 0.5, 30.0
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
        self._heard = False
        self.repeated = False
        """Whether the answer is one that was handed over before."""

    async def settled(self, within_s: float) -> Row:
        """The ask once it is settled, or as it is after `within_s`. Asking again goes on from where it was."""
        ctx = self._ctx
        row = await self._change(self._open)
        self.repeated = row.told_ms is not None
        # Whoever loses the connection from here on knows under which id to look.
        ctx.progress(0, within_s, f"the owner is asked; ask_id: {row.id}")
        ctx.emit_status(f"waiting for the owner; ask_id: {row.id}")
        if row.status == OPEN:
            row = await self._wait(row, within_s)
        if row.status == ANSWERED:
            # The answer is what counts; without the note it only stands for longer.
            with contextlib.suppress(DatabaseError, TimedOut):
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
        client = self._ctx.client
        if not client.elicitation:
            return await self._settled(row, within_s)
        if client.protocol >= ASKS_BY_ANSWERS:
            return await self._wait_by_answers(row, within_s)
        aside = asyncio.create_task(self._ask_client(row))
        try:
            row = await self._settled(row, within_s, aside)
        finally:
            if not self._heard:
                aside.cancel()
            # What a person has said is kept, also if it was said at the last moment.
            await asyncio.gather(aside, return_exceptions=True)
        return await self._settled(row, 0) if self._heard and row.status == OPEN else row

    async def _wait_by_answers(self, row: Row, within_s: float) -> Row:
        """The same where the question to the client ends the call. It comes again, and finds the same ask."""
        try:
            said = _said(await self._put(row))
        except InputRequired as needed:
            row = await self._settled(row, min(HEAD_START_S, within_s / 2))
            if row.status != OPEN:
                return row
            # The client needs the question itself, not where it was thought of first.
            raise needed from None
        except RookeryError:
            said = None
        if said is not None:
            await self._keep(row, said)
            return await self._settled(row, 0)
        # The time for which the client's person had the question is a part of the asker's patience.
        age_ms = await self._ctx.read(now_ms) - row.created_ms
        return await self._settled(row, max(0.0, within_s - age_ms / 1000))

    async def _settled(self, row: Row, within_s: float, aside: "asyncio.Task[None] | None" = None) -> Row:
        database = cast(Database, self._ctx.platform.database)
        self._shown_s = 0.0

        def show(waited_s: float) -> None:
            if waited_s - self._shown_s >= SIGN_OF_LIFE_S:
                # Many clients give up on a call that is silent for long.
                self._shown_s = waited_s
                self._ctx.progress(waited_s, within_s, "waiting for the owner")

        return await until_settled(database, self._tenant, row.id, within_s, aside=aside, each_look=show)

    async def _put(self, row: Row) -> Mapping[str, Any] | None:
        return await self._ctx.elicit(put_to_person(row.question, row.options, row.context), FORM, key=row.id)

    async def _ask_client(self, row: Row) -> None:
        """Put the question to the person at the client. If they decline, or somebody was faster, nothing happens."""
        try:
            said = _said(await self._put(row))
        except RookeryError:
            return
        if said is not None:
            self._heard = True
            await self._keep(row, said)

    async def _keep(self, row: Row, said: str) -> None:
        """Take what the person at the client said for the answer, also if the database is away for a moment."""

        def answer(tx: Tx) -> tuple[Row, Event]:
            answered = Asks(tx, self._tenant).answer(row.id, said, _person_at(self._ctx.client.name), AT_CLIENT)[0]
            return answered, self._event("AskAnswered", answered, session=answered.session)

        until = time.monotonic() + min(RETRIED_S, self._ctx.remaining_s)
        while True:
            try:
                # A Conflict: somebody was faster.
                with contextlib.suppress(Conflict):
                    await self._change(answer)
                return
            except (DatabaseError, TimedOut):
                if time.monotonic() + RETRY_S >= until:
                    raise
                await asyncio.sleep(RETRY_S)

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


def _person_at(client: str) -> str:
    """Who answered, where the agent's own client says so: its name is what it calls itself."""
    name = "".join(letter for letter in client[:80] if letter.isalnum() or letter in " -_.").strip()
    return f'the person at the agent\'s client "{name}"' if name else "the person at the agent's client"


def _said(given: Mapping[str, Any] | None) -> str | None:
    """The answer in a form that a client has sent, or None if there is none that we could keep."""
    text = given.get("answer") if given is not None else None
    if not isinstance(text, str) or not text.strip() or len(text) > MAX_ANSWER or not storable(text):
        return None
    return text
