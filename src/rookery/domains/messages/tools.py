"""Tools with which agents write to each other."""

from typing import Annotated, Any

from pydantic import AfterValidator, ConfigDict, Field

from rookery.core.actor import Actor
from rookery.core.context import Context
from rookery.core.decide import ALLOW, decide
from rookery.core.errors import (
    Conflict,
    NotFound,
    PermissionDenied,
    RateLimited,
    RookeryError,
    ServiceUnavailable,
    ValidationFailed,
)
from rookery.core.registry import Registry
from rookery.core.tool import NoInput, ToolInput, ToolOutput, tool
from rookery.db.tx import Tx
from rookery.domains.messages.delivering import WORK, work_wanted
from rookery.domains.messages.directory import known_agents
from rookery.domains.messages.jobs import defer_delivery
from rookery.domains.messages.limits import Refusal, limits_of
from rookery.domains.messages.shown import as_lines, entry, fitting
from rookery.domains.messages.store import Messages, NewMessage, Posted, Row
from rookery.domains.messages.waiting import ended
from rookery.identity.binding import handed_on
from rookery.identity.reach import reach_of
from rookery.identity.store import IdentityStore

MAX_MESSAGE = 20_000
MAX_REFERENCE = 200
MAX_LISTED = 50
DEFAULT_LISTED = 10
WAIT_S = 300.0
"""So long a sender waits for the answer; what comes later is in its inbox."""
BUNDLE = "preset-communicator"
LATER = "The reply will be in your inbox."
WORK_TOOL = "create_work_task"


def _written(text: str) -> str:
    if not text.strip() or len(text) > MAX_MESSAGE:
        raise ValueError(f"must have 1 to {MAX_MESSAGE} characters")
    return text


def _named(text: str) -> str:
    if not text.strip() or len(text) > MAX_REFERENCE:
        raise ValueError(f"must have 1 to {MAX_REFERENCE} characters")
    return text.strip()


def _few(number: int) -> int:
    if not 1 <= number <= MAX_LISTED:
        raise ValueError(f"must be from 1 to {MAX_LISTED}")
    return number


# Validators rather than limits that every agent would read in the schema.
Reference = Annotated[str, AfterValidator(_named)]
Text = Annotated[str, AfterValidator(_written)]


class SendMessage(ToolInput):
    to_agent: Reference = Field(description="Name or id")
    message: Text = Field(description="Or [WORK] task")
    thread: Reference | None = Field(None, description="Id")
    wait: bool | None = Field(None, description="False: by inbox")


class ReadInbox(ToolInput):
    limit: Annotated[int, AfterValidator(_few)] | None = Field(None, description="Up to 50")
    thread: Reference | None = Field(None, description="Only it, whole")


class AcknowledgeMessage(ToolInput):
    message_id: Reference = Field(description="Id")
    reply: Text | None = Field(None, description="Answer")


class Sent(ToolOutput):
    """How far a message is: message_id, thread, status, reply and note, which are listed for no agent."""

    model_config = ConfigDict(extra="allow")

    def as_text(self) -> str:
        known = self.model_extra or {}
        said = "\n\n".join(known[name] for name in ("reply", "note") if known[name])
        return f"{said}\n\n[thread: {known['thread']}]"


class AgentList(ToolOutput):
    agents: list[dict[str, Any]]

    def as_text(self) -> str:
        return "\n".join(_agent_line(each) for each in self.agents)


class Inbox(ToolOutput):
    messages: list[dict[str, Any]]

    def as_text(self) -> str:
        return "\n\n".join(as_lines(each) for each in self.messages) or "No messages."


class Acknowledged(ToolOutput):
    status: str


def _agent_line(agent: dict[str, Any]) -> str:
    trust = f", trust {agent['trust']}" if agent["trust"] else ""
    return f"{agent['name']} ({agent['id']}): {agent['status']}{trust}{', you' if agent['self'] else ''}"


