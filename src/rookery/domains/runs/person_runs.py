"""What people see of one run in the console: its facts and its trace.

Not in a module where tools are looked for: no agent has these, and no session pays for their listing. They are called,
decided and recorded like any other.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Literal

import sqlalchemy as sa
from pydantic import Field

from rookery.core.context import Context
from rookery.core.tool import ToolInput, ToolOutput, tool
from rookery.domains.runs.shown import visible_runs
from rookery.domains.runs.tools import Reference, RunRecord
from rookery.domains.runs.trace import shown, steps_of, tools_used
from rookery.domains.runs.trace_events import trace_events
from rookery.identity.store import IdentityStore
from rookery.lifecycle.issue_tables import issues
from rookery.lifecycle.run_store import Row
from rookery.lifecycle.run_tables import agent_runs
from rookery.sessions.tables import agent_sessions, session_messages

MOST_EVENTS = 20_000
"""So many of the last events of a run make up its trace."""
MOST_TURNS = 200
PEOPLE: dict[str, Any] = {
    "effect": "read", "action": "runs:read", "tier": "observe", "group": "Read", "profiles": "", "default": False,
    "principals": "people",
}  # fmt: skip
Names = Mapping[str | None, str]


class RunReference(ToolInput):
    run_id: Reference = Field(description="Id of the run.")


class ReadRunTrace(RunReference):
    order: Literal["oldest", "newest"] = Field("oldest", description="Which steps come first.")
    offset: int = Field(0, ge=0, le=1_000_000, description="Skip so many.")
    limit: int = Field(200, ge=1, le=1000, description="At most.")


class NamedRun(RunRecord):
    """A run with the names of what it belongs to. `session` is one of ours, or None; `key` names what it was for."""

    kind: str | None
    key: str | None
    turns: int | None
    project: str | None
    issue: str | None
    issue_title: str | None
    session_title: str | None
    agent_name: str | None
    deadline_ms: int | None
    base_ms: int | None
    waited_ms: int | None


class SessionTotals(ToolOutput):
    """What a session has used in all its turns, of which `run_id` is the newest."""

    id: str
    title: str
    state: str
    run_id: str | None
    turns: int
    cost_micros: int
    input_tokens: int
    output_tokens: int


class RunView(ToolOutput):
    run: NamedRun
    session: SessionTotals | None
    turns: list[NamedRun]


class RunTrace(ToolOutput):
    """`first_ms` and `last_ms` are of the whole trace, `skipped` is how many older events are not in it, `working` are
    the steps of tools that have not ended."""

    steps: list[dict[str, Any]]
    total: int
    offset: int
    next_offset: int | None
    first_ms: int | None
    last_ms: int | None
    skipped: int
    tools: list[dict[str, Any]]
    working: list[dict[str, Any]]


@tool(title="Show run", **PEOPLE)
def show_run(ctx: Context, args: RunReference) -> RunView:
    """A run with the names of its issue, agent, project and session, and the other turns of that session."""
    run = visible_runs(ctx).of(args.run_id)
    session = _session(ctx, run)
    turns: Sequence[Row] = () if session is None else _turns(ctx, session.id)
    named = named_runs(ctx, [run, *turns])
    return RunView(run=named[0], session=None if session is None else _totals(session), turns=named[1:])


@tool(title="Read run trace", **PEOPLE)
def read_run_trace(ctx: Context, args: ReadRunTrace) -> RunTrace:
    """The steps of a run: what was said, the tools with their times, what was asked; of its last 20,000 events."""
    run = visible_runs(ctx).of(args.run_id)
    skipped = max(0, run.event_count - MOST_EVENTS)
    events = trace_events(ctx.tx, ctx.actor.tenant, run.id, skipped)
    steps = steps_of(events, ended_ms=run.ended_ms)
    ordered = steps if args.order == "oldest" else steps[::-1]
    page = ordered[args.offset : args.offset + args.limit]
    end = args.offset + len(page)
    return RunTrace(
        steps=[shown(step) for step in page],
        total=len(steps),
        offset=args.offset,
        next_offset=end if end < len(steps) else None,
        first_ms=min((event.at_ms for event in events), default=None),
        last_ms=max((event.at_ms for event in events), default=None),
        skipped=skipped,
        tools=[asdict(use) for use in tools_used(steps)],
        working=[shown(step) for step in steps if step.kind == "tool" and step.end_ms is None],
    )


def named_runs(ctx: Context, runs: Sequence[Row]) -> list[NamedRun]:
    """The runs with the names of their projects, issues, sessions and agents. What the caller may not see has none."""
    identities = IdentityStore(ctx.tx, ctx.actor.tenant)
    agents: Names = {row.id: row.name for row in identities.agents()}
    projects: Names = {row.id: row.slug for row in identities.projects() if row.id not in ctx.actor.closed}
    about = _issues(ctx, {run.issue_id for run in runs if run.issue_id is not None})
    titles = _session_titles(ctx, {run.session for run in runs if run.session is not None})
    derived = ("project", "issue", "issue_title", "session", "session_title", "agent_name")
    own = [name for name in NamedRun.model_fields if name not in derived]
    return [
        NamedRun(
            **{name: getattr(run, name) for name in own},
            session=run.session if run.session in titles else None,
            session_title=titles.get(run.session),
            project=projects.get(run.project_id),
            issue=None if run.issue_id not in about else about[run.issue_id].identifier,
            issue_title=None if run.issue_id not in about else about[run.issue_id].title,
            agent_name=agents.get(run.agent, run.agent),
        )
        for run in runs
    ]


def _issues(ctx: Context, ids: set[str]) -> dict[str | None, Row]:
    """Those that the caller may see: an issue can have been moved since its run."""
    mine = [issues.c.tenant == ctx.actor.tenant, issues.c.id.in_(ids)]
    if ctx.actor.closed:
        mine.append(issues.c.project_id.not_in(sorted(ctx.actor.closed)))
    wanted = sa.select(issues.c.id, issues.c.identifier, issues.c.title).where(*mine)
    return {row.id: row for row in ctx.tx.all(wanted)} if ids else {}


def _session_titles(ctx: Context, ids: set[str]) -> Names:
    mine = (agent_sessions.c.tenant == ctx.actor.tenant, agent_sessions.c.id.in_(ids))
    wanted = sa.select(agent_sessions.c.id, agent_sessions.c.title).where(*mine)
    return {row.id: row.title for row in ctx.tx.all(wanted)} if ids else {}


def _session(ctx: Context, run: Row) -> Row | None:
    mine = (agent_sessions.c.tenant == ctx.actor.tenant, agent_sessions.c.id == run.session)
    return None if run.session is None else ctx.tx.one(sa.select(agent_sessions).where(*mine))


def _totals(session: Row) -> SessionTotals:
    return SessionTotals(**{name: getattr(session, name) for name in SessionTotals.model_fields})


def _turns(ctx: Context, session_id: str) -> Sequence[Row]:
    """The runs of a session's messages, oldest first; the newest of many."""
    sent = session_messages.c
    of = sa.select(sent.run_id).where(sent.tenant == ctx.actor.tenant, sent.session_id == session_id)
    newest = of.order_by(sent.created_ms.desc()).limit(MOST_TURNS)
    ids = [row.run_id for row in ctx.tx.all(newest) if row.run_id is not None]
    mine = [agent_runs.c.tenant == ctx.actor.tenant, agent_runs.c.id.in_(ids)]
    if ctx.actor.closed:
        mine.append(agent_runs.c.project_id.not_in(sorted(ctx.actor.closed)))
    return ctx.tx.all(sa.select(agent_runs).where(*mine).order_by(agent_runs.c.created_ms)) if ids else ()
