"""A turn whose process ended in the middle of it: it is told as lost, once, by whoever finds it."""

from collections.abc import Mapping

import sqlalchemy as sa

from rookery.db.clock import now_ms
from rookery.db.tx import Tx
from rookery.lifecycle.run_store import NewRun, Row, Runs
from rookery.lifecycle.run_tables import agent_runs
from rookery.lifecycle.session_store import SessionRuns
from rookery.lifecycle.sessions import Outcome
from rookery.sessions.ending import Said, turn_input
from rookery.sessions.events import SessionEvent, done
from rookery.sessions.store import SessionRows
from rookery.sessions.tables import RUNNING, WAITING
from rookery.sessions.turn_end import end_turn, has_done, has_input

LOST = "the program in which this turn ran ended in the middle of it; the next message goes on from there"
_r = agent_runs.c
_RUN = sa.select(agent_runs).where(_r.tenant == sa.bindparam("of_tenant"), _r.id == sa.bindparam("of_run"))


def run_of(tx: Tx, tenant: str, run_id: str | None) -> Row | None:
    return tx.one(_RUN, {"of_tenant": tenant, "of_run": run_id or ""})


def tell_lost(tx: Tx, tenant: str, session_id: str, run_id: str, message_id: str | None) -> None:
    """End the turn of that run with an error and its `done`, unless it has one. What it asked stays open."""
    rows = SessionRows(tx, tenant)
    message = rows.message(session_id, message_id) if message_id is not None else None
    _tell(tx, tenant, session_id, run_id, message, LOST, {"code": "LOST"})
    if message_id is not None:
        rows.end_message(message_id, "lost", run_id)


def tell_refused(tx: Tx, tenant: str, session: Row, message: Row, new: NewRun, why: str) -> None:
    """The turn of a message for whose session no agent can be had by now: it has a run, an error and its `done`."""
    rows, runs = SessionRows(tx, tenant), Runs(tx, tenant, now=lambda: now_ms(tx))
    run = runs.start(new)
    rows.began(session, run.id)
    _tell(tx, tenant, session.id, run.id, message, why, {})
    rows.end_message(message.id, "done", run.id)
    runs.move(run.id, "failed", error=why)


def _tell(
    tx: Tx, tenant: str, session_id: str, run_id: str, message: Row | None, why: str, more: Mapping[str, str]
) -> None:
    """End a turn that does not come to its end by itself; its beginning is told if that is missing as well."""
    outcome = Outcome("failed", error=why, turns=0)
    events = [SessionEvent("error", {"message": why, **more}), done(outcome, "failed")]
    if message is not None and not has_input(tx, tenant, run_id):
        events.insert(0, turn_input(Said(text=message.text, sent_by=message.sent_by, id=message.id)))
    error = None if has_done(tx, tenant, run_id) else why
    end_turn(tx, tenant, session_id, run_id, outcome, error, events)


def is_busy(tx: Tx, tenant: str, session: Row, but_job: int | None = None) -> bool:
    """Whether a turn of the session is under way, in whatever process. One that nobody looks after is told as lost.

    One of the job `but_job` does not count: whoever asks is at that job.
    """
    if session.state not in (RUNNING, WAITING) or session.run_id is None:
        return False
    SessionRuns(tx, tenant).end_lost()
    run = run_of(tx, tenant, session.run_id)
    if run is None or (but_job is not None and run.job_id == but_job):
        return False
    if run.status == "running":
        return True
    tell_lost(tx, tenant, session.id, run.id, None)
    return False
