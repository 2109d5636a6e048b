"""The tool with which an agent gets more time for the session it is in."""

import math
from typing import Annotated, Any

from pydantic import AfterValidator, AliasChoices, BeforeValidator, ConfigDict, Field

from rookery.core.context import Context
from rookery.core.tool import ToolInput, ToolOutput, tool
from rookery.db.clock import now_ms
from rookery.lifecycle.session_store import SessionRuns

LEAST, MOST = 1, 120
MINUTE_MS = 60_000


def _number(value: Any) -> Any:
    # True would be read as 1.
    if isinstance(value, bool):
        raise ValueError("must be a number")
    return value


def _clamped(minutes: float) -> float:
    if math.isnan(minutes):
        raise ValueError("must be a number")
    return min(max(minutes, LEAST), MOST)


class ExtendTimeout(ToolInput):
    additional_minutes: Annotated[float, BeforeValidator(_number), AfterValidator(_clamped)] = Field(
        validation_alias=AliasChoices("additional_minutes", "minutes"), description="1-120"
    )


def _without_fields(schema: dict[str, Any]) -> None:
    schema.pop("properties", None)


class Deadline(ToolOutput):
    model_config = ConfigDict(json_schema_extra=_without_fields)

    deadline_ms: int
    remaining_minutes: float


@tool(
    title="Extend timeout", effect="write", action="agent:extend", tier="act", group="Write", profiles="", default=True,
)  # fmt: skip
def extend_timeout(ctx: Context, args: ExtendTimeout) -> Deadline:
    """Use it to get more time for this session. Returns the deadline; at most 4 times the first."""
    run = SessionRuns(ctx.tx, ctx.actor.tenant).extend(ctx.actor, round(args.additional_minutes * MINUTE_MS))
    left_ms = run.deadline_ms - now_ms(ctx.tx)
    return Deadline(deadline_ms=run.deadline_ms, remaining_minutes=round(left_ms / MINUTE_MS, 1))
