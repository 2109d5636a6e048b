"""The tool that shows people what waits for them, each with since when, by whom and why."""

from collections.abc import Mapping
from typing import Any, Literal

import sqlalchemy as sa
from pydantic import Field

from rookery.core.context import Context
from rookery.core.tool import ToolInput, ToolOutput, tool
from rookery.db.tx import Tx
from rookery.domains.tracker.tables import issue_changes
from rookery.engine.waiting import BLOCKED, CLAIMS, LATE, MERGES, REVIEWS, STOPPED, Select, figures
from rookery.identity.tables import agents, projects
from rookery.lifecycle.issue_tables import issues

Row = sa.Row[Any]
Kind = Literal["review", "phase_review", "merge", "blocked", "late_run", "silent_run", "stopped_schedule"]
_c = issue_changes.c
_LAST = (
    sa.select(_c.issue_id, sa.func.max(_c.seq).label("seq"))
    .where(_c.issue_id.in_(sa.bindparam("those", expanding=True)), _c.field == "status")
    .group_by(_c.issue_id)
    .subquery()
)
_WHY = sa.select(_c.issue_id, _c.why, _c.at_ms).join(_LAST, _c.seq == _LAST.c.seq)


class WhatWaits(ToolInput):
    limit: int = Field(20, ge=1, le=200, description="Of each kind, at most.")


class WaitingItem(ToolOutput):
    """One thing that a person has to look at. `id` is that of a run or schedule where there is no issue."""

    kind: Kind
    id: str
    issue: str | None = None
    title: str = ""
    project: str | None = None
    agent: str | None = None
    phase: str | None = None
    revision: int | None = None
    risk: str | None = None
    since_ms: int
    reason: str | None = None


class WaitingThings(ToolOutput):
    figures: dict[str, int]
    reviews: list[WaitingItem]
    stuck: list[WaitingItem]


@tool(
    title="What waits", effect="read", action="owner:read", tier="observe", group="System", profiles="",
    default=False, principals="people",
)  # fmt: skip
def what_waits(ctx: Context, args: WhatWaits) -> WaitingThings:
    """Show what waits for a person besides asks: reviews and merges, and what has come to a stop; the oldest first."""
    found = _Found(ctx.tx, ctx.actor.tenant, args.limit)
    reviews = [*found.pulled("merge", MERGES), *found.pulled("review", REVIEWS), *found.claims()]
    return WaitingThings(
        figures=figures(ctx.tx, ctx.actor.tenant),
        reviews=sorted(reviews, key=lambda each: each.since_ms),
        stuck=[*found.blocked(), *found.runs(), *found.schedules()],
    )


class _Found:
    """Reads each kind, with the names of agents and projects."""

    def __init__(self, tx: Tx, tenant: str, limit: int) -> None:
        self._tx, self._tenant, self._limit = tx, tenant, limit
        self._slugs = self._names(projects, projects.c.slug)
        self._agents = self._names(agents, agents.c.name)

    def pulled(self, kind: Kind, wanted: Select) -> list[WaitingItem]:
        """Pull requests."""
        return [
            WaitingItem(kind=kind, id=row.id, revision=row.revision, risk=row.risk_level, **self._issue(row))
            for row in self._rows(wanted, "since_ms")
        ]

    def claims(self) -> list[WaitingItem]:
        """Phases that are claimed to be complete."""
        rows = self._rows(CLAIMS, "since_ms")
        return [WaitingItem(kind="phase_review", id=row.id, phase=row.phase, **self._issue(row)) for row in rows]

    def blocked(self) -> list[WaitingItem]:
        """Issues that only a person moves on, with what was said when they were blocked."""
        rows = self._rows(BLOCKED, "updated_ms")
        moves = self._tx.all(_WHY, {"those": [row.id for row in rows]}) if rows else ()
        why = {move.issue_id: (move.why, move.at_ms) for move in moves}
        items: list[WaitingItem] = []
        for row in rows:
            reason, since = why.get(row.id, (None, row.updated_ms))
            items.append(
                WaitingItem(
                    kind="blocked",
                    id=row.id,
                    issue=row.identifier,
                    title=row.title,
                    project=self._slugs.get(row.project_id),
                    phase=row.phase,
                    reason=reason,
                    since_ms=since,
                )
            )
        return items

    def runs(self) -> list[WaitingItem]:
        """Runs past their deadline, and those of which nothing is heard."""
        rows = self._rows(LATE, "created_ms")
        named = self._identifiers([row.issue_id for row in rows if row.issue_id])
        return [
            WaitingItem(
                kind="silent_run" if row.deadline_ms is None else "late_run",
                id=row.id,
                issue=named.get(row.issue_id or "", ("", ""))[0] or None,
                title=named.get(row.issue_id or "", ("", ""))[1],
                project=self._slugs.get(row.project_id),
                agent=self._agents.get(row.agent or "", row.agent),
                phase=row.phase,
                since_ms=row.updated_ms if row.deadline_ms is None else row.deadline_ms,
                reason=row.error,
            )
            for row in rows
        ]

    def schedules(self) -> list[WaitingItem]:
        """Schedules that were paused because they failed."""
        return [
            WaitingItem(
                kind="stopped_schedule",
                id=row.id,
                title=row.name,
                agent=self._agents.get(row.agent_id, row.agent_id),
                since_ms=row.updated_ms,
                reason=row.reason,
            )
            for row in self._rows(STOPPED, "updated_ms")
        ]

    def _issue(self, row: Row) -> dict[str, Any]:
        return {
            "issue": row.identifier,
            "title": row.title,
            "project": self._slugs.get(row.project_id),
            "agent": self._agents.get(row.subject, None),
            "since_ms": row.since_ms,
        }

    def _rows(self, wanted: Select, order: str) -> list[Row]:
        return list(self._tx.all(wanted.order_by(sa.text(order)).limit(self._limit), {"of_tenant": self._tenant}))

    def _names(self, table: sa.Table, name: sa.Column[Any]) -> Mapping[str, str]:
        rows = self._tx.all(sa.select(table.c.id, name.label("name")).where(table.c.tenant == self._tenant))
        return {row.id: row.name for row in rows}

    def _identifiers(self, ids: list[str]) -> Mapping[str, tuple[str, str]]:
        if not ids:
            return {}
        wanted = sa.select(issues.c.id, issues.c.identifier, issues.c.title).where(
            issues.c.tenant == self._tenant, issues.c.id.in_(ids)
        )
        return {row.id: (row.identifier, row.title) for row in self._tx.all(wanted)}
