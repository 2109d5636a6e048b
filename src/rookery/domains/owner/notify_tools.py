"""Tools with which the owner is told something, and with which the channels for that are set up."""

import asyncio
import contextlib
import time
from collections.abc import Sequence
from typing import Annotated, Any, cast

from pydantic import AfterValidator, ConfigDict, Field, WithJsonSchema

from rookery.core.actor import Actor
from rookery.core.context import Context
from rookery.core.errors import NotFound, PermissionDenied, ValidationFailed
from rookery.core.tool import ToolInput, ToolOutput, tool
from rookery.db.database import Database
from rookery.db.tx import Tx
from rookery.domains.owner.channel_store import Channels, Row
from rookery.domains.owner.channels import check_places, completed, kind_of, read_config, warning_of
from rookery.domains.owner.delivery_jobs import defer_deliveries, deliver, deliver_ask, outgoing
from rookery.domains.owner.delivery_store import Deliveries, wake_name
from rookery.domains.owner.notify_forgetting import forget_notifications
from rookery.domains.owner.notify_store import NewNotification, Notifications
from rookery.domains.owner.notify_tables import SHARED
from rookery.domains.owner.notify_waiting import listening
from rookery.domains.owner.outside_jobs import listen, reply
from rookery.domains.owner.outside_store import Listening, listen_to
from rookery.identity.store import IdentityStore

__all__ = [
    "configure_notifications",
    "deliver",
    "deliver_ask",
    "forget_notifications",
    "list_notifications",
    "listen",
    "notify_owner",
    "reply",
]

MAX_MESSAGE = 8000
MAX_TITLE = 200
MAX_LISTED = 100
WAIT_S = 2.0
LOOK_S = 0.5
"""However deaf we are, a delivery is seen after so long."""
LEVELS = ("info", "warning", "success", "error")
ACTIONS = ("list", "set", "enable", "disable", "remove")


def _said(text: str) -> str:
    if not text.strip() or len(text) > MAX_MESSAGE:
        raise ValueError(f"must have 1 to {MAX_MESSAGE} characters")
    return text.strip()


def _titled(text: str) -> str:
    if len(text) > MAX_TITLE:
        raise ValueError(f"must have at most {MAX_TITLE} characters")
    return " ".join(text.split())


def _few(number: int) -> int:
    if not 1 <= number <= MAX_LISTED:
        raise ValueError(f"must be from 1 to {MAX_LISTED}")
    return number


def _level(text: str) -> str:
    if text not in LEVELS:
        raise ValueError(f"must be one of {', '.join(LEVELS)}")
    return text


def _action(text: str) -> str:
    if text not in ACTIONS:
        raise ValueError(f"must be one of {', '.join(ACTIONS)}")
    return text


# Validators rather than limits that every agent would read in the schema.
Level = Annotated[str, AfterValidator(_level)]


class NotifyOwner(ToolInput):
    message: Annotated[str, AfterValidator(_said)] = Field(description="Text")
    title: Annotated[str, AfterValidator(_titled)] | None = Field(None, description="Title")
    level: Level | None = Field(None, description="info, warning, success, error")


class Notified(ToolOutput):
    """The `id`, and which channels have it (`sent`), may get it yet (`pending`) and will not (`failed`)."""

    model_config = ConfigDict(extra="allow")


class ConfigureNotifications(ToolInput):
    secrets = frozenset({"config"})

    action: Annotated[str, AfterValidator(_action)] = Field(description="list, set, enable, disable, remove")
    channel_type: str | None = Field(None, description="Like slack")
    config: Annotated[dict[str, Any], WithJsonSchema({"type": "object"})] | None = Field(None, description="To set")
    enabled: bool | None = Field(None, description="On")


class ChannelList(ToolOutput):
    """The `channels`, of whose configs only the keys are told, and a `warning` if one of them is unsafe."""

    model_config = ConfigDict(extra="allow")


