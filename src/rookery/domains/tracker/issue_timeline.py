"""With what people read all that happened to an issue, in one order, page by page.

Not in a module where tools are looked for: agents have get_issue, and no session pays for a listing.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, get_args

import sqlalchemy as sa
from pydantic import Field

from rookery.core.context import Context
from rookery.core.errors import InvalidParams, NotFound
from rookery.core.pages import decode_cursor, encode_cursor
from rookery.core.tool import ToolInput, ToolOutput, tool
from rookery.domains.tracker.inputs import Ref
from rookery.domains.tracker.issue_data import ABOUT_PHASES
from rookery.domains.tracker.issue_view import RUN_FIELDS
from rookery.domains.tracker.signatures import names_of
from rookery.domains.tracker.store import Issues
from rookery.domains.tracker.tables import comments, findings, issue_changes, line_comments, prs
from rookery.lifecycle.run_tables import agent_runs

Row = sa.Row[Any]
Kind = Literal["finding", "verdict", "comment", "line", "run", "change"]
KINDS: tuple[Kind, ...] = get_args(Kind)
LONGEST = 3_000
"""Of each text on a page this many characters are shown; a record by itself is whole."""


class ReadTimeline(ToolInput):
    issue_id: Ref = Field(description="Id or identifier.")
    kinds: list[Kind] = Field(list(KINDS), max_length=len(KINDS), description="Only these.")
    limit: int = Field(50, ge=1, le=200, description="At most.")
    cursor: str | None = Field(None, max_length=200, description="Next page, as returned.")


class ReadRecord(ToolInput):
    issue_id: Ref = Field(description="Id or identifier.")
    kind: Kind = Field(description="As in the timeline.")
    key: Ref = Field(description="As in the timeline.")


class Timeline(ToolOutput):
    identifier: str
    entries: list[dict[str, Any]]
    totals: dict[str, int]
    next_cursor: str | None


class TimelineRecord(ToolOutput):
    entry: dict[str, Any]


class Source(NamedTuple):
    """Where the entries of one kind come from, and how one is shown. `key` tells those of the same moment apart."""

    columns: Sequence[sa.ColumnElement[Any]]
    table: sa.FromClause
    at: sa.ColumnElement[int]
    key: sa.ColumnElement[Any]
    issue: sa.ColumnElement[str]
    shown: Callable[[Row], dict[str, Any]]
    only: sa.ColumnElement[bool] = sa.true()


class Place(NamedTuple):
    """An entry in the one order: by time, then by kind, then by key."""

    at_ms: int
    rank: int
    key: str


@tool(
    title="Read timeline", effect="read", action="tracker:read", tier="observe", group="Read", profiles="",
    default=False, principals="people",
)  # fmt: skip
def read_timeline(ctx: Context, args: ReadTimeline) -> Timeline:
    """Read what happened to an issue, newest first."""
    issue = Issues(ctx.tx, ctx.actor).find(args.issue_id)
    after = _place(args.cursor)
    found: list[tuple[Place, Kind, Row]] = []
    for kind in KINDS:
        if kind not in args.kinds:
            continue
        rows = ctx.tx.all(_wanted(kind, issue.id, after).limit(args.limit + 1))
        found.extend((Place(row.at_ms, KINDS.index(kind), str(row.entry_key)), kind, row) for row in rows)
    found.sort(key=lambda each: _sorting(each[0]), reverse=True)
    shown = found[: args.limit]
    names = names_of(ctx.tx, ctx.actor.tenant, (row.subject for _, _, row in shown if row.subject))
    last = shown[-1][0] if len(found) > args.limit else None
    return Timeline(
        identifier=issue.identifier,
        entries=[_cut(_entry(kind, row, names)) for _, kind, row in shown],
        totals={kind: _count(ctx, kind, issue.id) for kind in KINDS},
        next_cursor=encode_cursor(f"{last.at_ms} {last.rank} {last.key}") if last is not None else None,
    )


@tool(
    title="Read timeline record", effect="read", action="tracker:read", tier="observe", group="Read", profiles="",
    default=False, principals="people",
)  # fmt: skip
def read_timeline_record(ctx: Context, args: ReadRecord) -> TimelineRecord:
    """Read one entry of an issue's timeline, whole."""
    issue = Issues(ctx.tx, ctx.actor).find(args.issue_id)
    source = SOURCES[args.kind]
    key = args.key if args.kind == "run" else _number(args.key)
    row = ctx.tx.one(_wanted(args.kind, issue.id, None).where(source.key == key))
    if row is None:
        raise NotFound(f"there is no {args.kind} {args.key} on {issue.identifier}", hint="its timeline shows all")
    names = names_of(ctx.tx, ctx.actor.tenant, [row.subject] if row.subject else [])
    return TimelineRecord(entry=_entry(args.kind, row, names))


