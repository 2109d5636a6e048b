"""Taking a task in: who may send one, which agent does it, and what its session is held to."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from rookery.core.actor import Actor
from rookery.core.admission import refuse_unless_allowed, storable
from rookery.core.call import Calls, new_call
from rookery.core.context import SilentDoor
from rookery.core.errors import Conflict, InvalidParams, NotFound, PermissionDenied, RateLimited, ServiceUnavailable
from rookery.core.ids import new_id
from rookery.core.record import Record
from rookery.core.recording import to_record
from rookery.core.registry import Registry
from rookery.db.database import Database
from rookery.db.tx import Tx
from rookery.domains.a2a.budget import hold
from rookery.domains.a2a.jobs import defer_task, task_key
from rookery.domains.a2a.store import OPEN, NewTask, Row, Tasks, looks_overdue
from rookery.identity.binding import handed_on
from rookery.identity.reach import reach_of
from rookery.identity.store import DEFAULT_AGENT, IdentityStore
from rookery.jobs.store import Jobs
from rookery.settings import Settings

RIGHT = "send_message"
"""Whoever may have agents answer messages may have them do tasks: it is the same thing by another door."""
LIMIT_S = 30.0
MAX_DEPTH = 3
MAX_MESSAGE = 50_000
MAX_NAME = 200
MAX_OPEN = 10
"""So many tasks of one sender wait or are worked at; those of others, and our own work, need places too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Incoming:
    """A task as it came, on whatever wire. `agent` is the one that is to do it, if one was named."""

    text: str
    agent: str | None = None
    message_id: str = ""
    context_id: str = ""
    skill: str | None = None
    depth: int | None = None
    limit_ms: int | None = None


def about(metadata: Mapping[str, Any]) -> tuple[int | None, str | None]:
    """The depth and the skill of what was sent along; InvalidParams if they make no sense."""
    depth, skill = metadata.get("depth"), metadata.get("skill")
    if isinstance(depth, float) and depth.is_integer():
        depth = int(depth)
    if depth is not None and (isinstance(depth, bool) or not isinstance(depth, int)):
        raise InvalidParams("depth: must be a whole number", hint="leave it out")
    if skill is not None and (not isinstance(skill, str) or not skill.isprintable() or len(skill) > MAX_NAME):
        raise InvalidParams("skill: must be the id of a skill", hint="the card lists them")
    return depth, skill or None


def sender_of(actor: Actor) -> str:
    """Whose a task is: several servers may have tokens of one agent, and are none of each other's business."""
    return f"{actor.subject}/{actor.auth.client}"


async def take_in(calls: Calls, actor: Actor, incoming: Incoming) -> Row:
    """`submit` as a transaction of its own. Who sent what is recorded, also if it is refused."""
    said = {"message": incoming.text, "message_id": incoming.message_id}
    return await calls.database.write(
        lambda tx: submit(tx, calls, actor, incoming),
        records=_records(calls, actor, "a2a:send", said),
        timeout_s=LIMIT_S,
    )


async def give_up(calls: Calls, actor: Actor, task_id: str) -> Row:
    """`cancel` in the same way."""
    return await calls.database.write(
        lambda tx: cancel(tx, actor, task_id),
        records=_records(calls, actor, "a2a:cancel", {"task_id": task_id}),
        timeout_s=LIMIT_S,
    )


def _records(
    calls: Calls, actor: Actor, name: str, said: dict[str, Any]
) -> Callable[[BaseException | None], list[Record]]:
    """What the audit log is told: as of a tool of that name, which is none."""
    stood_for = replace(calls.registry.require(RIGHT), name=name, effect="write")
    call = new_call(actor, stood_for, said, SilentDoor(), None, None)
    return lambda error: [to_record(call, error)]


def submit(tx: Tx, calls: Calls, actor: Actor, incoming: Incoming) -> Row:
    """The task, which a worker will do. The same message of the same sender is the same task."""
    _check(calls.registry, actor, incoming)
    settings: Settings = calls.facts["settings"]
    store = Tasks(tx, actor.tenant)
    sender = sender_of(actor)
    hold(tx, actor.tenant, f"from:{sender}")
    twin = store.twin(sender, incoming.message_id) if incoming.message_id else None
    if twin is not None:
        if twin.content != incoming.text or incoming.agent not in (None, twin.agent_id, twin.agent_name):
            raise InvalidParams("the message id is that of another message", hint="give each message its own")
        return twin
    wait_ms = store.wait_ms(sender, settings.a2a_inbound_rate_limit_per_min)
    if wait_ms:
        told = f"at most {settings.a2a_inbound_rate_limit_per_min} tasks a minute are taken"
        raise RateLimited(told, hint=f"try again in {-(-wait_ms // 1000)} s")
    store.expire_all(sender)
    if store.open_of(sender) >= MAX_OPEN:
        raise RateLimited(f"{MAX_OPEN} tasks are not done yet", hint="wait for one of them, or cancel it")
    row = store.add(_new(tx, store, calls, actor, incoming), settings.message_keep_days)
    defer_task(tx, row)
    return row