class ListNotifications(ToolInput):
    level: Level | None = Field(None, description="One of four")
    limit: Annotated[int, AfterValidator(_few)] | None = Field(None, description="Up to 100")


class NotificationList(ToolOutput):
    notifications: list[dict[str, Any]]


@tool(
    title="Notify owner", effect="external", action="owner:notify", tier="act", group="Write", profiles="",
    default=True, rate_per_minute=30,
)  # fmt: skip
async def notify_owner(ctx: Context, args: NotifyOwner) -> Notified:
    """Use it to tell the owner what needs no answer. Returns which channels have it."""
    actor = ctx.actor
    agent_id = _whose(actor)
    new = NewNotification(
        agent_id=agent_id,
        sender=_name_of(actor),
        session_id=actor.session,
        title=args.title or "",
        message=args.message,
        level=args.level or "info",
    )

    def keep(tx: Tx) -> tuple[str, bool]:
        told_id, is_new = Notifications(tx, actor.tenant).tell(new)
        if is_new:
            defer_deliveries(tx, actor.tenant, "notification", told_id, agent_id)
        return told_id, is_new

    told_id, is_new = await ctx.write(keep)
    if is_new:
        ctx.publish("OwnerNotified", subject=told_id, agent=agent_id, level=new.level)
    by_status: dict[str, list[str]] = {"sent": [], "pending": [], "failed": []}
    for row in await _told(ctx, told_id):
        by_status[row.status].append(row.channel_type)
    again = {} if is_new else {"duplicate": True}
    return Notified.model_validate({"id": told_id, **again, **by_status})


async def _told(ctx: Context, told_id: str) -> Sequence[Row]:
    """The deliveries, after a moment in which most channels take what they are given."""
    until = time.monotonic() + min(WAIT_S, ctx.remaining_s / 2)
    with listening(cast(Database, ctx.platform.database), wake_name(told_id)) as called:
        while True:
            called.clear()
            rows = await ctx.read(lambda tx: Deliveries(tx, ctx.actor.tenant).of(told_id))
            left_s = until - time.monotonic()
            if left_s <= 0 or all(row.status != "pending" or row.error for row in rows):
                return rows
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(LOOK_S, left_s)):
                    await called.wait()


@tool(
    title="Configure notifications", effect="external", action="owner:configure", tier="act", group="Write",
    profiles="", default=True,
)  # fmt: skip
async def configure_notifications(ctx: Context, args: ConfigureNotifications) -> ChannelList:
    """Use it to set how you reach the owner. Returns only config keys."""
    actor = ctx.actor
    agent_id = _whose(actor)
    if args.action == "list":
        return await ctx.read(lambda tx: _listed(all_shown(tx, actor)))
    if args.channel_type is None:
        raise ValidationFailed("channel_type is missing", hint="say which channel is meant")
    of_agent, slash, channel_type = args.channel_type.strip().lower().rpartition("/")
    kind_of(channel_type)
    if args.action != "set":
        return await ctx.write(lambda tx: _changed(tx, actor, args.action, of_agent, channel_type))
    if slash:
        raise ValidationFailed("an agent sets its own channels up", hint="leave the agent's name out")
    shared = agent_id == SHARED
    _refuse_unless_owner(actor, shared=shared)
    config = read_config(channel_type, args.config or {}, shared=shared)
    client, whole = outgoing(ctx.platform, shared=shared), completed(channel_type, config, shared=shared)
    await check_places(client, channel_type, whole)
    warning = await warning_of(client, channel_type, whole) if shared else ""
    keyring = ctx.platform.facts.get("keyring")
    on = args.enabled is not False

    def keep(tx: Tx) -> ChannelList:
        row = Channels(tx, actor.tenant).set(agent_id, channel_type, config, enabled=on, keyring=keyring)
        _listen_again(tx, row)
        return _listed([_shown(row)], warning)

    return await ctx.write(keep)