def _finding(row: Row) -> dict[str, Any]:
    payload: dict[str, Any] = row.payload
    return {**payload, "id": row.id, "category": row.category, "run_id": row.run_id}


def _fields(*names: str) -> Callable[[Row], dict[str, Any]]:
    return lambda row: {name: getattr(row, name) for name in names}


def _of_findings(only: sa.ColumnElement[bool]) -> Source:
    shown = (findings.c.id, findings.c.category, findings.c.payload, findings.c.run_id)
    signed = (findings.c.author, findings.c.subject)
    return Source(
        (*shown, *signed), findings, findings.c.created_ms, findings.c.seq, findings.c.issue_id, _finding, only
    )


def _of(table: sa.Table, at: str, *shown: str) -> Source:
    columns = [table.c[name] for name in (*shown, "author", "subject")]
    return Source(columns, table, table.c[at], table.c.seq, table.c.issue_id, _fields(*shown))


_LINE = ("id", "path", "side", "line", "code", "content")
_RUN = (*RUN_FIELDS, "agent")
_JUDGED = findings.c.category.in_(ABOUT_PHASES)
SOURCES: Mapping[Kind, Source] = {
    "finding": _of_findings(~_JUDGED),
    "verdict": _of_findings(_JUDGED),
    "comment": _of(comments, "created_ms", "id", "content"),
    "line": Source(
        [*(line_comments.c[name] for name in (*_LINE, "author", "subject")), prs.c.revision],
        line_comments.join(prs, prs.c.id == line_comments.c.pr_id),
        line_comments.c.created_ms,
        line_comments.c.seq,
        line_comments.c.issue_id,
        _fields(*_LINE, "revision"),
    ),
    "run": Source(
        [
            *(agent_runs.c[name] for name in _RUN),
            sa.func.coalesce(agent_runs.c.profile, agent_runs.c.agent, "").label("author"),
            sa.null().label("subject"),
        ],
        agent_runs,
        agent_runs.c.created_ms,
        agent_runs.c.id,
        agent_runs.c.issue_id,
        _fields(*_RUN),
    ),
    "change": _of(issue_changes, "at_ms", "field", "old", "new", "why"),
}


def _wanted(kind: Kind, issue_id: str, after: Place | None) -> sa.Select[Any]:
    """The entries of a kind that come after a place in the order, newest first."""
    source, rank = SOURCES[kind], KINDS.index(kind)
    named = (source.at.label("at_ms"), source.key.label("entry_key"))
    wanted = sa.select(*source.columns, *named).select_from(source.table).where(source.issue == issue_id, source.only)
    if after is not None:
        same = source.at == after.at_ms
        if rank < after.rank:
            wanted = wanted.where(sa.or_(source.at < after.at_ms, same))
        elif rank > after.rank:
            wanted = wanted.where(source.at < after.at_ms)
        else:
            key = after.key if kind == "run" else _number(after.key)
            wanted = wanted.where(sa.or_(source.at < after.at_ms, sa.and_(same, source.key < key)))
    return wanted.order_by(source.at.desc(), source.key.desc())


def _sorting(place: Place) -> tuple[int, int, int, str]:
    """Numbers by their value, ids as texts."""
    is_number = KINDS[place.rank] != "run"
    return place.at_ms, place.rank, int(place.key) if is_number else 0, place.key


def _entry(kind: Kind, row: Row, names: Mapping[str, str]) -> dict[str, Any]:
    signed = names.get(row.subject) or row.author
    return {"kind": kind, "key": str(row.entry_key), "at_ms": row.at_ms, "author": signed, **SOURCES[kind].shown(row)}


def _cut(entry: dict[str, Any]) -> dict[str, Any]:
    """The entry with the beginning of each long text; `cut` says that there is more."""
    long = {name: value[:LONGEST] for name, value in entry.items() if isinstance(value, str) and len(value) > LONGEST}
    return {**entry, **long, "cut": bool(long)}


def _count(ctx: Context, kind: Kind, issue_id: str) -> int:
    source = SOURCES[kind]
    mine = sa.select(sa.func.count()).select_from(source.table).where(source.issue == issue_id, source.only)
    return ctx.tx.scalar(mine)


def _place(cursor: str | None) -> Place | None:
    text = decode_cursor(cursor)
    if text is None:
        return None
    match text.split(" "):
        case [at, rank, key] if at.isdecimal() and len(at) < 18 and rank in map(str, range(len(KINDS))) and key:
            return Place(int(at), int(rank), key)
        case _:
            raise _strange()


def _number(key: str) -> int:
    if not key.isdecimal() or len(key) > 18:
        raise _strange()
    return int(key)


def _strange() -> InvalidParams:
    return InvalidParams("the cursor or key is not one of ours", hint="start again from the newest")
