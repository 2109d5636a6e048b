"""One message to an agent elsewhere, from its card to its answer."""

import asyncio
import logging
import time
from dataclasses import dataclass

from rookery.core.context import Context
from rookery.core.errors import Conflict, NotFound, RookeryError, ServiceUnavailable, TimedOut
from rookery.domains.a2a import sdk
from rookery.domains.a2a.budget import Open, budget_of, note_waiting, reserve
from rookery.domains.a2a.cards import Json, NoCard, card_of
from rookery.domains.a2a.peer import ASKING, OPEN, Asked, Peer, Told, cut
from rookery.domains.a2a.plain_peer import PlainPeer
from rookery.domains.a2a.trust import check_trust
from rookery.outgoing.agents_client import agents_client

log = logging.getLogger("rookery.a2a")
FIRST_PAUSE_S = 0.2
PAUSE_S = 3.0
"""Between two looks at a task; they begin close to each other, since many answers come soon."""
MOST_FAILED = 5
"""After so many looks in a row that are refused the agent is taken at its word; a host that is away is waited for."""
CANCEL_S = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Invocation:
    """What is asked of the agent at `base`, and within which time."""

    base: str
    text: str
    skill: str | None
    min_trust: str | None
    limit_s: float
    task_id: str | None = None


async def invoke(ctx: Context, wanted: Invocation) -> Told:
    """The answer. Refused are agents that are not trusted enough and sessions that have asked enough already."""
    try:
        card = await card_of(ctx, wanted.base)
    except NoCard as error:
        hint = "is the address right? discover_agent shows what is there"
        raise ServiceUnavailable(f"there is no agent card: {error}", hint=hint) from error
    settings = ctx.platform.facts["settings"]
    # Before trust is looked into, which can cost a lot.
    waiting = await ctx.write(lambda tx: reserve(tx, ctx.actor, wanted.base, budget_of(settings)))
    told = await _talked(ctx, wanted, card, waiting)
    if told.state in ASKING and told.task:
        await _keep_waiting(ctx, wanted.base, {"task": told.task, "context": told.context})
    elif told.state not in ASKING and told.state != "completed":
        raise Conflict(f"the remote agent says {told.state}: {told.text or 'it gives no reason'}")
    ctx.emit_status(f"answer of {card['name']} received")
    return told


async def _talked(ctx: Context, wanted: Invocation, card: Json, waiting: Open) -> Told:
    """What came of it. The task that waits for an answer goes on waiting if none was sent."""
    answered = waiting
    if wanted.task_id and waiting.get("task") != wanted.task_id:
        await _keep_waiting(ctx, wanted.base, waiting)
        answered, waiting = {"task": wanted.task_id}, {}
    asked = Asked(text=wanted.text, skill=wanted.skill, depth=ctx.actor.depth + 1, limit_s=wanted.limit_s, **answered)
    talk = None
    try:
        await check_trust(ctx, wanted.base, wanted.min_trust)
        talk = _Talk(ctx, await _peer(ctx, wanted.base, card), card["name"], wanted.limit_s)
        ctx.emit_status(f"asking {card['name']}")
        return await talk.through(asked)
    except (RookeryError, asyncio.CancelledError) as error:
        # An agent that refuses the answer waits for none any more.
        if (talk is None or not talk.task) and not isinstance(error, Conflict | NotFound):
            await asyncio.shield(_keep_waiting(ctx, wanted.base, waiting))
        raise


async def _keep_waiting(ctx: Context, base: str, open_task: Open) -> None:
    if open_task:
        await ctx.write(lambda tx: note_waiting(tx, ctx.actor, base, open_task))


async def _peer(ctx: Context, base: str, card: Json) -> Peer:
    settings = ctx.platform.facts["settings"]
    if card["wire"] == "plain":
        return PlainPeer(base, agents_client(settings), settings)
    await sdk.load("rookery.domains.a2a.sdk_peer")
    from rookery.domains.a2a.sdk_peer import SdkPeer

    return SdkPeer(card, base, agents_client(settings), settings)


class _Talk:
    """Sends, looks until the task is over, and tells the caller how far it is. Whoever stops it stops the task."""

    def __init__(self, ctx: Context, peer: Peer, name: str, limit_s: float) -> None:
        self._ctx = ctx
        self._peer = peer
        self._name = name
        self._limit_s = limit_s
        self._began = time.monotonic()
        self.task = ""

    @property
    def _spent_s(self) -> float:
        return time.monotonic() - self._began

    async def through(self, asked: Asked) -> Told:
        try:
            async with asyncio.timeout(self._limit_s):
                told = await self._peer.send(asked)
                self.task = told.task
                return await self._until_over(told)
        except TimeoutError:
            await self._cancel()
            raise TimedOut(
                f"the remote agent did not finish within {self._limit_s / 60:g} min", hint="give timeout_minutes"
            ) from None
        except RookeryError as error:
            if not self.task:
                raise
            await self._cancel()
            told = f"{error.message}; its task {cut(self.task, 200)} was given up"
            raise type(error)(told, hint=error.hint) from error
        except asyncio.CancelledError:
            await asyncio.shield(self._cancel())
            raise

    async def _until_over(self, told: Told) -> Told:
        pause_s, failed = FIRST_PAUSE_S, 0
        while told.state in OPEN:
            said = f": {cut(told.text, 200)}" if told.text else ""
            self._ctx.progress(self._spent_s, self._limit_s, f"{self._name} is {told.state}{said}")
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * 1.5, PAUSE_S)
            try:
                told = await self._peer.look(self.task)
                failed = 0
            except RookeryError as error:
                # One look that fails says nothing about the task.
                failed += not error.retryable
                if failed >= MOST_FAILED:
                    raise
                log.info("a task of %s cannot be looked at: %s", self._name, error.message)
        return told

    async def _cancel(self) -> None:
        """Ask the agent to stop; whether it does is its own affair."""
        if not self.task:
            return
        try:
            async with asyncio.timeout(CANCEL_S):
                await self._peer.cancel(self.task)
        except (RookeryError, TimeoutError) as error:
            log.info("a task of %s goes on without us: %s", self._name, error)
