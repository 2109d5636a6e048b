"""Writes what happened in many sessions at once: a handful of statements, however many sessions there are."""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from rookery.core.errors import NotFound, ValidationFailed
from rookery.db.bulk import add_rows
from rookery.db.tx import Tx
from rookery.lifecycle.run_events import RunEvent
from rookery.lifecycle.run_tables import agent_runs, run_events
from rookery.sessions.events import NAME, SessionEvent, together
from rookery.sessions.tables import agent_sessions

EVENTS = "session-events"
"""What those are woken by who follow sessions in other processes."""
_TAKE = {
    "sqlite": "UPDATE {table} SET event_count = event_count + each.value{more} FROM json_each(:counts) AS each "
    "WHERE {table}.id = each.key RETURNING {columns}",
    "postgresql": "UPDATE {table} SET event_count = event_count + CAST(each.value AS BIGINT){more} "
    "FROM json_each_text(CAST(:counts AS JSON)) AS each WHERE {table}.id = each.key RETURNING {columns}",
}
_COLUMNS = (
    *("tenant", "run_id", "number", "project_id", "issue_id", "type", "subtype", "payload", "at_ms"),
    *("session", "session_number"),
)
_e = run_events.c
_OF = (_e.tenant == sa.bindparam("of_tenant"), _e.session == sa.bindparam("of_session"))
_LENGTH = sa.func.length(sa.cast(_e.payload, sa.Text))
_SHOWN = (_e.session_number, _e.payload, _e.at_ms, _e.run_id)


def _within_room(some: sa.Select[*tuple[Any, ...]], order: sa.ColumnElement[Any]) -> sa.Select[*tuple[Any, ...]]:
    """So many of them as have room together, but always the first."""
    sized = (
        some.add_columns(
            (sa.func.sum(_LENGTH).over(order_by=order) - _LENGTH).label("before"),
        )
        .order_by(order)
        .limit(sa.bindparam("at_most"))
        .subquery()
    )
    fitting = sized.c.before < sa.bindparam("room", type_=sa.BigInteger)
    return sa.select(sized).where(fitting).order_by(sized.c.session_number)


_AFTER = _within_room(
    sa.select(*_SHOWN).where(*_OF, _e.session_number > sa.bindparam("after", type_=sa.BigInteger)),
    _e.session_number.asc(),
)
_BEFORE = _within_room(
    sa.select(*_SHOWN).where(*_OF, _e.session_number < sa.bindparam("before", type_=sa.BigInteger)),
    _e.session_number.desc(),
)
_LAST = _within_room(sa.select(*_SHOWN).where(*_OF), _e.session_number.desc())
AT_ONCE = 500
ROOM = 1 << 20
"""So many characters of events are read at a time."""


def _taking(table: sa.Table, columns: Sequence[str], more: str = "") -> Mapping[str, sa.TextualSelect]:
    """For each database the statement that takes the next numbers in many rows and says what they are now."""
    named = ", ".join(f"{table.name}.{column}" for column in columns)
    given = [table.c[column] for column in columns]
    return {
        dialect: sa.text(text.format(table=table.name, columns=named, more=more)).columns(*given)
        for dialect, text in _TAKE.items()
    }


_TAKE_SESSIONS = _taking(agent_sessions, ("id", "tenant", "event_count"))
_TAKE_RUNS = _taking(agent_runs, ("id", "tenant", "event_count", "project_id", "issue_id"), ", updated_ms = :at_ms")


@dataclass(frozen=True, slots=True)
class Kept:
    """An event as it is kept: the `number` counts from 1 in its session."""

    number: int
    name: str
    data: dict[str, Any]
    at_ms: int
    run_id: str


@dataclass(slots=True)
class Happened:
    """What is still to be written of one session: each event with its run."""

    tenant: str
    session_id: str
    events: list[tuple[str, SessionEvent]] = field(default_factory=list[tuple[str, SessionEvent]])

    def rows(self) -> list[tuple[str, RunEvent]]:
        """The same as events of runs, with pieces of one text put together."""
        parts: list[tuple[str, list[SessionEvent]]] = []
        for run_id, event in self.events:
            if not parts or parts[-1][0] != run_id:
                parts.append((run_id, []))
            parts[-1][1].append(event)
        return [(run_id, _kept(event)) for run_id, events in parts for event in together(events)]


def _kept(event: SessionEvent) -> RunEvent:
    """As an event of a run. One that cannot be kept takes no other along: that it was there is kept instead."""
    try:
        return event.kept
    except ValidationFailed as error:
        return SessionEvent("system", {"text": f"{event.name} cannot be recorded: {error.message}"}, event.at_ms).kept


