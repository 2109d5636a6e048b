"""A turn whose process ended in the middle of it: it is told as lost, once, by whoever finds it."""

import sqlalchemy as sa

from rookery.db.tx import Tx
from rookery.lifecycle.run_store import Row
from rookery.lifecycle.run_tables import agent_runs, run_events
from rookery.lifecycle.session_store import SessionRuns
from rookery.lifecycle.sessions import Outcome
from rookery.sessions.events import SessionEvent, done
from rookery.sessions.store import SessionRows
from rookery.sessions.tables import RUNNING, WAITING
from rookery.sessions.writing import Happened, keep

LOST = "the program in which this turn ran ended in the middle of it; the next message goes on from there"
_e, _r = run_events.c, agent_runs.c
_OF_RUN = (_e.tenant == sa.bindparam("of_tenant"), _e.run_id == sa.bindparam("of_run"))
_DONE = sa.select(_e.seq).where(*_OF_RUN, _e.type == "result").limit(1)
_INPUT = sa.select(_e.seq).where(*_OF_RUN, _e.subtype == "input").limit(1)
_RUN = sa.select(agent_runs).where(_r.tenant == sa.bindparam("of_tenant"), _r.id == sa.bindparam("of_run"))


def run_of(tx: Tx, tenant: str, run_id: str | None) -> Row | None:
    return tx.one(_RUN, {"of_tenant": tenant, "of_run": run_id or ""})


def tell_lost(tx: Tx, tenant: str, session_id: str, run_id: str, message_id: str | None) -> None:
    """End the turn of that run with an error and its `done`, unless it has one. What it asked stays open."""
    rows, of_run = SessionRows(tx, tenant), {"of_tenant": tenant, "of_run": run_id}
    if tx.one(_DONE, of_run) is None:
        outcome = Outcome("failed", error=LOST, turns=0)
        events = [SessionEvent("error", {"message": LOST, "code": "LOST"}), done(outcome, "failed")]
        message = rows.message(session_id, message_id) if message_id is not None else None
        if message is not None and tx.one(_INPUT, of_run) is None:
            said = {"message_id": message.id, "text": message.text, "from": message.sent_by}
            events.insert(0, SessionEvent("turn_input", said))
        keep(tx, [Happened(tenant, session_id, [(run_id, event) for event in events])])
        rows.turn_over(session_id, outcome, LOST)
    else:
        rows.turn_over(session_id, Outcome("done", turns=0))
    if message_id is not None:
        rows.end_message(message_id, "lost", run_id)


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
