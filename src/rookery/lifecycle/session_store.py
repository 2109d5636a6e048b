"""Runs that are sessions of agents: their beginning, their deadline and their end, each one transaction."""

from dataclasses import replace
from typing import Any

import sqlalchemy as sa

from rookery.core.actor import Actor
from rookery.core.errors import Conflict
from rookery.db.clock import DbNow, now_ms
from rookery.db.tx import Tx
from rookery.jobs.store import Jobs
from rookery.jobs.tables import jobs
from rookery.ledger.rates import rates_of
from rookery.ledger.store import Ledger, wallet_of
from rookery.lifecycle.issue_tables import issues
from rookery.lifecycle.run_store import NewRun, Row, Runs, RunStatus, Usage
from rookery.lifecycle.run_tables import agent_runs
from rookery.lifecycle.sessions import Outcome

LONGEST = 4
"""A session lasts at most so many times as long as it was given at first, however often that is extended. What it
waits for people does not count."""
END_LOST = "sessions.end_lost"
HOUR_MS, MINUTE_MS = 3_600_000, 60_000
LOST = "its worker ended without ending it"
NO_SESSION = "this session has no deadline"

_r, _j = agent_runs.c, jobs.c
_MINE = (_r.tenant == sa.bindparam("of_tenant"), _r.status == "running")
_LOOKED_AFTER = sa.exists().where(
    _j.id == _r.job_id, _j.attempt == _r.attempt, _j.state == "running", _j.lease_ms >= DbNow()
)
_END_LOST = (
    sa.update(agent_runs)
    .where(*_MINE, _r.job_id.is_not(None), ~_LOOKED_AFTER)
    .values(status="stalled", error=LOST, ended_ms=DbNow(), updated_ms=DbNow())
    .returning(_r.hold, _r.agent)
)
_WAITED = sa.func.coalesce(_r.waited_ms, 0)
_TIME = sa.select(
    (_r.deadline_ms - DbNow()).label("left_ms"), (_r.deadline_ms - _r.started_ms - _WAITED).label("lasts_ms")
).where(*_MINE, _r.id == sa.bindparam("of_run"))
_OWN = sa.select(agent_runs).where(
    *_MINE,
    _r.agent == sa.bindparam("of_agent"),
    sa.or_(_r.id == sa.bindparam("of_run"), _r.key == sa.bindparam("of_key")),
)
_LATEST = _r.started_ms + LONGEST * _r.base_ms + _WAITED
_LATER = _r.deadline_ms + sa.bindparam("by_ms", type_=sa.BigInteger)
_EXTEND = (
    sa.update(agent_runs)
    .where(*_MINE, _r.id == sa.bindparam("of_run"), _r.deadline_ms > DbNow(), _r.deadline_ms < _LATEST)
    .values(deadline_ms=sa.case((_LATER < _LATEST, _LATER), else_=_LATEST), updated_ms=DbNow())
    .returning(agent_runs)
)

_BY = sa.bindparam("by_ms", type_=sa.BigInteger)
_WAIT = (
    sa.update(agent_runs)
    .where(*_MINE, _r.id == sa.bindparam("of_run"))
    .values(deadline_ms=_r.deadline_ms + _BY, waited_ms=_WAITED + _BY, updated_ms=DbNow())
    .returning(_r.id)
)


