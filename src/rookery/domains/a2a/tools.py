"""Tools with which agents find agents elsewhere and ask them."""

from typing import Annotated, Any

from pydantic import AfterValidator, AliasChoices, BeforeValidator, ConfigDict, Field

from rookery.core.context import Context
from rookery.core.tool import ToolInput, ToolOutput, tool
from rookery.domains.a2a import sdk
from rookery.domains.a2a.budget import is_own_session
from rookery.domains.a2a.cards import NoCard, base_of, card_of, known_cards
from rookery.domains.a2a.invoking import Invocation, invoke
from rookery.domains.a2a.shown import as_lines, in_short
from rookery.domains.a2a.trust import LEVELS

SERVICES = ("a2a",) if sdk.is_installed() else ()
MAX_MESSAGE = 50_000
MAX_NAME = 200
MAX_TASK_ID = 500
MAX_QUERY = 1_000
MAX_FOUND = 20
MINUTES = 5.0
MOST_MINUTES = 60.0
SPARE_S = 30.0
BUNDLE = "preset-communicator"


def _written(most: int) -> AfterValidator:
    def check(text: str) -> str:
        if not text.strip() or len(text) > most:
            raise ValueError(f"must have 1 to {most} characters")
        return text

    return AfterValidator(check)


def _level(text: str) -> str:
    if text not in LEVELS:
        raise ValueError(f"must be one of {', '.join(LEVELS)}")
    return text


def _number(value: Any) -> Any:
    # True would be read as 1.
    if isinstance(value, bool):
        raise ValueError("must be a number")
    return value


def _minutes(number: float) -> float:
    if not 0 < number <= MOST_MINUTES:
        raise ValueError(f"must be above 0 and at most {MOST_MINUTES:g}")
    return number


_UNLISTED = ("skill", "timeout_minutes", "min_trust", "task_id")


def _without_fields(schema: dict[str, Any]) -> None:
    schema.pop("properties", None)


def _without_unlisted(schema: dict[str, Any]) -> None:
    for name in _UNLISTED:
        schema["properties"].pop(name)


class DiscoverAgent(ToolInput):
    query: Annotated[str, _written(MAX_QUERY)] = Field(
        validation_alias=AliasChoices("query", "url"), description="URL or words"
    )


class InvokeRemoteAgent(ToolInput):
    """Four fields are taken and not listed: few calls need them, and every agent would pay for reading of them."""

    model_config = ConfigDict(json_schema_extra=_without_unlisted)

    agent_url: Annotated[str, _written(MAX_QUERY)] = Field(description="URL")
    message: Annotated[str, _written(MAX_MESSAGE)] = Field(description="Task")
    skill: Annotated[str, _written(MAX_NAME)] | None = Field(None, description="Its id")
    timeout_minutes: Annotated[float, AfterValidator(_minutes), BeforeValidator(_number)] | None = Field(
        None, description="5"
    )
    min_trust: Annotated[str, AfterValidator(_level)] | None = Field(None, description="untrusted..verified")
    task_id: Annotated[str, _written(MAX_TASK_ID)] | None = Field(None, description="The task that asked")


class Discovered(ToolOutput):
    """The card, or those found by words, and a note if there is none: listed for no agent."""

    model_config = ConfigDict(extra="allow", json_schema_extra=_without_fields)

    def as_text(self) -> str:
        known = self.model_extra or {}
        if known["note"]:
            return known["note"]
        return "\n\n".join(as_lines(card) for card in known["agents"])


class Invoked(ToolOutput):
    """The answer, and how far the task is: listed for no agent."""

    model_config = ConfigDict(extra="allow", json_schema_extra=_without_fields)

    def as_text(self) -> str:
        known = self.model_extra or {}
        said = known["answer"] or "It gave no answer."
        return said if known["state"] == "completed" else f"{known['note']}\n\n{said}"


@tool(
    title="Discover agent", effect="external", action="agent:discover", tier="observe", group="Read", profiles="",
    default=True, networking=True, bundles=(BUNDLE,), needs="a2a",
)  # fmt: skip
async def discover_agent(ctx: Context, args: DiscoverAgent) -> Discovered:
    """Use it to find remote agents. Returns cards, by words only known ones."""
    ctx.emit_status(f"looking for {args.query}")
    look = _fetch(ctx, base_of(args.query)) if "://" in args.query else _search(ctx, args.query)
    found, note = await look
    ctx.emit_status(note or f"agent cards found: {len(found)}")
    return Discovered.model_validate({"agents": found, "note": note})


async def _fetch(ctx: Context, base: str) -> tuple[list[dict[str, Any]], str]:
    """The card at an address, or why there is none."""
    try:
        card = await card_of(ctx, base)
    except NoCard as error:
        return [], f"No agent card at {base}: {error}."
    return [{**in_short(card), "at": base}], ""


async def _search(ctx: Context, words: str) -> tuple[list[dict[str, Any]], str]:
    """The known cards that have these words, or what to do without any."""
    found = [in_short(card) for card in await known_cards(ctx, words, MAX_FOUND)]
    return found, "" if found else f"No known agent card has {words}. Give a URL to fetch one."


@tool(
    title="Invoke remote agent", effect="external", action="agent:invoke", tier="act", group="Write", profiles="",
    default=True, networking=True, max_depth=3, bundles=(BUNDLE,), needs="a2a",
    timeout_s=MOST_MINUTES * 60 + SPARE_S,
)  # fmt: skip
async def invoke_remote_agent(ctx: Context, args: InvokeRemoteAgent) -> Invoked:
    """Use it to ask a trusted remote agent. Returns only its answer."""
    wanted = Invocation(
        base=base_of(args.agent_url),
        text=args.message,
        skill=args.skill,
        min_trust=args.min_trust,
        limit_s=60 * (args.timeout_minutes or MINUTES),
        task_id=args.task_id,
    )
    told = await invoke(ctx, wanted)
    note = "" if told.state == "completed" else _waits(ctx, told.task)
    known = {"state": told.state, "answer": told.text, "task_id": told.task, "context_id": told.context}
    return Invoked.model_validate({**known, "note": note})


def _waits(ctx: Context, task: str) -> str:
    """How to answer what the agent asks."""
    if is_own_session(ctx.actor):
        return "It waits for an answer: your next message to it is taken as one."
    if not task.isprintable() or not 0 < len(task) <= MAX_TASK_ID:
        return "It asks something back: tell it everything in one message."
    return f"It waits for an answer: give task_id={task} with it."
