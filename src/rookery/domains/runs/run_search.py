"""Finds runs by what they are and by what happened in them. For people, in no list of tools: see person_runs.py."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa
from pydantic import Field

from rookery.core.context import Context
from rookery.core.pages import decode_moment, encode_moment
from rookery.core.tool import ToolInput, ToolOutput, tool
from rookery.domains.runs.person_runs import PEOPLE, NamedRun, named_runs
from rookery.domains.runs.shown import visible_issue
from rookery.domains.runs.tools import Reference
from rookery.identity.store import IdentityStore
from rookery.lifecycle.run_store import Row, RunStatus
from rookery.lifecycle.run_tables import agent_runs, run_events

MOST_EVENTS = 20_000
MOST_RUNS = 1000
"""So many events, of so many runs, are looked through for one answer; the cursor goes on from there."""
AT_ONCE = 50
LATEST = 40
"""Among so many last events of a run the newest line of its tools is looked for."""
AROUND = 80
_r, _e = agent_runs.c, run_events.c
_TEXT = sa.func.lower(sa.cast(_e.payload, sa.Text))


class SearchRuns(ToolInput):
    text: str | None = Field(None, max_length=200, description="In an event, the error or the id.")
    status: RunStatus | None = Field(None, description="Only in this state.")
    issue_id: Reference | None = Field(None, description="Only of this issue: id or identifier.")
    agent: Reference | None = Field(None, description="Only of this agent: id or name.")
    kind: Reference | None = Field(None, description="Only for this: session, orchestrator, schedule, …")
    project: Reference | None = Field(None, description="Only of this project: slug or id.")
    limit: int = Field(50, ge=1, le=200, description="At most.")
    cursor: str | None = Field(None, max_length=200, description="Next page, as returned.")


class FoundRun(NamedRun):
    """`found` is where the text stands, `event` the number of that event; `line` what a tool at work said last."""

    found: str | None = None
    event: int | None = None
    line: str | None = None


class FoundRuns(ToolOutput):
    """`searched` counts the events that were looked through."""

    runs: list[FoundRun]
    next_cursor: str | None
    searched: int


@tool(title="Search runs", **PEOPLE)
def search_runs(ctx: Context, args: SearchRuns) -> FoundRuns:
    """Find runs, newest first. With a text at most 20,000 events are looked through; next_cursor goes on from there."""
    search = _Search(ctx, _guards(ctx, args))
    before = decode_moment(args.cursor, "run-")
    if args.text is None or not args.text.strip():
        rows = search.page(before, args.limit + 1)
        shown, more = rows[: args.limit], len(rows) > args.limit
        last = shown[-1] if more else None
    else:
        shown, last = search.containing(args.text.strip(), before, args.limit)
    lines = _lines(ctx, [run for run in shown if run.status == "running"])
    runs = [
        FoundRun(**named.model_dump(), line=lines.get(named.id), **search.places.get(named.id, {}))
        for named in named_runs(ctx, shown)
    ]
    cursor = None if last is None else encode_moment(last.created_ms, last.id)
    return FoundRuns(runs=runs, next_cursor=cursor, searched=search.searched)


@dataclass(slots=True)
class _Search:
    """`places` says of each run in which the text was found where that is."""

    ctx: Context
    guards: Sequence[sa.ColumnElement[bool]]
    searched: int = 0
    places: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])

    def page(self, before: tuple[int, str] | None, limit: int) -> Sequence[Row]:
        wanted = sa.select(agent_runs).where(*self.guards)
        if before is not None:
            last = sa.tuple_(sa.literal(before[0], sa.BigInteger), sa.literal(before[1]))
            wanted = wanted.where(sa.tuple_(_r.created_ms, _r.id) < last)
        return self.ctx.tx.all(wanted.order_by(_r.created_ms.desc(), _r.id.desc()).limit(limit))

    def containing(self, text: str, before: tuple[int, str] | None, limit: int) -> tuple[list[Row], Row | None]:
        """The next runs with the text in them, and the last run that was looked at if there are more."""
        found: list[Row] = []
        looked_at = 0
        while True:
            rows = self.page(before, AT_ONCE)
            for row in rows:
                if self._has(row, text):
                    found.append(row)
                looked_at += 1
                if len(found) >= limit or self.searched >= MOST_EVENTS or looked_at >= MOST_RUNS:
                    return found, row
                before = (row.created_ms, row.id)
            if len(rows) < AT_ONCE:
                return found, None

    def _has(self, run: Row, text: str) -> bool:
        lowered = text.lower()
        if lowered in run.id or lowered in (run.error or "").lower():
            self.places[run.id] = {"found": _around(run.error or run.id, lowered)}
            return True
        self.searched += min(run.event_count, MOST_EVENTS)
        if not run.event_count:
            return False
        # A character that is not ASCII is written as itself or escaped, as whoever wrote the event liked it.
        spellings = {json.dumps(lowered, ensure_ascii=escaped)[1:-1] for escaped in (False, True)}
        first = self.ctx.tx.one(
            sa.select(_e.number, _e.payload)
            .where(
                _e.tenant == self.ctx.actor.tenant,
                _e.run_id == run.id,
                _e.number > run.event_count - MOST_EVENTS,
                sa.or_(*(_TEXT.contains(each, autoescape=True) for each in sorted(spellings))),
            )
            .order_by(_e.number)
            .limit(1)
        )
        if first is None:
            return False
        self.places[run.id] = {"found": _around(_words(first.payload, lowered), lowered), "event": first.number}
        return True


def _guards(ctx: Context, args: SearchRuns) -> list[sa.ColumnElement[bool]]:
    actor = ctx.actor
    guards: list[sa.ColumnElement[bool]] = [_r.tenant == actor.tenant]
    if actor.closed:
        guards.append(_r.project_id.not_in(sorted(actor.closed)))
    identities = IdentityStore(ctx.tx, actor.tenant)
    if args.project is not None:
        guards.append(_r.project_id == identities.project(args.project, actor.closed).id)
    if args.issue_id is not None:
        guards.append(_r.issue_id == visible_issue(ctx, args.issue_id).id)
    if args.agent is not None:
        guards.append(_r.agent == identities.agent(args.agent).id)
    for column, value in ((_r.status, args.status), (_r.kind, args.kind)):
        if value is not None:
            guards.append(column == value)
    return guards


def _lines(ctx: Context, running: Sequence[Row]) -> dict[str, str]:
    """The last line that a tool said in each of these runs, if that was a moment ago."""
    if not running:
        return {}
    latest = sa.or_(*(sa.and_(_e.run_id == run.id, _e.number > run.event_count - LATEST) for run in running))
    wanted = (_e.tenant == ctx.actor.tenant, latest, _e.type == "system", _e.subtype == "status")
    rows = ctx.tx.all(sa.select(_e.run_id, _e.payload).where(*wanted).order_by(_e.run_id, _e.number))
    said = {row.run_id: row.payload.get("text") for row in rows if row.payload.get("event") == "tool_status"}
    return {run_id: str(text)[:300] for run_id, text in said.items() if text}


def _words(payload: dict[str, Any], lowered: str) -> str:
    """The value inside the payload that has the text, or all of it."""
    for value in payload.values():
        if isinstance(value, str) and lowered in value.lower():
            return value
    return json.dumps(payload, ensure_ascii=False)


def _around(text: str, lowered: str) -> str:
    at = max(0, text.lower().find(lowered))
    start, end = max(0, at - AROUND), at + len(lowered) + AROUND
    return f"{'…' if start else ''}{' '.join(text[start:end].split())}{'…' if end < len(text) else ''}"
