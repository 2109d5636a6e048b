"""Keeps runs and their events. Whoever runs agents writes here; domains read."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import sqlalchemy as sa

from rookery.core.errors import Conflict, NotFound
from rookery.core.ids import new_id
from rookery.db.tx import Tx
from rookery.identity.store import now_ms
from rookery.lifecycle.run_events import EventSubtype, EventType, RunEvent, check_pair, stored_payload
from rookery.lifecycle.run_tables import agent_runs, run_events
from rookery.lifecycle.states import RUN, Who
from rookery.repute.events import ReputationEvent, add_events, agent_called, session_key

Row = sa.Row[Any]
RunStatus = Literal["queued", "running", "succeeded", "failed", "timed_out", "stalled", "cancelled"]
MAX_ERROR = 5000


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRun:
    """What is known of a run before it starts."""

    project_id: str
    issue_id: str | None = None
    agent: str | None = None
    profile: str | None = None
    phase: str | None = None
    session: str | None = None
    attempt: int = 1
    kind: str | None = None
    key: str | None = None
    job_id: int | None = None
    base_ms: int | None = None
    deadline_ms: int | None = None
    hold: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What was spent, in millionths of a dollar, in tokens and in turns of the agent."""

    cost_micros: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    turns: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class EventFilter:
    """Which events: of one run or of all runs of an issue, and of which kind."""

    run_id: str | None = None
    issue_id: str | None = None
    type: EventType | None = None
    subtype: EventSubtype | None = None


