"""Asks with everything around them: who asks from where, why a person has to decide, and what a yes would cover.

Not in a module where tools are looked for: only people have it, and no session pays for its listing.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import sqlalchemy as sa
from pydantic import Field

from rookery.asks.store import DECIDED, DISMISSED, Asks, Row
from rookery.asks.tables import OPEN, approvals, asks
from rookery.core.context import Context
from rookery.core.decide import decide
from rookery.core.errors import NotFound, RookeryError
from rookery.core.pages import decode_moment, encode_moment
from rookery.core.tool import ToolInput, ToolOutput, tool
from rookery.db.clock import DbNow
from rookery.domains.owner.asks_shown import listed
from rookery.identity.binding import Binding
from rookery.identity.store import IdentityStore
from rookery.lifecycle.issue_tables import issues
from rookery.sessions.store import binding_of
from rookery.sessions.tables import agent_sessions

OVER = "over"
MOST = 200
_a = asks.c
Short = Annotated[str, Field(min_length=1, max_length=100)]


class LookAtAsks(ToolInput):
    ask_id: Short | None = Field(None, description="Only this one.")
    status: Literal["open", "over", "answered", "withdrawn", "expired"] = Field("open", description="Only these.")
    kind: Literal["question", "approval", "elicitation", "schedule", "verdict"] | None = Field(
        None, description="Only of this kind."
    )
    agent: Short | None = Field(None, description="Only of this agent.")
    words: str | None = Field(None, max_length=200, description="Only those whose question has these words.")
    limit: int = Field(MOST, ge=1, le=MOST, description="At most.")
    cursor: str | None = Field(None, max_length=400, description="Next page, as returned.")


class AskDetails(ToolOutput):
    asks: list[dict[str, Any]]
    next_cursor: str | None


@tool(
    title="Look at asks", effect="read", action="owner:read", tier="observe", group="System", profiles="",
    default=False, principals="people",
)  # fmt: skip
def look_at_asks(ctx: Context, args: LookAtAsks) -> AskDetails:
    """Show asks with all that a person needs to decide: the open ones most urgent first, others newest first."""
    if args.ask_id is not None:
        row = Asks(ctx.tx, ctx.actor.tenant).of(args.ask_id)
        if row.project_id in ctx.actor.closed:
            raise NotFound(f"there is no ask {args.ask_id}", hint="give the id as it was returned")
        return AskDetails(asks=_Around(ctx, [row]).detailed(), next_cursor=None)
    wanted = _wanted(ctx, args).limit(args.limit + 1)
    rows = ctx.tx.all(wanted)
    shown, more = rows[: args.limit], len(rows) > args.limit
    last = shown[-1] if more and args.status != OPEN else None
    return AskDetails(
        asks=_Around(ctx, shown).detailed(),
        next_cursor=None if last is None else encode_moment(last.created_ms, last.id),
    )


def _wanted(ctx: Context, args: LookAtAsks) -> sa.Select[*tuple[Any, ...]]:
    tenant = ctx.actor.tenant
    found = sa.select(asks).where(_a.tenant == tenant)
    if ctx.actor.closed:
        found = found.where(sa.or_(_a.project_id.is_(None), _a.project_id.not_in(sorted(ctx.actor.closed))))
    if args.kind is not None:
        found = found.where(_a.kind == args.kind)
    if args.agent is not None:
        found = found.where(_a.agent_id == IdentityStore(ctx.tx, tenant).agent(args.agent).id)
    if args.words:
        found = found.where(sa.func.lower(_a.question).contains(args.words.lower(), autoescape=True))
    still_open = sa.and_(_a.status == sa.literal_column(f"'{OPEN}'"), _a.expires_ms > DbNow())
    if args.status == OPEN:
        # What was put off comes last; of the others what ends first is the most urgent.
        return found.where(still_open).order_by(_a.later_ms.is_not(None), _a.expires_ms, _a.created_ms, _a.id)
    if args.status == OVER:
        found = found.where(sa.not_(still_open))
    elif args.status == "expired":
        found = found.where(sa.or_(_a.status == "expired", sa.and_(_a.status == OPEN, _a.expires_ms <= DbNow())))
    else:
        found = found.where(_a.status == args.status)
    before = decode_moment(args.cursor)
    if before is not None:
        place = sa.tuple_(sa.literal(before[0], sa.BigInteger), sa.literal(before[1]))
        found = found.where(sa.tuple_(_a.created_ms, _a.id) < place)
    return found.order_by(_a.created_ms.desc(), _a.id.desc())


class _Around:
    """What belongs to some asks, read together."""

    def __init__(self, ctx: Context, rows: Sequence[Row]) -> None:
        self._ctx = ctx
        self._rows = rows
        self._store = IdentityStore(ctx.tx, ctx.actor.tenant)
        self._agents = {agent.id for agent in self._store.agents()} if rows else set[str]()
        self._projects = {row.id: row.slug for row in self._store.projects()} if rows else {}
        self._sessions = self._by_id(agent_sessions, [row.session for row in rows])
        about = [row.subject for row in rows if row.kind not in DECIDED]
        self._issues = self._by_id(issues, [*about, *(each.issue_id for each in self._sessions.values())])
        self._approvals = self._by_id(approvals, [row.id for row in rows if row.kind == "approval"], "ask_id")
        self._reasons: dict[tuple[Any, ...], dict[str, str]] = {}

    def detailed(self) -> list[dict[str, Any]]:
        shown = listed(self._ctx.tx, self._ctx.actor.tenant, self._rows)
        return [{**each, **self._more(row, each["status"])} for row, each in zip(self._rows, shown, strict=True)]

    def _by_id(self, table: sa.Table, ids: Sequence[str | None], column: str = "id") -> Mapping[str, Row]:
        wanted = sorted({each for each in ids if each})
        if not wanted:
            return {}
        mine = (table.c.tenant == self._ctx.actor.tenant, table.c[column].in_(wanted))
        return {getattr(row, column): row for row in self._ctx.tx.all(sa.select(table).where(*mine))}

    def _more(self, row: Row, status: str) -> dict[str, Any]:
        session = self._sessions.get(row.session or "")
        issue = self._issues.get(row.subject or "") or self._issues.get((session.issue_id if session else "") or "")
        tool = self._ctx.platform.registry.get(row.subject or "") if row.kind == "approval" else None
        run: str | None = None if row.follow is None else row.follow["args"].get("run_id")
        if run is None and session is not None and status == OPEN:
            run = session.run_id
        approval = self._approvals.get(row.id)
        return {
            "choices": [str(option) for option in row.options or ()],
            "decides": row.kind in DECIDED,
            "can_be_dismissed": row.kind in DISMISSED,
            "answered_ms": row.answered_ms,
            "told": row.told_ms is not None,
            "project": self._projects.get(row.project_id or ""),
            "issue": issue.identifier if issue is not None else None,
            "watched_session": session.id if session is not None else None,
            "session_title": session.title if session is not None else "",
            "run": run,
            "tool": row.subject if row.kind == "approval" else None,
            "tier": tool.tier if tool is not None else None,
            "why": self._why(row, session, tool) if status == OPEN and tool is not None else None,
            "lasting": approval.tool if approval is not None and row.agent_id in self._agents else "",
        }

    def _why(self, row: Row, session: Row | None, tool: Any) -> dict[str, str]:
        """What `decide` says of the call now, for the session if it is one of ours, else for the agent."""
        key = (row.agent_id, row.project_id, session.id if session is not None else None, tool.name)
        if key not in self._reasons:
            self._reasons[key] = self._decided(row, session, tool)
        return self._reasons[key]

    def _decided(self, row: Row, session: Row | None, tool: Any) -> dict[str, str]:
        bound = Binding(tenant=self._ctx.actor.tenant, agent=row.agent_id, project=row.project_id)
        try:
            binding = bound if session is None else binding_of(session)
            actor = self._ctx.platform.facts["resolver"].resolve(self._ctx.tx, binding).actor
        except RookeryError as error:
            return {"layer": "principal", "outcome": "deny", "reason": error.message}
        found = decide(actor, tool)
        return {"layer": found.layer, "outcome": found.outcome, "reason": found.reason}
