"""Tools that read runs and their events. Nothing here can write them."""

from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from rookery.core.context import Context
from rookery.core.errors import NotFound, RookeryError
from rookery.core.pages import decode_moment, encode_moment
from rookery.core.tool import ToolInput, ToolOutput, tool
from rookery.domains.runs.shown import event, fitting, visible_issue, visible_runs
from rookery.lifecycle.run_events import EventSubtype, EventType, check_pair
from rookery.lifecycle.run_store import EventFilter, RunStatus

Reference = Annotated[str, Field(min_length=1, max_length=100)]


class QueryRunEvents(ToolInput):
    run_id: Reference | None = Field(None, description="Of this run.")
    issue_id: Reference | None = Field(None, description="Of all runs of this issue: id or identifier.")
    event_type: EventType | None = Field(None, description="Only this type.")
    event_subtype: EventSubtype | None = Field(None, description="Only this subtype.")
    limit: int = Field(100, ge=1, le=500, description="At most.")
    offset: int = Field(0, ge=0, le=1_000_000_000, description="Skip so many.")

    @model_validator(mode="after")
    def _can_be_answered(self) -> Self:
        if self.run_id is None and self.issue_id is None:
            raise ValueError("one of run_id and issue_id is needed")
        if self.event_type is not None and self.event_subtype is not None:
            try:
                check_pair(self.event_type, self.event_subtype)
            except RookeryError as error:
                raise ValueError(f"{error.message}; {error.hint}") from None
        return self


class RunEvents(ToolOutput):
    events: list[dict[str, Any]]
    total: int
    next_offset: int | None


class ListRuns(ToolInput):
    issue_id: Reference | None = Field(None, description="Only of this issue: id or identifier.")
    status: RunStatus | None = Field(None, description="Only in this state.")
    limit: int = Field(50, ge=1, le=500, description="At most.")
    cursor: str | None = Field(None, max_length=200, description="Next page, as returned.")


class RunRecord(ToolOutput):
    id: str
    project_id: str
    issue_id: str | None
    agent: str | None
    profile: str | None
    phase: str | None
    status: str
    error: str | None
    cost_micros: int
    input_tokens: int
    output_tokens: int
    attempt: int
    session: str | None
    event_count: int
    created_ms: int
    started_ms: int | None
    ended_ms: int | None
    updated_ms: int


class RunRecords(ToolOutput):
    runs: list[RunRecord]
    next_cursor: str | None


@tool(
    title="Query run events", effect="read", action="runs:read", tier="observe", group="Read", profiles="RJA",
    default=False, outline=False,
)  # fmt: skip
def query_run_events(ctx: Context, args: QueryRunEvents) -> RunEvents:
    """Read what an agent thought, said and did in its runs, oldest first. Use it to find out why a run went wrong.
    Returns events, at most 1 MB a page, and next_offset. Needs run_id or issue_id."""
    runs = visible_runs(ctx)
    run = runs.of(args.run_id) if args.run_id is not None else None
    issue = visible_issue(ctx, args.issue_id) if args.issue_id is not None else None
    if run is not None and issue is not None and run.issue_id != issue.id:
        raise NotFound(f"the issue {args.issue_id} has no run {run.id}", hint="give one of the two")
    wanted = EventFilter(
        run_id=run.id if run is not None else None,
        issue_id=issue.id if issue is not None and run is None else None,
        type=args.event_type,
        subtype=args.event_subtype,
    )
    rows, total = runs.events(wanted, limit=args.limit, offset=args.offset)
    shown = fitting(rows)
    end = args.offset + len(shown)
    return RunEvents(
        events=[event(row) for row in shown], total=total, next_offset=end if shown and end < total else None
    )


@tool(
    title="List runs", effect="read", action="runs:read", tier="observe", group="Read", profiles="", default=False,
    principals="people",
)  # fmt: skip
def list_runs(ctx: Context, args: ListRuns) -> RunRecords:
    """List runs of agents with state, error, tokens and cost in millionths of a dollar, newest first."""
    issue_id = visible_issue(ctx, args.issue_id).id if args.issue_id is not None else None
    before = decode_moment(args.cursor, "run-")
    found = visible_runs(ctx).page(args.limit + 1, issue_id=issue_id, status=args.status, before=before)
    shown, more = found[: args.limit], len(found) > args.limit
    fields = RunRecord.model_fields
    return RunRecords(
        runs=[RunRecord(**{name: getattr(row, name) for name in fields}) for row in shown],
        next_cursor=encode_moment(shown[-1].created_ms, shown[-1].id) if more else None,
    )
