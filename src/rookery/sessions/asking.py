"""Whom an agent asks while it works: whether it may use a tool, and what its person wants to say.

What is asked is an ask like any other, so it can be answered from everywhere, the first answer counts, and it outlives
the process. What waits here ends with the turn.
"""

import asyncio
import json
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from rookery.asks.answering import read_decision
from rookery.asks.approvals import ATTENDED_MS, UNATTENDED_MS, Approvals, Ticket, Wanted
from rookery.asks.cards import printable
from rookery.asks.store import Asks, NewAsk, Row, asker_of, digest_of
from rookery.asks.tables import ANSWERED, OPEN, WITHDRAWN
from rookery.asks.waiting import until_settled
from rookery.core.actor import Actor
from rookery.core.call import Calls
from rookery.core.decide import decide
from rookery.core.errors import ApprovalRequired, InvalidParams, RookeryError
from rookery.core.events import Event
from rookery.core.gate import without_token
from rookery.db.database import Database
from rookery.db.tx import Tx
from rookery.sessions.approving import ForeignUse, foreign_subject, wanted_of_ours
from rookery.sessions.events import EventName
from rookery.sessions.foreign_tools import Ground, is_free, our_tool, outside_worktree
from rookery.sessions.patience import Patience
from rookery.sessions.port import Asked, Permission, ToolUse
from rookery.sessions.redaction import hides, shown_input