class Runs:
    """Runs of one tenant. Those of `closed` projects do not exist for the caller."""

    def __init__(
        self, tx: Tx, tenant: str, *, closed: frozenset[str] = frozenset(), now: Callable[[], int] = now_ms
    ) -> None:
        self.tx = tx
        self.tenant = tenant
        self._closed = closed
        self._now = now

    def queue(self, new: NewRun) -> Row:
        """A run that waits for its turn."""
        return self._create(new, "queued")

    def start(self, new: NewRun) -> Row:
        """A run that goes on at once."""
        return self._create(new, "running")

    def of(self, run_id: str) -> Row:
        """The run with this id, or NotFound."""
        run = self.tx.one(sa.select(agent_runs).where(*self._seen(agent_runs), agent_runs.c.id == run_id))
        if run is None:
            raise NotFound(f"there is no run {run_id}", hint="get_issue shows the runs of an issue")
        return run

    def recent(self, issue_id: str, limit: int) -> Sequence[Row]:
        """The newest runs of an issue, newest first."""
        return self.page(limit, issue_id=issue_id)

    def page(
        self,
        limit: int,
        *,
        issue_id: str | None = None,
        project_id: str | None = None,
        status: str | None = None,
        before: tuple[int, str] | None = None,
    ) -> Sequence[Row]:
        """Runs, newest first; those older than `before`, which is the `created_ms` and `id` of one."""
        wanted = sa.select(agent_runs).where(*self._seen(agent_runs)).limit(limit)
        for column, value in (("issue_id", issue_id), ("project_id", project_id), ("status", status)):
            if value is not None:
                wanted = wanted.where(agent_runs.c[column] == value)
        newest = sa.tuple_(agent_runs.c.created_ms, agent_runs.c.id)
        if before is not None:
            wanted = wanted.where(newest < sa.tuple_(sa.literal(before[0], sa.BigInteger), sa.literal(before[1])))
        return self.tx.all(wanted.order_by(agent_runs.c.created_ms.desc(), agent_runs.c.id.desc()))

    def move(
        self,
        run_id: str,
        to: RunStatus,
        *,
        who: Who = "orchestrator",
        error: str | None = None,
        session: str | None = None,
    ) -> Row:
        """Bring the run into another state and return it. Of two that try at once one is refused, with the legal moves.

        `running` sets its start, a state that nothing follows its end. Of `error` the beginning is kept, as far as it
        is text: it may be whatever a dying process said last.
        """
        now = self._now()
        values: dict[str, Any] = {"status": to, "updated_ms": now}
        if error is not None:
            values["error"] = error[:MAX_ERROR].replace("\0", "").encode("utf-8", "replace").decode()
        if session is not None:
            values["session"] = session
        if to == "running":
            values["started_ms"] = now
        elif to in RUN.states and RUN.terminal(to):
            values["ended_ms"] = now
        legal = [state for state in RUN.states if to in RUN.legal(state, who)]
        moved = self._change(run_id, values, agent_runs.c.status.in_(legal))
        if moved is not None:
            self._tell(moved)
            return moved
        RUN.check(self.of(run_id).status, to, who)
        raise Conflict(f"the run {run_id} was moved at the same moment", hint="look at it and try again")

    def _tell(self, run: Row) -> None:
        """A session that has ended counts for the reputation of its agent."""
        agent_id = agent_called(self.tx, self.tenant, run.agent) if RUN.terminal(run.status) else None
        if agent_id is not None:
            ended = ReputationEvent(
                tenant=self.tenant,
                agent_id=agent_id,
                type="session_completed",
                impact=1,
                about={"run": run.id, "status": run.status},
                # Its calls count it as well, by what they call the session.
                key=session_key(run.key or run.id, run.ended_ms),
            )
            add_events(self.tx, [ended])

    def spend(self, run_id: str, usage: Usage) -> Row:
        """Add to what the run has cost."""
        spent = {name: sa.func.coalesce(agent_runs.c[name], 0) + value for name, value in asdict(usage).items()}
        run = self._change(run_id, {**spent, "updated_ms": self._now()})
        return run if run is not None else self.of(run_id)

    def append(self, run_id: str, events: Sequence[RunEvent], *, after: int | None = None) -> int:
        """Add events to the run, all or none, and return the number of its last one.

        Numbers have no gaps, whoever else writes. With `after`, the number of the last event that the writer knows of,
        it may send the same again when it does not know whether the first time succeeded: what is there already is not
        added twice, and if something else is there this is a Conflict. Also after the end of a run, since the last
        words of a process may come late.
        """
        rows = [self._row(event) for event in events]
        if not rows:
            return self.of(run_id).event_count
        run = self._count(run_id, len(rows), after)
        if run is None:
            # From here on the row is locked, so what is compared stays as it is.
            run = self._count(run_id, 0, None) or self.of(run_id)
            rows = rows[self._there(run, rows, after or 0) :]
            run = self._count(run_id, len(rows), None) or self.of(run_id)
        common = {"tenant": self.tenant, "run_id": run_id, "project_id": run.project_id, "issue_id": run.issue_id}
        first = run.event_count - len(rows) + 1
        if rows:
            self.tx.run(sa.insert(run_events), [{**common, **row, "number": first + at} for at, row in enumerate(rows)])
        return run.event_count

    def events(self, wanted: EventFilter, *, limit: int, offset: int = 0) -> tuple[Sequence[Row], int]:
        """Events in the order in which they were stored, and how many there are in all."""
        found = [*self._seen(run_events)]
        for name, value in asdict(wanted).items():
            if value is not None:
                found.append(run_events.c[name] == value)
        order = run_events.c.seq if wanted.run_id is None else run_events.c.number
        rows = self.tx.all(sa.select(run_events).where(*found).order_by(order).limit(limit).offset(offset))
        return rows, self.tx.scalar(sa.select(sa.func.count()).select_from(run_events).where(*found))

    def last_events(self, run: Row, limit: int) -> Sequence[Row]:
        """The last events of a run, in order."""
        after = run_events.c.number > run.event_count - limit
        found = (*self._seen(run_events), run_events.c.run_id == run.id, after)
        return self.tx.all(sa.select(run_events).where(*found).order_by(run_events.c.number))

    def _seen(self, table: sa.Table) -> Sequence[sa.ColumnElement[bool]]:
        mine = table.c.tenant == self.tenant
        return (mine, table.c.project_id.not_in(sorted(self._closed))) if self._closed else (mine,)

    def _create(self, new: NewRun, status: RunStatus) -> Row:
        now, spent = self._now(), asdict(Usage())
        times = {"created_ms": now, "started_ms": now if status == "running" else None, "updated_ms": now}
        values = {"id": new_id("run"), "tenant": self.tenant, "status": status, "event_count": 0, **spent, **times}
        run = self.tx.one(sa.insert(agent_runs).values(**asdict(new), **values).returning(*agent_runs.c))
        assert run is not None
        return run

    def _change(self, run_id: str, values: dict[str, Any], *guards: sa.ColumnElement[bool]) -> Row | None:
        mine = (*self._seen(agent_runs), agent_runs.c.id == run_id, *guards)
        return self.tx.one(sa.update(agent_runs).where(*mine).values(**values).returning(*agent_runs.c))

    def _count(self, run_id: str, more: int, after: int | None) -> Row | None:
        """Take the next numbers. Until the commit nobody else gets any: the run's row is locked by this."""
        guards = () if after is None else (agent_runs.c.event_count == after,)
        values = {"event_count": agent_runs.c.event_count + more, "updated_ms": self._now()}
        return self._change(run_id, values, *guards)

    def _there(self, run: Row, rows: Sequence[dict[str, Any]], after: int) -> int:
        """How many of `rows` the run has already; a Conflict if it has others there, or nothing yet before them."""
        if run.event_count < after:
            raise Conflict(
                f"the run {run.id} has {run.event_count} events, so nothing can follow event {after}",
                hint=f"send the events after {run.event_count} again",
            )
        follows = (*self._seen(run_events), run_events.c.run_id == run.id, run_events.c.number > after)
        stored = self.tx.all(sa.select(run_events).where(*follows).order_by(run_events.c.number).limit(len(rows)))
        for row, sent in zip(stored, rows, strict=False):
            if any(getattr(row, name) != sent[name] for name in ("type", "subtype", "payload")):
                raise Conflict(
                    f"event {row.number} of the run {run.id} is another one", hint="another writer was faster"
                )
        return len(stored)

    def _row(self, event: RunEvent) -> dict[str, Any]:
        check_pair(event.type, event.subtype)
        at_ms = event.at_ms if event.at_ms is not None else self._now()
        payload = stored_payload(event.payload)
        return {"type": event.type, "subtype": event.subtype, "payload": payload, "at_ms": at_ms}
