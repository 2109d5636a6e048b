"""Tools with which agents ask their owner, and with which people answer."""

import math
import re
from typing import Annotated, Any, Self, cast

from pydantic import AfterValidator, ConfigDict, Field, model_validator

from rookery.asks.answering import misleading
from rookery.asks.store import Asks, NewAsk, Row, asker_of, digest_of
from rookery.asks.tables import ANSWERED, OPEN, STATUSES
from rookery.core.actor import Actor
from rookery.core.context import Context
from rookery.core.errors import PermissionDenied
from rookery.core.tool import ToolInput, ToolOutput, tool
from rookery.db.clock import now_ms
from rookery.domains.owner.ask_inquiry import MAX_ANSWER, Inquiry
from rookery.domains.owner.asks_shown import EVENTS, listed, outcome, told
from rookery.identity.store import IdentityStore

MAX_QUESTION, MAX_CONTEXT, MAX_ID = 4_000, 20_000, 64
MAX_OPTIONS, MAX_OPTION = 20, 200
LEAST_S, USUAL_S, MOST_S = 60.0, 120.0, 600.0
MAX_LISTED, USUALLY_LISTED = 200, 50
OUR_NAME = re.compile(r"ses[-_][0-9a-f]{24,32}")


def _worded(limit: int) -> AfterValidator:
    def check(text: str) -> str:
        if not text.strip() or len(text) > limit:
            raise ValueError(f"must have 1 to {limit} characters")
        return text.strip()

    return AfterValidator(check)


def _choices(options: list[str]) -> list[str]:
    kept = [option.strip() for option in options]
    if len(kept) > MAX_OPTIONS or not all(1 <= len(option) <= MAX_OPTION for option in kept):
        raise ValueError(f"must be at most {MAX_OPTIONS}, each of 1 to {MAX_OPTION} characters")
    if len({option.casefold() for option in kept}) < len(kept):
        raise ValueError("two of them are the same")
    if (number := misleading(kept)) is not None:
        raise ValueError(f"{number} is the number of another one")
    return kept


def _context(text: str) -> str:
    if len(text) > MAX_CONTEXT:
        raise ValueError(f"must have at most {MAX_CONTEXT} characters")
    return text.strip()


def _patience(seconds: float) -> float:
    if math.isnan(seconds):
        raise ValueError("must be a number")
    return seconds


def _status(text: str) -> str:
    if text not in (*STATUSES, "all"):
        raise ValueError(f"must be one of {', '.join(STATUSES)}, all")
    return text


def _few(number: int) -> int:
    if not 1 <= number <= MAX_LISTED:
        raise ValueError(f"must be from 1 to {MAX_LISTED}")
    return number


class AskOwner(ToolInput):
    question: Annotated[str, _worded(MAX_QUESTION)] = Field(description="What")
    options: Annotated[list[str], AfterValidator(_choices)] | None = Field(None, description="Choices")
    context: Annotated[str, AfterValidator(_context)] | None = Field(None, description="Why")
    timeout_seconds: Annotated[float, AfterValidator(_patience)] | None = Field(None, description="60-600")

    @model_validator(mode="before")
    @classmethod
    def _minutes(cls, given: Any) -> Any:
        """The other spelling: `timeout_minutes`."""
        if not isinstance(given, dict) or "timeout_minutes" not in given:
            return cast(Any, given)
        rest = dict(cast("dict[str, Any]", given))
        minutes = rest.pop("timeout_minutes")
        if minutes is None:
            return rest
        if rest.get("timeout_seconds") is not None:
            raise ValueError("give timeout_seconds or timeout_minutes, not both")
        if isinstance(minutes, bool) or not isinstance(minutes, int | float):
            raise ValueError("timeout_minutes must be a number")
        return {**rest, "timeout_seconds": float(min(minutes, MOST_S)) * 60}


class CheckAnswer(ToolInput):
    ask_id: Annotated[str, _worded(MAX_ID)] = Field(description="Id")
    withdraw: bool = Field(False, description="Take it back")


class AnswerAsk(ToolInput):
    ask_id: Annotated[str, _worded(MAX_ID)] = Field(description="Id")
    answer: Annotated[str, _worded(MAX_ANSWER)] | None = Field(None, description="Number or text")
    similar: bool = Field(False, description="Also its like")
    seen_ms: int | None = Field(None, description="No later ones")
    dismiss: bool = Field(False, description="No answer")

    @model_validator(mode="after")
    def _one_of_them(self) -> Self:
        if self.dismiss == (self.answer is not None):
            raise ValueError("give an answer, or dismiss it")
        return self


class ListAsks(ToolInput):
    ask_id: Annotated[str, _worded(MAX_ID)] | None = Field(None, description="Only this one")
    status: Annotated[str, AfterValidator(_status)] | None = Field(None, description="Else open")
    limit: Annotated[int, AfterValidator(_few)] | None = Field(None, description="Up to 200")


