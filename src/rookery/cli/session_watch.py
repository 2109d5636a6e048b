"""Follows a session in a terminal, beside whatever process runs it, and answers what its agent asks."""

import asyncio
import contextlib
import json
import os
import sys
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from typing import TYPE_CHECKING, TypeVar

import click

from rookery.cli.session_lines import Lines, decision
from rookery.core.errors import Conflict, RookeryError

if TYPE_CHECKING:
    from rookery.app import Platform
    from rookery.core.actor import Actor
    from rookery.sessions.store import Row, SessionRows
    from rookery.sessions.writing import Kept

T = TypeVar("T")
LOOK_S = 2.0
UNTOUCHED_S = 6.0
"""After so long a message that nobody has taken up needs a word."""
REPLAYED = 500
NOBODY = "it waits: a server (rookery up) or a worker (rookery worker) takes it up"


class Watch:
    """One person who looks at one session. With `message`, until the turn of that message is over."""

    def __init__(
        self,
        platform: "Platform",
        actor: "Actor",
        session_id: str,
        *,
        message: str | None = None,
        as_json: bool = False,
    ) -> None:
        self._platform = platform
        self._actor = actor
        self._session_id = session_id
        self._message = message
        self._as_json = as_json
        self._lines = Lines(_write, styled=sys.stdout.isatty())
        self._asks: dict[str, str] = {}
        """What waits for an answer: the kind of each ask, the oldest first."""
        self._open_at_first: set[str] = set()
        self._known = 0
        self._run: str | None = None
        self._typed = b""
        self._answers: set[asyncio.Task[None]] = set()
        self.reason: str | None = None
        """How the turn of the message ended."""

    async def follow(self, after: int | None) -> None:
        """Show what happens, from that number on or from the last turn, until the session or the turn ends."""
        row = await self._row()
        self._known = row.event_count
        self._open_at_first = await self._open_asks()
        start = after if after is not None else await self._last_turn(row)
        log = self._platform.calls.facts["sessions"].log
        with self._keyboard():
            async with contextlib.aclosing(log.follow(self._actor.tenant, row.id, start)) as batches:
                await self._show(batches)
        await asyncio.gather(*self._answers, return_exceptions=True)
        self._lines.end_text()

    async def _show(self, batches: "AsyncGenerator[Sequence[Kept]]") -> None:
        quiet_s = 0.0
        coming = asyncio.ensure_future(anext(batches))
        try:
            while True:
                await asyncio.wait([coming], timeout=LOOK_S)
                if not coming.done():
                    quiet_s += LOOK_S
                    if await self._is_over(quiet_s):
                        return
                    continue
                if any(self._tell(event) for event in coming.result()):
                    return
                sys.stdout.flush()
                coming = asyncio.ensure_future(anext(batches))
        finally:
            coming.cancel()
            await asyncio.gather(coming, return_exceptions=True)

    def _tell(self, event: "Kept") -> bool:
        """Show an event; whether it was the last that is wanted."""
        if self._message is not None:
            if event.name == "turn_input" and event.data.get("message_id") == self._message:
                self._run = event.run_id
            if event.run_id != self._run:
                return False
        if self._as_json:
            shown = {"number": event.number, "event": event.name, "data": event.data, "at_ms": event.at_ms}
            click.echo(json.dumps(shown, ensure_ascii=False))
        else:
            self._lines.tell(event)
        self._note_ask(event)
        if self._message is None or event.name != "done":
            return False
        self.reason = str(event.data.get("reason"))
        return True

    def _note_ask(self, event: "Kept") -> None:
        ask_id = str(event.data.get("ask_id"))
        if event.name in ("approval_required", "question_prompt"):
            if event.number > self._known or ask_id in self._open_at_first:
                self._asks[ask_id] = event.name
        elif event.name == "interaction_resolved":
            self._asks.pop(ask_id, None)

    async def _is_over(self, quiet_s: float) -> bool:
        """Whether nothing more can come. A message that nobody takes up is spoken of once."""
        row = await self._row()
        if row.state == "ended":
            self._lines.line("the session has ended")
            return True
        if self._message is None or self._run is not None:
            return False
        message = self._message
        sent = await self._database_read(lambda rows: rows.message(row.id, message))
        if sent is None or sent.state in ("dropped", "lost"):
            raise Conflict("the message was taken back before its turn", hint="send it again if it is wanted")
        if sent.state == "queued" and row.state == "idle" and UNTOUCHED_S <= quiet_s < UNTOUCHED_S + LOOK_S:
            click.echo(NOBODY, err=True)
        return False

    async def _row(self) -> "Row":
        return await self._database_read(lambda rows: rows.of(self._session_id))

    async def _database_read(self, work: "Callable[[SessionRows], T]") -> T:
        from rookery.sessions.store import SessionRows

        actor = self._actor
        return await self._platform.database.read(lambda tx: work(SessionRows(tx, actor.tenant, actor.closed)))

    async def _open_asks(self) -> set[str]:
        parts = await self._platform.calls.read(self._actor, f"session://{self._session_id}")
        return {ask["ask_id"] for ask in json.loads(parts[0].text)["asks"]}

    async def _last_turn(self, row: "Row") -> int:
        """The number before its last turn began, as far as that is not too long ago."""
        from rookery.sessions.writing import kept_last

        kept = await self._platform.database.read(lambda tx: kept_last(tx, row.tenant, row.id, REPLAYED))
        begun = [event.number for event in kept if event.name == "turn_input"] or [event.number for event in kept[:1]]
        return begun[-1] - 1 if begun else 0

    @contextlib.contextmanager
    def _keyboard(self) -> Generator[None]:
        """While this lasts, lines that are typed are answers; where nobody types, nothing is read."""
        if self._as_json or not sys.stdin.isatty():
            yield
            return
        loop, keys = asyncio.get_running_loop(), sys.stdin.fileno()
        loop.add_reader(keys, self._read, keys)
        try:
            yield
        finally:
            loop.remove_reader(keys)

    def _read(self, keys: int) -> None:
        typed = os.read(keys, 65_536)
        if not typed:
            asyncio.get_running_loop().remove_reader(keys)
            return
        *lines, self._typed = (self._typed + typed).split(b"\n")
        for line in lines:
            task = asyncio.create_task(self._answer(line.decode(errors="replace").strip()))
            self._answers.add(task)
            task.add_done_callback(self._answers.discard)

    async def _answer(self, words: str) -> None:
        """Give what was typed to whoever has waited longest."""
        if not words:
            return
        if not self._asks:
            self._lines.line(f"nothing is asked; rookery sessions send {self._session_id} sends a message")
            return
        ask_id, kind = next(iter(self._asks.items()))
        said = decision(words) if kind == "approval_required" else words
        try:
            result = await self._platform.calls.call(self._actor, "answer_ask", {"ask_id": ask_id, "answer": said})
        except Conflict as error:
            self._asks.pop(ask_id, None)
            self._lines.line(f"  {error.message}")
        except RookeryError as error:
            self._lines.line(f"  {error.message}; {error.hint}")
        else:
            self._asks.pop(ask_id, None)
            if result.structured["asks"][0]["put_off"]:
                self._lines.line(f"  it stays open: rookery answer {ask_id[:8]}")


def _write(text: str) -> None:
    click.echo(text, nl=False)


def watch(watching: Watch, after: int | None = None) -> None:
    """Follow until the end, or until Ctrl-C, which is no error."""
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(watching.follow(after))