@tool(
    title="Send message", effect="external", action="msg:send", tier="act", group="Write", profiles="", default=True,
    scheduler_blocked=True, networking=True, max_depth=3, bundles=(BUNDLE,), timeout_s=WAIT_S + 30,
)  # fmt: skip
async def send_message(ctx: Context, args: SendMessage) -> Sent:
    """Use it to ask an agent. Returns its reply, if not late."""
    if work_wanted(args.message) == "":
        raise ValidationFailed(f"message: nothing follows {WORK}", hint="say what the work is")
    posted = await ctx.write(lambda tx: _post(tx, ctx, args))
    row = posted.row
    if posted.refusal is not None:
        raise _refused(posted.refusal)
    if posted.duplicate:
        return _sent(row, note=f"Message already sent to {row.to_name} (duplicate suppressed), it is {row.status}.")
    ctx.publish("MessageSent", subject=row.id, sender=row.from_id, receiver=row.to_id)
    if row.status == "delivered":
        return _in_inbox(row)
    if args.wait is False:
        return _sent(row, note=f"On its way to {row.to_name}. {LATER}")
    ctx.emit_status(f"querying {row.to_name}")
    over = await ended(ctx, row.id, WAIT_S)
    if over is None:
        return _sent(row, "processing", note=f"{row.to_name} has not answered yet. {LATER}")
    if over.status == "delivered":
        return _in_inbox(over)
    await ctx.write(lambda tx: Messages(tx, ctx.actor.tenant).told(row.id, ctx.actor.subject))
    if over.status == "failed":
        raise _failed(over)
    ctx.emit_status(f"reply of {row.to_name} received")
    return _sent(over)


def _post(tx: Tx, ctx: Context, args: SendMessage) -> Posted:
    actor, facts = ctx.actor, ctx.platform.facts
    target = _receiver(tx, actor, args.to_agent)
    store = Messages(tx, actor.tenant)
    new = NewMessage(
        from_id=actor.subject,
        from_name=actor.agent_name or actor.role or actor.subject,
        to_id=target.id if target is not None else "",
        to_name=target.name if target is not None else args.to_agent,
        content=args.message,
        thread_id=args.thread,
        project_id=actor.project,
        held=_held(actor, ctx.platform.registry),
        payer=actor.agent,
        # What several clients share says nothing about how much one of them sends.
        session=None if actor.shared_session else actor.session,
    )
    refusal = _no_receiver(actor, new)
    if refusal is None and args.thread is not None:
        store.check_thread(args.thread, actor.subject)
    work = work_wanted(args.message) is not None
    refusal = refusal or (_no_work(actor, ctx.platform.registry) if work else None)
    if refusal is not None:
        return store.refuse(new, refusal)
    limits = limits_of(facts["settings"])
    way = "work" if work else "inbox" if facts.get("runtime") is None else "session"
    posted = store.post(new, limits, way)
    if not posted.duplicate and posted.row.status == "pending":
        defer_delivery(tx, posted.row, limits)
    return posted


def _receiver(tx: Tx, actor: Actor, name_or_id: str) -> Row | None:
    try:
        return IdentityStore(tx, actor.tenant).agent(name_or_id)
    except NotFound:
        return None


def _no_receiver(actor: Actor, new: NewMessage) -> Refusal | None:
    if not new.to_id:
        return Refusal("AGENT_NOT_FOUND", f"there is no agent {new.to_name}", hint="list_agents shows them")
    if new.to_id == actor.subject:
        told = "you cannot send a message to yourself"
        return Refusal("SELF_INVOKE", told, hint="list_agents shows the others")
    return None


def _no_work(actor: Actor, registry: Registry) -> Refusal | None:
    """Why the sender may not have work done, if it may not: it must not get by another what it has not itself."""
    tool = registry.get(WORK_TOOL)
    decision = decide(actor, tool) if tool is not None else ALLOW
    if decision.outcome == "allow":
        return None
    return Refusal("WORK_TASK_ERROR", decision.reason, hint=decision.hint, layer=decision.layer)