T = TypeVar("T")
log = logging.getLogger("rookery.sessions")
ANSWERED_JOB = "sessions.answered"
PARKED_MS = 600_000
"""After so long nobody is expected to look any more; it stays open, and can still be answered."""
MOST_LETTERS = 4_000
MOST_OPTIONS = MOST_QUESTIONS = 20
TRIES = 5
LET_GO_S = 5.0
_NO_TURN = "no turn of this session is under way"
_TAKEN_BACK = "it was taken back"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """The turn for which an agent asks."""

    run_id: str
    message_id: str | None
    patience: Patience
    put: Callable[[EventName, Mapping[str, Any]], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asker:
    """The session whose agent asks. `now` is its agent with the rights and the mode of this moment."""

    tenant: str
    session_id: str
    folder: str | None
    unattended: bool
    now: Callable[[], Awaitable[Actor]]
    listed: frozenset[str] = frozenset()


class Interactions:
    """The host of one agent. It lives as long as the agent; without a `stage` everything is refused."""

    def __init__(self, calls: Calls, database: Database, asker: Asker) -> None:
        self.stage: Stage | None = None
        self._calls = calls
        self._database = database
        self._asker = asker
        self._ground = Ground(asker.folder, calls.facts.get("home"))
        self._underway: set[asyncio.Task[Any]] = set()
        self._alike: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._waiting: Counter[str] = Counter()
        self._stay_open = False

    async def let_go(self, *, stay_open: bool = False) -> None:
        """Let everything be refused that waits. What is asked is taken back, unless it is to `stay_open`."""
        self.stage = None
        self._stay_open = stay_open
        waiting = list(self._underway)
        for task in waiting:
            task.cancel()
        if waiting:
            await asyncio.wait(waiting, timeout=LET_GO_S)

    async def may_use(self, use: ToolUse) -> Permission:
        """A person's decision, or that of the session's mode."""
        stage = self.stage
        if stage is None:
            return Permission(False, _NO_TURN)
        try:
            decided = await self._until_let_go(self._decided_each(stage, use))
        except RookeryError as error:
            return Permission(False, error.message)
        return decided or Permission(False, "the turn has ended")

    async def answers(self, call_id: str, questions: Sequence[Asked]) -> Sequence[str] | None:
        """An answer to each question, in order; None if nobody will answer."""
        stage = self.stage
        if stage is None or not 0 < len(questions) <= MOST_QUESTIONS:
            return None
        try:
            return await self._until_let_go(self._answered(stage, call_id, questions))
        except RookeryError as error:
            log.warning("what the agent of %s asks cannot be put to anybody: %s", self._asker.session_id, error.message)
            return None

    async def _until_let_go(self, work: Coroutine[Any, Any, T]) -> T | None:
        """What comes of it; None if the turn ended first."""
        task = asyncio.create_task(work)
        self._underway.add(task)
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError:
            task.cancel()
            await asyncio.wait([task])
            raise
        finally:
            self._underway.discard(task)
        return None if task.cancelled() else task.result()

    async def _decided_each(self, stage: Stage, use: ToolUse) -> Permission:
        """Of several equal uses at the same time one after the other: a yes is used up before the next is asked for."""
        words = json.dumps([use.tool, dict(use.input)], sort_keys=True, default=str)
        async with self._alike.setdefault(words, asyncio.Lock()):
            name = our_tool(use.tool)
            return await (self._others(stage, use) if name is None else self._ours(stage, use, name))

    async def _others(self, stage: Stage, use: ToolUse) -> Permission:
        asker, ground = self._asker, self._ground
        subject = foreign_subject(self._calls.registry, use.tool)
        foreign = ForeignUse(use=use, subject=subject, session=asker.session_id, ground=ground)
        for _ in range(TRIES):
            # Rights may change while it waits, so whoever it is now is looked at each time.
            actor = self._held(await asker.now())
            if actor.paused and not is_free(use.tool, use.input, "ask", ground):
                return Permission(False, actor.paused)
            if (outside := outside_worktree(use.tool, use.input, actor.worktree)) is not None:
                return Permission(False, outside)
            free = is_free(use.tool, use.input, actor.mode, ground, asker.listed)
            if free or foreign.lasting_right(actor) in actor.unasked:
                return Permission(True)
            ticket = await self._ask(foreign.wanted(actor, self._follow(stage)))
            decided = await self._decision(stage, use, ticket)
            if decided is None or not decided.allow:
                return decided or Permission(False, _TAKEN_BACK)
            try:
                await self._database.change(lambda tx, ticket=ticket: Approvals(tx, asker.tenant).use(ticket))
                paused = (await asker.now()).paused
                return Permission(False, paused) if paused else decided
            except ApprovalRequired:
                continue
        return Permission(False, "rights were changed again and again while it waited")

    async def _ours(self, stage: Stage, use: ToolUse, name: str) -> Permission:
        """The call itself is decided again when it comes: what is approved here is approved there."""
        actor = await self._asker.now()
        tool = self._calls.registry.get(name)
        if tool is None:
            return Permission(False, f"there is no tool {name}")
        decision = decide(actor, tool)
        if decision.outcome != "ask":
            return Permission(decision.outcome == "allow", "" if decision.outcome == "allow" else decision.reason)
        given, token = without_token(tool, dict(use.input))
        if token is not None:
            return Permission(True)
        try:
            wanted = wanted_of_ours(self._held(actor), tool, given, self._follow(stage))
        except InvalidParams:
            # The call says what is wrong with it.
            return Permission(True)
        for _ in range(TRIES):
            decided = await self._decision(stage, use, await self._ask(wanted))
            if decided is not None:
                return decided
        return Permission(False, _TAKEN_BACK)

    def _held(self, actor: Actor) -> Actor:
        asker = self._asker
        return replace(actor, session=asker.session_id, unattended=actor.unattended or asker.unattended)

    def _follow(self, stage: Stage) -> dict[str, Any]:
        args = {"session_id": self._asker.session_id, "run_id": stage.run_id, "message_id": stage.message_id}
        return {"job": ANSWERED_JOB, "args": args, "queue": "default"}

    async def _ask(self, wanted: Wanted) -> Ticket:
        ticket = await self._database.change(lambda tx: Approvals(tx, self._asker.tenant).ask(wanted, None))
        if ticket.token is not None:
            self._tell(ticket.ask)
        return ticket

    async def _decision(self, stage: Stage, use: ToolUse, ticket: Ticket) -> Permission | None:
        """What was decided; None if another session had asked for it, and does not want it any more."""
        ask = ticket.ask
        if ask.status == OPEN:
            stage.put("approval_required", {**prompt_of(ask, use.call_id, self._limit_ms), **self._shown(use, ask)})
            ask = await self._settled(stage, use.call_id, ask)
            if self._was_anothers(ask):
                return None
        if ask.status == ANSWERED:
            await self._told(ask)
            decision = read_decision(ask.answer["text"])
            if decision.verdict == "yes":
                return Permission(True)
            why = f": {decision.reason}" if decision.reason else ""
            return Permission(False, f"{ask.answered_by} denied it{why}")
        return Permission(False, "it was dismissed" if ask.status == WITHDRAWN else "nobody decided in time")

    def _shown(self, use: ToolUse, ask: Row) -> dict[str, Any]:
        registry = self._calls.registry
        # What a runtime says of a call may repeat its secrets.
        title, reason = ("", "") if hides(registry, use.tool) else (use.title, use.reason)
        shown = {"tool": use.tool, "input": shown_input(registry, use.tool, use.input)}
        return {**shown, "title": title or ask.question, "reason": reason}

    def _was_anothers(self, ask: Row) -> bool:
        """Whether it ended for another session alone: taken back by it, or over since nobody attends that one."""
        if ask.session == self._asker.session_id:
            return False
        if ask.status == WITHDRAWN:
            return ask.answered_by is None
        hurried = ask.expires_ms - ask.created_ms < self._limit_ms
        return ask.status != ANSWERED and hurried and ask.expires_ms <= time.time_ns() // 1_000_000

    async def _answered(self, stage: Stage, call_id: str, questions: Sequence[Asked]) -> Sequence[str] | None:
        actor = await self._asker.now()
        opened = await self._database.change(lambda tx: self._open(tx, stage, actor, questions))
        for index, (ask, is_new) in enumerate(opened):
            if is_new:
                self._tell(ask)
            if ask.status == OPEN:
                asked = {"index": index, "of": len(questions), "questions": [_shown(questions[index])]}
                stage.put("question_prompt", {**prompt_of(ask, call_id, self._limit_ms), **asked})
        settled = await _all_of([self._answer(stage, call_id, ask) for ask, _ in opened])
        if any(row.status != ANSWERED for row in settled):
            return None
        return [row.answer["text"] for row in settled]

    def _open(self, tx: Tx, stage: Stage, actor: Actor, questions: Sequence[Asked]) -> list[tuple[Row, bool]]:
        asker = self._asker
        store = Asks(tx, asker.tenant)
        opened: list[tuple[Row, bool]] = []
        for index, asked in enumerate(questions):
            options = [_fit(choice.label) for choice in asked.options[:MOST_OPTIONS]]
            told = [f"{choice.label}: {choice.description}" for choice in asked.options if choice.description]
            several = ["Several may be chosen, with commas between them."] if asked.several else []
            new = NewAsk(
                kind="question",
                agent_id=asker_of(actor),
                question=_fit(asked.question) or "?",
                options=options,
                context=_fit("\n".join([*([asked.header] if asked.header else []), *told, *several])),
                project_id=actor.project,
                session=asker.session_id,
                key=digest_of("session question", asker.session_id, index, asked.question, options),
                open_for_ms=self._limit_ms,
                follow=self._follow(stage),
                once=True,
            )
            opened.append(store.open(new))
        return opened

    async def _answer(self, stage: Stage, call_id: str, ask: Row) -> Row:
        row = ask if ask.status != OPEN else await self._settled(stage, call_id, ask)
        if row.status == ANSWERED:
            await self._told(row)
        return row

    @property
    def _limit_ms(self) -> int:
        return UNATTENDED_MS if self._asker.unattended else ATTENDED_MS

    async def _settled(self, stage: Stage, call_id: str, ask: Row) -> Row:
        """The ask once it is decided or its time is over; everybody who follows the session is told."""
        left_ms = min(ask.expires_ms - time.time_ns() // 1_000_000, self._limit_ms)
        self._waiting[ask.id] += 1
        try:
            async with stage.patience.waiting():
                row = await until_settled(self._database, self._asker.tenant, ask.id, max(left_ms, 0) / 1000)
            if row.status == OPEN:
                await self._withdraw(ask)
        except asyncio.CancelledError:
            if not self._stay_open:
                stage.put("interaction_resolved", _resolved(ask, call_id, "cancelled", "the turn has ended"))
                await asyncio.shield(asyncio.ensure_future(self._withdraw(ask)))
            raise
        finally:
            self._waiting[ask.id] -= 1
            if not self._waiting[ask.id]:
                del self._waiting[ask.id]
        stage.put("interaction_resolved", resolved_of(row, call_id))
        return row

    async def _withdraw(self, ask: Row) -> None:
        """Take an ask back, unless it is another session's or something else here waits for it too."""
        if ask.session != self._asker.session_id or self._waiting[ask.id] > 1:
            return
        try:
            await self._database.change(lambda tx: Asks(tx, self._asker.tenant).withdraw(ask.id))
        except RookeryError as error:
            # It ends by itself when its time is over.
            log.warning("the ask %s could not be taken back: %s", ask.id, error.message)

    async def _told(self, ask: Row) -> None:
        """Note that the agent has the answer, so that nobody brings it again."""
        try:
            await self._database.change(lambda tx: Asks(tx, self._asker.tenant).tell(ask.id))
        except RookeryError as error:
            log.warning("the answer to %s is not noted as told: %s", ask.id, error.message)

    def _tell(self, ask: Row) -> None:
        told = {"kind": ask.kind, "agent": ask.agent_id, "question": ask.question, "hosted": True}
        self._calls.events.publish(Event(name="AskOpened", tenant=ask.tenant, subject=ask.id, payload=told))


def prompt_of(ask: Row, call_id: str, limit_ms: int = ATTENDED_MS) -> dict[str, Any]:
    """What whoever shows an ask has to know of it."""
    timeout_ms = min(ask.expires_ms - ask.created_ms, limit_ms)
    return {
        "ask_id": ask.id,
        "call_id": call_id,
        "timeout_ms": timeout_ms,
        "parked_after_ms": min(PARKED_MS, timeout_ms),
        "started_ms": ask.created_ms,
    }


def resolved_of(row: Row, call_id: str) -> dict[str, Any]:
    """What became of an ask that is over, or for which nobody waits any more."""
    if row.status == ANSWERED and row.kind == "approval":
        decision = read_decision(row.answer["text"])
        return _resolved(row, call_id, "approved" if decision.verdict == "yes" else "denied", decision.reason)
    if row.status == ANSWERED:
        return _resolved(row, call_id, "answered", row.answer["text"])
    if row.status == WITHDRAWN:
        return _resolved(row, call_id, "cancelled", "dismissed")
    return _resolved(row, call_id, "expired", "nobody answered in time")


def _resolved(ask: Row, call_id: str, how: str, reason: str) -> dict[str, Any]:
    return {"ask_id": ask.id, "call_id": call_id, "how": how, "reason": reason}


def _shown(asked: Asked) -> dict[str, Any]:
    options = [{"label": choice.label, "description": choice.description} for choice in asked.options]
    return {"question": asked.question, "header": asked.header, "options": options, "multi_select": asked.several}


def _fit(text: str) -> str:
    return printable(text.strip())[:MOST_LETTERS]


async def _all_of(waits: Sequence[Coroutine[Any, Any, Row]]) -> list[Row]:
    """What each gives. Whatever ends the one ends the others, and nothing goes on behind it."""
    tasks = [asyncio.create_task(each) for each in waits]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