def find(tx: Tx, actor: Actor, task_id: str) -> Row:
    """The sender's own task; NotFound otherwise."""
    row = Tasks(tx, actor.tenant).of(task_id, sender_of(actor)) if storable(task_id) else None
    if row is None:
        raise NotFound("there is no such task", hint="only its sender sees a task")
    return row


async def current(database: Database, row: Row) -> Row:
    """The task as it is: one whose time is over has failed, even if no worker ever comes to say so."""
    if not looks_overdue(row):
        return row
    return await database.change(lambda tx: Tasks(tx, row.tenant).expire(row.id)) or row


async def settle_overdue(database: Database, actor: Actor) -> None:
    """The same for all tasks of a sender. Costs a read if there is nothing to be done."""
    sender = sender_of(actor)
    if await database.read(lambda tx: Tasks(tx, actor.tenant).has_overdue(sender), timeout_s=LIMIT_S):
        await database.change(lambda tx: Tasks(tx, actor.tenant).expire_all(sender))


def cancel(tx: Tx, actor: Actor, task_id: str) -> Row:
    """The task, which is not done any more; Conflict if it is over."""
    row = find(tx, actor, task_id)
    store = Tasks(tx, actor.tenant)
    # Before the task: the job that is over takes the two in this order as well.
    if row.state in OPEN:
        Jobs(tx, actor.tenant).cancel_key(task_key(task_id), "cancelled by its sender")
    ended = store.end(task_id, "canceled")
    if ended is None:
        raise Conflict(f"the task is {find(tx, actor, task_id).state}")
    return ended


def _check(registry: Registry, actor: Actor, incoming: Incoming) -> None:
    refuse_unless_allowed(actor, registry.require(RIGHT))
    if not incoming.text.strip() or len(incoming.text) > MAX_MESSAGE:
        raise InvalidParams(f"the message must have text, at most {MAX_MESSAGE} characters", hint="send text parts")
    for text in (incoming.text, incoming.message_id, incoming.context_id):
        if not storable(text):
            raise InvalidParams("a text contains a NUL character or half of a surrogate pair")
    if max(len(incoming.message_id), len(incoming.context_id)) > MAX_NAME:
        raise InvalidParams(f"an id has more than {MAX_NAME} characters")
    if incoming.depth is not None and incoming.depth > MAX_DEPTH:
        raise PermissionDenied(
            f"invocation depth {incoming.depth} exceeds maximum of {MAX_DEPTH}", hint="answer without asking on"
        )


def _new(tx: Tx, store: Tasks, calls: Calls, actor: Actor, incoming: Incoming) -> NewTask:
    identity = IdentityStore(tx, actor.tenant)
    settings: Settings = calls.facts["settings"]
    try:
        agent = identity.agent(incoming.agent or settings.a2a_agent or DEFAULT_AGENT)
    except NotFound:
        if incoming.agent is not None:
            raise InvalidParams("there is no such agent", hint="the card names the address of one") from None
        raise ServiceUnavailable("no agent takes tasks here", hint="the owner can set a2a_agent") from None
    if incoming.context_id and store.taken(incoming.context_id, sender_of(actor)):
        raise NotFound("there is no such context", hint="leave it out to begin one")
    return NewTask(
        message_id=incoming.message_id or new_id("msg"),
        context_id=incoming.context_id or new_id("ctx"),
        sender=sender_of(actor),
        sender_name=actor.agent_name or actor.role or actor.subject,
        agent_id=agent.id,
        agent_name=agent.name,
        project_id=None if actor.project in identity.closed_to(agent.id) else actor.project,
        content=incoming.text,
        skill=incoming.skill,
        held=_held(actor, calls.registry, incoming.depth),
        limit_ms=incoming.limit_ms or settings.agent_timeout_ms,
    )


def _held(actor: Actor, registry: Registry, depth: int | None) -> dict[str, Any]:
    """What the session is held to: it reaches no further than the sender, and no person is there."""
    held = handed_on(actor, lambda: reach_of(actor, registry))
    if actor.kind != "human":
        # The agent that is asked may have more than the sender's: by its own list, bundles and grants.
        held["within"] = sorted(reach_of(actor, registry))
    deeper = actor.depth + (0 if actor.kind == "human" else 1)
    return held | {"depth": max(depth or 1, deeper), "source": "agent", "scheduler": True}
