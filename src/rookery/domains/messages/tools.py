"""Tools with which agents write to each other."""

from typing import Annotated, Any

from pydantic import AfterValidator, ConfigDict, Field

from rookery.core.actor import Actor
from rookery.core.context import Context
from rookery.core.errors import (
    Conflict,
    NotFound,
    RateLimited,
    RookeryError,
    ServiceUnavailable,
    ValidationFailed,
)
from rookery.core.tool import NoInput, ToolInput, ToolOutput, tool
from rookery.db.tx import Tx
from rookery.domains.messages.delivering import WORK, work_wanted
from rookery.domains.messages.directory import known_agents
from rookery.domains.messages.jobs import defer_delivery
from rookery.domains.messages.limits import Refusal, limits_of
from rookery.domains.messages.shown import as_lines, entry, fitting
from rookery.domains.messages.store import Messages, NewMessage, Posted, Row
from rookery.domains.messages.waiting import ended
from rookery.identity.binding import inherited
from rookery.identity.store import IdentityStore

MAX_MESSAGE = 20_000
MAX_REFERENCE = 200
MAX_LISTED = 50
DEFAULT_LISTED = 10
WAIT_S = 300.0
"""So long a sender waits for the answer; what comes later is in its inbox."""
BUNDLE = "preset-communicator"


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
    message: Text = Field(description="Text or [WORK] task")
    thread: Reference | None = Field(None, description="Id")


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
    """Use it to ask an agent. Returns its reply, if not too late."""
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
    ctx.emit_status(f"querying {row.to_name}")
    over = await ended(ctx, row.id, WAIT_S)
    if over is None:
        return _sent(row, "processing", note=f"{row.to_name} has not answered yet. The reply will be in your inbox.")
    if over.status == "delivered":
        return _in_inbox(over)
    await ctx.write(lambda tx: Messages(tx, ctx.actor.tenant).seen(row.id, ctx.actor.subject))
    if over.status == "failed":
        raise _failed(over)
    ctx.emit_status(f"reply of {row.to_name} received")
    return _sent(over)


def _post(tx: Tx, ctx: Context, args: SendMessage) -> Posted:
    actor, facts = ctx.actor, ctx.platform.facts
    target = _receiver(tx, actor, args.to_agent)
    store = Messages(tx, actor.tenant)
    if args.thread is not None:
        store.check_thread(args.thread, actor.subject)
    new = NewMessage(
        from_id=actor.subject,
        from_name=actor.agent_name or actor.role or actor.subject,
        to_id=target.id,
        to_name=target.name,
        content=args.message,
        thread_id=args.thread,
        project_id=actor.project,
        held=_held(actor),
        payer=actor.agent,
        # What several clients share says nothing about how much one of them sends.
        session=None if actor.shared_session else actor.session,
    )
    limits = limits_of(facts["settings"])
    to_inbox = facts.get("runtime") is None and work_wanted(args.message) is None
    posted = store.post(new, limits, to_inbox=to_inbox)
    if not posted.duplicate and posted.row.status == "pending":
        defer_delivery(tx, posted.row, limits)
    return posted


def _receiver(tx: Tx, actor: Actor, name_or_id: str) -> Row:
    try:
        found = IdentityStore(tx, actor.tenant).agent(name_or_id)
    except NotFound:
        raise NotFound(f"there is no agent {name_or_id}", hint="list_agents shows them") from None
    if found.id == actor.subject:
        raise ValidationFailed("you cannot send a message to yourself", hint="list_agents shows the others")
    return found


def _held(actor: Actor) -> dict[str, Any]:
    """What the receiver's session is held to: it reaches no further than the sender, and is one step deeper."""
    if actor.kind == "human":
        return inherited(actor) | {"source": "stdio"}
    return inherited(actor) | {"depth": actor.depth + 1, "source": "agent"}


def _sent(row: Row, status: str | None = None, note: str | None = None) -> Sent:
    known = {"message_id": row.id, "thread": row.thread_id, "status": status or row.status}
    return Sent.model_validate({**known, "reply": row.response, "note": note})


def _in_inbox(row: Row) -> Sent:
    return _sent(row, note=f"Delivered to the inbox of {row.to_name}. The reply will be in yours.")


def _refused(refusal: Refusal) -> RookeryError:
    if refusal.code == "SPENDING_LIMIT":
        return Conflict(f"{refusal.code}: {refusal.error}", hint="the owner can give more: grant_credits")
    kind = RateLimited if refusal.code == "RATE_LIMITED" else ServiceUnavailable
    wait_s = -(-refusal.wait_ms // 1000)
    hint = f"try again in {wait_s} s" if wait_s else "leave it to another session"
    return kind(f"{refusal.code}: {refusal.error}", hint=hint)


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
    """Use it to clear mail that needs no more, or to reply. Returns its status."""
    row = Messages(ctx.tx, ctx.actor.tenant).acknowledge(args.message_id, ctx.actor.subject, args.reply)
    if row.status == "completed" and args.reply is not None:
        ctx.publish("MessageAnswered", subject=row.id, sender=row.from_id, receiver=row.to_id)
    return Acknowledged(status=row.status)