def kept_after(tx: Tx, tenant: str, session_id: str, after: int, limit: int = AT_ONCE) -> list[Kept]:
    """The next events of a session after that number, as many as are read at a time."""
    return _read(tx, _AFTER, of_tenant=tenant, of_session=session_id, after=after, at_most=limit, room=ROOM)


def kept_before(tx: Tx, tenant: str, session_id: str, before: int, limit: int = AT_ONCE) -> list[Kept]:
    """The last events of a session before that number, oldest first, as many as are read at a time."""
    return _read(tx, _BEFORE, of_tenant=tenant, of_session=session_id, before=before, at_most=limit, room=ROOM)


def kept_last(tx: Tx, tenant: str, session_id: str, limit: int, room: int = ROOM) -> list[Kept]:
    """The last events of a session, oldest first, as far as so many characters go; one at least."""
    return _read(tx, _LAST, of_tenant=tenant, of_session=session_id, at_most=limit, room=room)


def _read(tx: Tx, statement: sa.Select[*tuple[Any, ...]], **values: Any) -> list[Kept]:
    rows = tx.all(statement, values)
    return [_shown(row.session_number, row.payload, row.at_ms, row.run_id) for row in rows]


def keep(tx: Tx, batch: Sequence[Happened]) -> list[tuple[str, list[Kept]]]:
    """Write what happened, and what it is now, session by session. NotFound if a session or a run is not there."""
    rows = {each.session_id: each.rows() for each in sorted(batch, key=lambda each: each.session_id)}
    in_runs: dict[str, int] = {}
    for events in rows.values():
        for run_id, _ in events:
            in_runs[run_id] = in_runs.get(run_id, 0) + 1
    sessions = _taken(tx, _TAKE_SESSIONS, {session_id: len(events) for session_id, events in rows.items()})
    latest = max((event.at_ms or 0 for events in rows.values() for _, event in events), default=0)
    runs = _taken(tx, _TAKE_RUNS, in_runs, at_ms=latest)
    next_of = {run_id: run.event_count - in_runs[run_id] for run_id, run in runs.items()}
    values: list[tuple[Any, ...]] = []
    written: list[tuple[str, list[Kept]]] = []
    for each in batch:
        events, session = rows[each.session_id], sessions[each.session_id]
        if session.tenant != each.tenant:
            raise _lost(each.session_id)
        kept: list[Kept] = []
        for number, (run_id, event) in enumerate(events, session.event_count - len(events) + 1):
            run = runs[run_id]
            if run.tenant != each.tenant:
                raise _lost(run_id)
            next_of[run_id] += 1
            kept.append(_shown(number, dict(event.payload), event.at_ms or latest, run_id))
            place = (each.tenant, run_id, next_of[run_id], run.project_id, run.issue_id)
            said = json.dumps(event.payload, ensure_ascii=False)
            values.append((*place, event.type, event.subtype, said, kept[-1].at_ms, each.session_id, number))
        written.append((each.session_id, kept))
    add_rows(tx, run_events.name, _COLUMNS, values)
    tx.wake(EVENTS)
    return written


def keep_again(tx: Tx, each: Happened, known: int | None) -> list[tuple[str, list[Kept]]]:
    """The same for one session whose events were written before, perhaps: nobody knows whether that was committed.

    `known` is the number of the last event that surely was there before them.
    """
    rows = each.rows()
    stored = kept_last(tx, each.tenant, each.session_id, len(rows), room=sys.maxsize >> 1)
    wanted = [(run_id, event.at_ms, _shown(0, dict(event.payload), 0, run_id)) for run_id, event in rows]
    there = [(kept.run_id, kept.at_ms, kept.name, kept.data) for kept in stored]
    if there == [(run_id, at_ms, kept.name, kept.data) for run_id, at_ms, kept in wanted] and (
        known is None or stored[0].number == known + 1
    ):
        return [(each.session_id, stored)]
    return keep(tx, [each])


def _taken(
    tx: Tx, statement: Mapping[str, sa.TextualSelect], counts: Mapping[str, int], **values: Any
) -> dict[str, sa.Row[Any]]:
    """The rows in which so many numbers were taken. Until the commit nobody else gets any: they are locked by this."""
    rows = {row.id: row for row in tx.all(statement[tx.dialect], {"counts": json.dumps(counts), **values})}
    for wanted in counts:
        if wanted not in rows:
            raise _lost(wanted)
    return rows


def _lost(what: str) -> NotFound:
    return NotFound(f"there is no {what} to keep events of", hint="it was removed")


def _shown(number: int, payload: dict[str, Any], at_ms: int, run_id: str) -> Kept:
    data = {name: value for name, value in payload.items() if name != NAME}
    return Kept(number, payload.get(NAME, "system"), data, at_ms, run_id)
