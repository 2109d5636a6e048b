"""Tools that count and list sessions. An agent sees its own, people see all."""

from typing import Annotated, Any, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from rookery.core.context import Context
from rookery.core.pages import decode_moment, encode_moment
from rookery.core.tool import EVERY_PROFILE, ToolInput, ToolOutput, tool
from rookery.domains.sessions.shown import names_of, session_shown, sight_of
from rookery.sessions.tables import ENDED

Reference = Annotated[str, Field(min_length=1, max_length=100)]
Folder = Annotated[str, Field(min_length=1, max_length=4096)]
State = Literal["idle", "running", "waiting", "ended"]


class GetSessionCount(ToolInput):
    agent_id: Reference | None = Field(None, description="Only of this agent")
    cwd: Folder | None = Field(None, description="Or in this folder")

    @model_validator(mode="after")
    def _one_of_them(self) -> Self:
        if self.agent_id is not None and self.cwd is not None:
            raise ValueError("give agent_id or cwd, not both")
        return self


class SessionCount(ToolOutput):
    count: int
    cwd: str | None


class GetSessionStats(ToolInput):
    agent_id: Reference | None = Field(None, description="Only of this agent")


class SessionStats(ToolOutput):
    states: dict[State, int]
    turns: int
    cost_micros: int
    input_tokens: int
    output_tokens: int


class ListSessions(ToolInput):
    state: State | None = Field(None, description="Only these")
    agent_id: Reference | None = Field(None, description="Only of this agent")
    limit: int = Field(50, ge=1, le=200, description="At most")
    cursor: str | None = Field(None, max_length=400, description="Next page, as returned")


class SessionRecord(ToolOutput):
    """A session, with the fields that shown.py names."""

    model_config = ConfigDict(extra="allow")

    id: str
    state: State


class SessionRecords(ToolOutput):
    sessions: list[SessionRecord]
    next_cursor: str | None


@tool(
    title="Get session count", effect="read", action="sessions:read", tier="observe", group="System",
    profiles=EVERY_PROFILE, default=True, outline=False,
)  # fmt: skip
def get_session_count(ctx: Context, args: GetSessionCount) -> SessionCount:
    """Count sessions that have not ended. Use it to see how much is going on. Returns count and cwd. Only yours."""
    sight = sight_of(ctx, args.agent_id)
    states = sight.rows.stats(sight.agent, args.cwd).states
    living = sum(number for state, number in states.items() if state != ENDED)
    return SessionCount(count=living, cwd=args.cwd or ctx.actor.cwd)


@tool(
    title="Get session stats", effect="read", action="sessions:read", tier="observe", group="System", profiles="",
    default=False, outline=False,
)  # fmt: skip
def get_session_stats(ctx: Context, args: GetSessionStats) -> SessionStats:
    """Use it to see what sessions have used. Returns counts by state, tokens and cost, no content. Only yours."""
    sight = sight_of(ctx, args.agent_id)
    found = sight.rows.stats(sight.agent)
    used = {name: getattr(found, name) for name in ("turns", "cost_micros", "input_tokens", "output_tokens")}
    states: dict[Any, int] = dict(found.states)
    return SessionStats(states=states, **used)


@tool(
    title="List sessions", effect="read", action="sessions:read", tier="observe", group="System", profiles="",
    default=False, outline=False,
)  # fmt: skip
def list_sessions(ctx: Context, args: ListSessions) -> SessionRecords:
    """Use it to see sessions. Returns state, settings and cost of each, those active last first. Only yours."""
    sight = sight_of(ctx, args.agent_id)
    found = sight.rows.page(args.limit + 1, before=decode_moment(args.cursor), state=args.state, agent=sight.agent)
    shown, more = found[: args.limit], len(found) > args.limit
    names = names_of(ctx, shown)
    return SessionRecords(
        sessions=[SessionRecord(**session_shown(row, names)) for row in shown],
        next_cursor=encode_moment(shown[-1].active_ms, shown[-1].id) if more else None,
    )