def _held(actor: Actor, registry: Registry) -> dict[str, Any]:
    """What the receiver's session is held to: it reaches no further than the sender, and is one step deeper."""
    held = handed_on(actor, lambda: reach_of(actor, registry))
    if actor.kind == "human":
        return held | {"source": "stdio"}
    return held | {"depth": actor.depth + 1, "source": "agent"}


def _sent(row: Row, status: str | None = None, note: str | None = None) -> Sent:
    known = {"message_id": row.id, "thread": row.thread_id, "status": status or row.status}
    return Sent.model_validate({**known, "reply": row.response, "note": note})


def _in_inbox(row: Row) -> Sent:
    return _sent(row, note=f"Delivered to the inbox of {row.to_name}. The reply will be in yours.")


_REFUSED: dict[str, type[RookeryError]] = {
    "AGENT_NOT_FOUND": NotFound,
    "SELF_INVOKE": ValidationFailed,
    "SPENDING_LIMIT": Conflict,
    "RATE_LIMITED": RateLimited,
    "WORK_TASK_ERROR": PermissionDenied,
}


def _refused(refusal: Refusal) -> RookeryError:
    kind = _REFUSED.get(refusal.code, ServiceUnavailable)
    wait_s = -(-refusal.wait_ms // 1000)
    hint = refusal.hint or (f"try again in {wait_s} s" if wait_s else "leave it to another session")
    return kind(f"{refusal.code}: {refusal.error}", hint=hint, layer=refusal.layer)


def _failed(row: Row) -> RookeryError:
    kind = Conflict if row.error_code == "WORK_TASK_ERROR" else ServiceUnavailable
    return kind(
        f"{row.error_code}: the message to {row.to_name} failed: {row.error}",
        hint="ask another agent, or try again in 30 s",
    )


@tool(
    title="List agents", effect="read", action="agent:list", tier="observe", group="Read", profiles="", default=True,
    networking=True, bundles=(BUNDLE,),
)  # fmt: skip
def list_agents(ctx: Context, args: NoInput) -> AgentList:
    """Use it to see whom you can write to. Returns all, you included, no remote ones."""
    return AgentList(agents=known_agents(ctx.tx, ctx.actor.tenant, ctx.actor.agent))


@tool(
    title="Read inbox", effect="read", action="msg:read", tier="observe", group="Read", profiles="", default=True,
)  # fmt: skip
def read_inbox(ctx: Context, args: ReadInbox) -> Inbox:
    """Use it to get mail and late replies. Returns what you have not acknowledged."""
    store, reader, limit = Messages(ctx.tx, ctx.actor.tenant), ctx.actor.subject, args.limit or DEFAULT_LISTED
    if args.thread is None:
        return Inbox(messages=fitting([entry(row, reader) for row in store.inbox(reader, limit)]))
    rows = store.thread(args.thread, reader, limit)
    if not rows:
        raise NotFound(f"there is no thread {args.thread}", hint="read_inbox names those of your messages")
    return Inbox(messages=fitting([entry(row, reader) for row in rows])[::-1])


@tool(
    title="Acknowledge message", effect="write", action="msg:send", tier="act", group="Write", profiles="",
    default=True,
)  # fmt: skip
def acknowledge_message(ctx: Context, args: AcknowledgeMessage) -> Acknowledged:
    """Use it to clear or answer mail. Returns only its status."""
    row = Messages(ctx.tx, ctx.actor.tenant).acknowledge(args.message_id, ctx.actor.subject, args.reply)
    if row.status == "completed" and args.reply is not None:
        ctx.publish("MessageAnswered", subject=row.id, sender=row.from_id, receiver=row.to_id)
    return Acknowledged(status=row.status)
