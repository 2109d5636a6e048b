"""The jobs behind answers that come by a channel: one listens to it, the other tells it how an answer went."""

import asyncio
import logging
import time
from dataclasses import dataclass, field
from typing import Any

from rookery.asks.tables import OPEN
from rookery.core.errors import Conflict, NotFound, PermissionDenied, RookeryError, ValidationFailed
from rookery.core.events import Event
from rookery.db.clock import now_ms
from rookery.db.tx import Tx
from rookery.domains.owner.channel_seal import ChannelSeal
from rookery.domains.owner.channel_store import Channels, Row
from rookery.domains.owner.channels import completed, listens
from rookery.domains.owner.delivery_jobs import outgoing
from rookery.domains.owner.notify_tables import SHARED
from rookery.domains.owner.outside_answering import answer_from_outside, events_of, noted, refuse_unread
from rookery.domains.owner.outside_github import GITHUB
from rookery.domains.owner.outside_heard import Heard, Listener, Said
from rookery.domains.owner.outside_store import ATTEMPTS, BACKOFF_S, LISTEN, QUEUE, Listening
from rookery.domains.owner.outside_telegram import TELEGRAM
from rookery.jobs.kinds import Ended, Finish, JobArgs, job
from rookery.jobs.running import Running
from rookery.jobs.store import Jobs

log = logging.getLogger("rookery.owner")
LISTENERS: dict[str, Listener] = {"telegram": TELEGRAM, "github": GITHUB}
TURN_S = 600.0
"""So long one job listens; the next one follows. A turn that many workers died of is then not the last."""
PAUSE_S, LONGEST_PAUSE_S = 2.0, 60.0
AFTER_FAILURE_MS = 60_000


class ListenArgs(JobArgs):
    channel_id: str


class ReplyArgs(JobArgs):
    channel_id: str
    text: str
    back: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Post:
    """A channel as it is to be listened to now."""

    channel_id: str
    channel_type: str
    version_ms: int
    source: str
    cursor: str | None
    config: dict[str, str] = field(repr=False)

    @property
    def listener(self) -> Listener:
        return LISTENERS[self.channel_type]


@job(LISTEN, queue=QUEUE, attempts=ATTEMPTS, backoff_s=BACKOFF_S, lasting=True)
async def listen(job: Running, args: ListenArgs) -> Finish:
    """Take what the owner answers in a channel, until no ask is open there. Only one job listens to a channel."""
    until, pause_s = time.monotonic() + TURN_S, PAUSE_S
    while time.monotonic() < until:
        post = await job.read(lambda tx: _post(tx, job, args.channel_id))
        if post is None:
            break
        try:
            heard = await post.listener.hear(outgoing(job.platform.calls, shared=True), post.config, post.cursor)
        except RookeryError as error:
            log.warning("%s cannot be listened to: %s", post.channel_type, error.message)
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
            continue
        pause_s = PAUSE_S
        await _take(job, post, heard)
        await asyncio.sleep(heard.again_s)
    return lambda tx: _over(tx, job.tenant, args.channel_id)


@listen.ended
def _failed(tx: Tx, end: Ended) -> None:
    _over(tx, end.tenant, end.args.channel_id, delay_ms=AFTER_FAILURE_MS)


def _over(tx: Tx, tenant: str, channel_id: str, *, delay_ms: int = 0) -> None:
    """End the turn; the next one follows while there is a channel to listen to."""
    follows = _alive(Channels(tx, tenant).find(channel_id)) is not None
    Listening(tx, tenant, channel_id).over(follows=follows, delay_ms=delay_ms)


def _alive(channel: Row | None) -> Row | None:
    """The channel, if answers that come by it are the owner's: it is on, and a person set it up for all agents."""
    if channel is None or not channel.enabled or channel.agent_id != SHARED:
        return None
    return channel if channel.channel_type in LISTENERS else None


def _config(tx: Tx, job: Running, channel: Row) -> dict[str, str] | None:
    """The whole config; None if nobody is to be listened to."""
    config = ChannelSeal(tx, job.platform.calls.facts.get("keyring")).config_of(channel)
    return completed(channel.channel_type, config, shared=True) if listens(channel.channel_type, config) else None


def _post(tx: Tx, job: Running, channel_id: str) -> Post | None:
    channel = _alive(Channels(tx, job.tenant).find(channel_id))
    listening = Listening(tx, job.tenant, channel_id)
    config = None if channel is None or not listening.awaited() else _config(tx, job, channel)
    if channel is None or config is None:
        return None
    listener = LISTENERS[channel.channel_type]
    source, known = listener.source(config), listening.row()
    cursor = known.cursor if known is not None and known.source == source else None
    lasts_ms = listener.cursor_lasts_ms
    if known is not None and lasts_ms is not None and now_ms(tx) - (known.heard_ms or 0) > lasts_ms:
        cursor = None
    return Post(channel_id, channel.channel_type, channel.updated_ms, source, cursor, config)


async def _take(job: Running, post: Post, heard: Heard) -> None:
    """Take each answer in a transaction of its own, with how far was read: none is taken twice."""
    for said in heard.said:

        def take(tx: Tx, said: Said = said) -> list[Event] | None:
            return _answered(tx, job.tenant, post, said)

        events = await job.write(take)
        if events is None:
            return
        for event in events:
            job.platform.calls.events.publish(event)
    if heard.cursor is not None and heard.cursor != post.cursor:
        cursor = heard.cursor
        await job.write(lambda tx: Listening(tx, job.tenant, post.channel_id).read_to(post.source, cursor))


def _answered(tx: Tx, tenant: str, post: Post, said: Said) -> list[Event] | None:
    """What other domains are to hear; None if the channel is no longer what was listened to, and is to be read anew."""
    channel = _alive(Channels(tx, tenant).find(post.channel_id))
    if channel is None or channel.updated_ms != post.version_ms:
        return None
    listening = Listening(tx, tenant, post.channel_id)
    listening.read_to(post.source, said.cursor)
    ask_id = listening.ask_of(said.ref) if said.ref is not None else said.ask_id
    if ask_id is None:
        return []
    events: list[Event] = []
    back = dict(said.back)
    try:
        with tx.savepoint():
            if not said.named:
                refuse_unread(tx, tenant, ask_id, said.text, post.listener.fit)
            row = answer_from_outside(tx, tenant, ask_id, said.text, post.channel_type)
        events, told = events_of([row]), noted(row)
        back["settled"] = row.status != OPEN
    except (Conflict, NotFound, PermissionDenied, ValidationFailed) as error:
        told = f"This was not taken: {error.message}." + (f" ({error.hint})" if error.hint else "")
    args = ReplyArgs(channel_id=post.channel_id, text=told, back=back)
    Jobs(tx, tenant).defer(reply, args, lock=f"reply:{post.channel_id}")
    return events


@job("owner.reply", queue=QUEUE, attempts=3, backoff_s=5.0, timeout_s=60.0)
async def reply(job: Running, args: ReplyArgs) -> Finish:
    """Tell a channel how an answer went."""

    def look(tx: Tx) -> tuple[Listener, dict[str, str]] | None:
        channel = _alive(Channels(tx, job.tenant).find(args.channel_id))
        config = None if channel is None else _config(tx, job, channel)
        return None if channel is None or config is None else (LISTENERS[channel.channel_type], config)

    found = await job.read(look)
    if found is not None:
        listener, config = found
        await listener.reply(outgoing(job.platform.calls, shared=True), config, args.text, args.back)
    return None