class SessionRuns:
    """The sessions of one tenant, by the database's clock."""

    def __init__(self, tx: Tx, tenant: str) -> None:
        self.tx = tx
        self.tenant = tenant
        self._runs = Runs(tx, tenant, now=lambda: now_ms(tx))
        self._ledger = Ledger(tx, tenant)

    def begin(self, new: NewRun, base_ms: int, turns: int) -> Row:
        """A run that goes on from now; runs that nobody looks after any more are ended first.

        The credits of so many `turns` are held back, as far as the agent has them.
        """
        self.end_lost()
        look_for_lost(self.tx, self.tenant)
        held = None
        if new.agent is not None:
            price = turns * rates_of(self.tx, self.tenant)["credits_per_turn"]
            held = self._ledger.reserve_up_to(wallet_of(new.agent), price, new.key or "session")
        at_ms = now_ms(self.tx)
        return Runs(self.tx, self.tenant, now=lambda: at_ms).start(
            replace(
                new,
                issue_id=self._issue_there(new),
                base_ms=base_ms,
                deadline_ms=at_ms + base_ms,
                hold=held.id if held is not None else None,
            )
        )

    def end_lost(self) -> None:
        """End the runs whose worker has died or lost its job, and give back what was held for them."""
        lost = self.tx.all(_END_LOST, {"of_tenant": self.tenant})
        for row in sorted(lost, key=lambda row: row.agent or ""):
            if row.hold is not None:
                self._ledger.release(row.hold)

    def note_session(self, run_id: str, session_id: str) -> None:
        """Keep what the runtime calls the session."""
        self.tx.run(
            sa.update(agent_runs)
            .where(_r.tenant == self.tenant, _r.id == run_id)
            .values(session=session_id, updated_ms=DbNow())
        )

    def finish(self, run_id: str, status: RunStatus, outcome: Outcome) -> Row:
        """The end of the run: what it cost in money and tokens is added, and its turns are paid for.

        Called once, by whoever waited for the session. If the run was taken for lost meanwhile it stays so, and what it
        cost counts all the same.
        """
        turns, taken, given = outcome.counts
        usage = Usage(cost_micros=outcome.cost_micros, input_tokens=taken, output_tokens=given, turns=turns)
        run = self._runs.spend(run_id, usage)
        price = turns * rates_of(self.tx, self.tenant)["credits_per_turn"] if run.agent is not None else 0
        try:
            run = self._runs.move(run_id, status, error=outcome.error or None)
        except Conflict:
            held = 0
        else:
            held = self._settle(run.hold, price)
        if run.agent is not None:
            self._ledger.deduct_up_to(wallet_of(run.agent), price - held, run_id)
        return run

    def time_of(self, run_id: str) -> tuple[int, int]:
        """How many milliseconds the session may still take, 0 or less if its time is over, and how many altogether."""
        row = self.tx.one(_TIME, {"of_tenant": self.tenant, "of_run": run_id})
        return (0, 0) if row is None else (row.left_ms, row.lasts_ms)

    def waited(self, run_id: str, by_ms: int) -> None:
        """The session has waited so long for a person: its deadline is as much later, and so is the latest one."""
        self.tx.one(_WAIT, {"of_tenant": self.tenant, "of_run": run_id, "by_ms": by_ms})

    def extend(self, actor: Actor, by_ms: int) -> Row:
        """The run of the actor's session with a later deadline, but never later than 4 times its first length."""
        run = self._own(actor)
        later = self.tx.one(_EXTEND, {"of_tenant": self.tenant, "of_run": run.id, "by_ms": by_ms})
        if later is not None:
            return later
        if run.deadline_ms >= run.started_ms + LONGEST * run.base_ms + (run.waited_ms or 0):
            most = LONGEST * run.base_ms / 60_000
            raise Conflict(f"the session has all of its {most:g} minutes already", hint="come to an end in time")
        raise Conflict("the session's time is over", hint="it is being stopped")

    def _own(self, actor: Actor) -> Row:
        named: dict[str, Any] = {"of_run": actor.run or "", "of_key": actor.session or "", "of_agent": actor.agent}
        run = self.tx.one(_OWN, {"of_tenant": self.tenant, **named})
        if run is None or run.deadline_ms is None:
            raise Conflict(NO_SESSION, hint="only sessions that Rookery started have one, until they end")
        return run

    def _settle(self, hold: str | None, price: int) -> int:
        """What of the price was held back and is paid by that."""
        held = self._ledger.transaction(hold) if hold is not None else None
        if held is None:
            return 0
        spent = min(price, held.amount)
        self._ledger.settle(held.id, spent)
        return spent

    def _issue_there(self, new: NewRun) -> str | None:
        """The issue, if it is in the project of the run: whoever sees that project sees it too."""
        there = sa.select(issues.c.id).where(
            issues.c.tenant == self.tenant, issues.c.id == new.issue_id, issues.c.project_id == new.project_id
        )
        return self.tx.scalar(there) if new.issue_id is not None else None


def look_for_lost(tx: Tx, tenant: str) -> None:
    """Have lost runs looked for when the hour is over, by one job however often this is asked for."""
    # Not in a moment: whoever looks must see what is being written now.
    due_ms = ((now_ms(tx) + MINUTE_MS) // HOUR_MS + 1) * HOUR_MS
    Jobs(tx, tenant).defer(END_LOST, {}, at_ms=due_ms, key=f"{END_LOST}:{due_ms}")