class Reply(ToolOutput):
    """How an ask stands, in fields that are listed for no agent: asks_shown.py has them."""

    model_config = ConfigDict(extra="allow")

    def as_text(self) -> str:
        return told(self.model_extra or {})


class Answered(ToolOutput):
    asks: list[dict[str, Any]]


@tool(
    title="Ask owner", effect="external", action="owner:ask", tier="observe", group="Write", profiles="", default=True,
    scheduler_blocked=True, interactive=True, timeout_s=MOST_S + 60,
)  # fmt: skip
async def ask_owner(ctx: Context, args: AskOwner) -> Reply:
    """Use it for what only your owner can decide. Returns the answer, else an ask_id."""
    inquiry = Inquiry(ctx, _question(ctx, args))
    row = await inquiry.settled(patience_s(args.timeout_seconds))
    now = await ctx.read(now_ms) if row.status == OPEN else 0
    return Reply(**outcome(row, now, repeated=inquiry.repeated))


def patience_s(seconds: float | None) -> float:
    """How long an asker waits at a time: what it asks for, within bounds."""
    return USUAL_S if seconds is None else min(max(seconds, LEAST_S), MOST_S)


def _question(ctx: Context, args: AskOwner) -> NewAsk:
    actor = ctx.actor
    asker, options = asker_of(actor), args.options or []
    return NewAsk(
        kind="question",
        agent_id=asker,
        question=args.question,
        options=options,
        context=args.context or "",
        subject=actor.issue,
        project_id=actor.project,
        session=actor.session,
        key=digest_of("ask_owner", asker, _place(actor), args.question, options, args.context or ""),
    )


def _place(actor: Actor) -> str | None:
    """Where the same words are the same question: at one issue, or in a session that was given a name.

    A session that we named ends with its connection, and whoever lost that asks again in another one.
    """
    if actor.issue is not None or actor.session is None or OUR_NAME.fullmatch(actor.session):
        return actor.issue
    return actor.session


@tool(
    title="Check answer", effect="write", action="owner:ask", tier="observe", group="Read", profiles="", default=True,
)  # fmt: skip
def check_answer(ctx: Context, args: CheckAnswer) -> Reply:
    """Use it to look at an ask. Returns its answer. Only yours."""
    store = Asks(ctx.tx, ctx.actor.tenant, ctx.actor)
    row = store.of(args.ask_id)
    if args.withdraw and row.status == OPEN:
        row = store.dismiss(row.id, None, ctx.actor.source)[0]
        _publish(ctx, "AskWithdrawn", row)
    if row.status == ANSWERED:
        store.tell(row.id)
    return Reply(**outcome(row, now_ms(ctx.tx)))


@tool(
    title="Answer ask", effect="write", action="owner:answer", tier="act", group="System", profiles="", default=False,
    principals="people", interactive=True,
)  # fmt: skip
def answer_ask(ctx: Context, args: AnswerAsk) -> Answered:
    """Use it to answer an agent. Returns the ask. The first answer counts."""
    actor = ctx.actor
    if actor.kind != "human" or actor.scheduler or actor.unattended:
        # `decide` lets only people pass; a session of a person that no person attends is none.
        raise PermissionDenied("only a person who is there can answer", hint="leave it to them", layer="principal")
    person = IdentityStore(ctx.tx, actor.tenant).person(actor.subject).name
    store = Asks(ctx.tx, actor.tenant)
    if args.answer is None:
        rows = store.dismiss(args.ask_id, person, actor.source, similar=args.similar)
    else:
        rows = store.answer(args.ask_id, args.answer, person, actor.source, similar=args.similar, seen_ms=args.seen_ms)
    for row in rows:
        _publish(ctx, EVENTS[row.status], row)
    return Answered(asks=listed(ctx.tx, actor.tenant, rows))


def _publish(ctx: Context, name: str, row: Row) -> None:
    ctx.publish(name, subject=row.id, kind=row.kind, agent=row.agent_id, session=row.session)


@tool(
    title="List asks", effect="read", action="owner:read", tier="observe", group="System", profiles="", default=False,
    principals="people",
)  # fmt: skip
def list_asks(ctx: Context, args: ListAsks) -> Answered:
    """Use it to see what agents ask. Returns at most 200, of the open ones the oldest first."""
    status = None if args.status == "all" else args.status or OPEN
    store = Asks(ctx.tx, ctx.actor.tenant)
    rows = store.page(status, args.limit or USUALLY_LISTED) if args.ask_id is None else [store.of(args.ask_id)]
    return Answered(asks=listed(ctx.tx, ctx.actor.tenant, rows))