def _listed(channels: list[dict[str, Any]], warning: str = "") -> ChannelList:
    return ChannelList.model_validate({"channels": channels, **({"warning": warning} if warning else {})})


def _changed(tx: Tx, actor: Actor, action: str, of_agent: str, channel_type: str) -> ChannelList:
    """Turn a channel on or off, or remove it: one's own or, for people, also that of the agent they name."""
    channels, agent_id = Channels(tx, actor.tenant), _whose(actor)
    if of_agent:
        if actor.kind != "human":
            raise NotFound(f"the channel {channel_type} is not set up", hint="action list shows yours")
        agent_id = IdentityStore(tx, actor.tenant).agent(of_agent).id
    _refuse_unless_owner(actor, shared=agent_id == SHARED)
    if action == "remove":
        channels.remove(agent_id, channel_type)
        return _listed(all_shown(tx, actor))
    row = channels.switch(agent_id, channel_type, enabled=action == "enable")
    _listen_again(tx, row)
    return _listed([_shown(row)])


def _refuse_unless_owner(actor: Actor, *, shared: bool) -> None:
    """Answers that come by shared channels are the owner's, so nobody else says which these are."""
    if shared and (actor.role != "owner" or actor.scheduler or actor.unattended):
        raise PermissionDenied(
            "channels of all agents are set up by the owner, in person", hint="leave it to them", layer="principal"
        )


def _listen_again(tx: Tx, row: Row) -> None:
    """Whoever listened may have gone while the channel was off."""
    if row.enabled and row.agent_id == SHARED and Listening(tx, row.tenant, row.id).awaited():
        listen_to(tx, row.tenant, row.id)


def all_shown(tx: Tx, actor: Actor) -> list[dict[str, Any]]:
    """For an agent what reaches the owner for it; for people everything, with the agents that have it."""
    channels = Channels(tx, actor.tenant)
    if actor.kind != "human":
        return [_shown(row) for row in channels.reaching(_whose(actor))]
    names = {row.id: row.name for row in IdentityStore(tx, actor.tenant).agents()}
    return [_shown(row, names.get(row.agent_id)) for row in channels.everybody()]


def _shown(row: Row, agent: str | None = None) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "channel_type": row.channel_type,
        "enabled": bool(row.enabled),
        "keys": list(row.config_keys),
    }
    if row.agent_id == SHARED:
        shown["shared"] = True
    return shown | ({"agent": agent} if agent else {})


@tool(
    title="List notifications", effect="read", action="owner:read", tier="observe", group="Read", profiles="",
    default=False, principals="people",
)  # fmt: skip
def list_notifications(ctx: Context, args: ListNotifications) -> NotificationList:
    """Use it to read what agents told you. Returns up to 100."""
    store = Notifications(ctx.tx, ctx.actor.tenant)
    rows = store.newest(args.limit or 20, args.level)
    by_id = store.deliveries([row.id for row in rows])
    return NotificationList(notifications=[_told_shown(row, by_id[row.id]) for row in rows])


def _told_shown(row: Row, deliveries: Sequence[Row]) -> dict[str, Any]:
    return {
        "id": row.id,
        "from": row.sender,
        "level": row.level,
        "title": row.title,
        "message": row.message,
        "created_ms": row.created_ms,
        "deliveries": [
            {
                "channel_type": each.channel_type,
                "status": each.status,
                "attempts": each.attempts,
                "external_ref": each.external_ref,
                "error": each.error,
            }
            for each in deliveries
        ],
    }


def _whose(actor: Actor) -> str:
    """Whose channels an actor has: an agent its own, people those that all agents share."""
    if actor.kind == "human":
        return SHARED
    if actor.agent is None:
        raise PermissionDenied(
            "the owner is told by agents of this installation, and this caller is none",
            hint="ask one of them",
            layer="principal",
        )
    return actor.agent


def _name_of(actor: Actor) -> str:
    return actor.agent_name or actor.role or actor.subject
