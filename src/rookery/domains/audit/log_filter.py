"""Which records of the audit log somebody wants to see.

The log has hardly an index, since every call writes it: it is read backwards, so many records at a time. A record is
written when its call ends, so the log is in the order of these times, and a time is found in it by halving.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import sqlalchemy as sa
from pydantic import Field, StringConstraints

from rookery.around.audit import audit_log
from rookery.core.context import Context
from rookery.core.pages import decode_number
from rookery.core.tool import ToolInput
from rookery.db.tx import Tx
from rookery.identity.store import IdentityStore
from rookery.identity.tables import agents, people
from rookery.lifecycle.issue_ref import find_issue

Words = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200)]
Condition = sa.ColumnElement[bool]

LOOKED_AT = 100_000
"""One answer looks at so many records at most, found or not."""
LONGEST_CALL_MS = 86_400_000
"""A call that began before a time may have been written down so much later."""
CLOCKS_MS = 3_600_000
"""So much the clocks of processes that write the same log may differ."""
MOST_NAMED = 200
_t = audit_log.c
_SEARCHED = (
    "tool", "outcome", "code", "layer", "source", "kind", "effect", "profile", "request", "agent", "subject", "session",
    "issue",
)  # fmt: skip


class AuditFilter(ToolInput):
    text: Words | None = Field(None, description="Anywhere in a name, an outcome or an id.")
    tool: Words | None = Field(None, description="Only of this tool.")
    who: Words | None = Field(None, description="Only of this agent or person, by name or id.")
    effect: Words | None = Field(
        None, description="Only of tools that read, write or reach out: read, write, external."
    )
    outcome: Words | None = Field(None, description="Such as done, refused or failed.")
    project: Words | None = Field(None, description="Only in this project: slug or id.")
    issue: Words | None = Field(None, description="Only about this issue: id or identifier.")
    session: Words | None = Field(None, description="Only of this session.")
    request: Words | None = Field(None, description="Only of this request.")
    since_ms: int | None = Field(None, ge=0, lt=1 << 53, description="Not before.")
    until_ms: int | None = Field(None, ge=0, lt=1 << 53, description="Before.")
    cursor: str | None = Field(None, max_length=200, description="Where to go on, as returned.")


@dataclass(frozen=True, slots=True)
class Stretch:
    """The part of the log that one answer looks at: records from `first` on and before `end`. `newest` is the last that
    there was when it was chosen."""

    first: int
    end: int
    is_last: bool
    newest: int

    def conditions(self) -> tuple[Condition, Condition]:
        return _t.id >= self.first, _t.id < self.end


def stretch(tx: Tx, wanted: AuditFilter) -> Stretch:
    """Where to look now: before the cursor, and within the time that is wanted."""
    last = last_row(tx)
    end = last + 1 if wanted.until_ms is None else _first_written(tx, wanted.until_ms + LONGEST_CALL_MS, last) + 1
    before = decode_number(wanted.cursor)
    end = end if before is None else min(before, end)
    oldest = 1 if wanted.since_ms is None else _first_written(tx, wanted.since_ms - CLOCKS_MS, last)
    return Stretch(max(end - LOOKED_AT, oldest), end, end - LOOKED_AT <= oldest, last)


def conditions(ctx: Context, wanted: AuditFilter) -> list[Condition]:
    """What holds for a record that is wanted and may be seen."""
    found = visible(ctx)
    for name in ("tool", "effect", "outcome", "session", "request"):
        if (value := getattr(wanted, name)) is not None:
            found.append(_t[name] == value)
    if wanted.project is not None:
        found.append(_t.project == IdentityStore(ctx.tx, ctx.actor.tenant).project(wanted.project, ctx.actor.closed).id)
    if wanted.issue is not None:
        issue = find_issue(ctx.tx, ctx.actor.tenant, wanted.issue)
        found.append(_t.issue == (wanted.issue if issue is None else issue.id))
    if wanted.who is not None:
        who = wanted.who
        found.append(_by([who, *_ids(ctx, lambda name: sa.func.lower(name) == who.lower())]))
    if wanted.since_ms is not None:
        found.append(_t.at_ms >= wanted.since_ms)
    if wanted.until_ms is not None:
        found.append(_t.at_ms < wanted.until_ms)
    if wanted.text is not None:
        found.append(_saying(ctx, wanted.text))
    return found


def visible(ctx: Context) -> list[Condition]:
    """Records of the tenant, without those of projects in which the caller has no role."""
    mine = [_t.tenant == ctx.actor.tenant]
    if ctx.actor.closed:
        mine.append(sa.or_(_t.project.is_(None), _t.project.not_in(sorted(ctx.actor.closed))))
    return mine


def last_row(tx: Tx) -> int:
    """The number of the newest record; 0 if there is none."""
    return tx.scalar(sa.select(sa.func.max(_t.id))) or 0


def _first_written(tx: Tx, at_ms: int, last: int) -> int:
    """The first record that was written then or later; the last if there is none."""
    low, high = 1, max(last, 1)
    written = sa.select(_t.at_ms + _t.duration_us / 1000).order_by(_t.id).limit(1)
    while low < high:
        middle = (low + high) // 2
        found = tx.scalar(written.where(_t.id >= middle))
        if found is None or found >= at_ms:
            high = middle
        else:
            low = middle + 1
    return low


def _saying(ctx: Context, text: str) -> Condition:
    """Records with the text in one of their columns, or by somebody with it in their name."""
    named = _ids(ctx, lambda name: name.icontains(text, autoescape=True))
    return sa.or_(_words().contains(text.lower(), autoescape=True), *([_by(named)] if named else []))


def _words() -> sa.ColumnElement[str]:
    """The columns that are searched as one text: a condition for each of them takes twice as long."""
    words: sa.ColumnElement[str] = sa.literal("", sa.Text)
    for name in _SEARCHED:
        words = words + sa.func.coalesce(_t[name], "") + "\n"
    return sa.func.lower(words)


def _by(ids: Sequence[str]) -> Condition:
    return sa.or_(_t.agent.in_(ids), _t.subject.in_(ids))


def _ids(ctx: Context, condition: Callable[[sa.Column[Any]], Condition]) -> list[str]:
    """The agents and people with such a name."""
    named = (
        sa.select(table.c.id).where(table.c.tenant == ctx.actor.tenant, condition(table.c.name))
        for table in (agents, people)
    )
    return [row.id for row in ctx.tx.all(sa.union_all(*named).limit(MOST_NAMED))]
