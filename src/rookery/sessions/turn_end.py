"""The end of a turn on record: what it has used and its `done`, both or neither, whatever crashes meanwhile."""

from collections.abc import Sequence

import sqlalchemy as sa

from rookery.db.tx import Tx
from rookery.lifecycle.run_tables import run_events
from rookery.lifecycle.sessions import Outcome
from rookery.sessions.events import SessionEvent
from rookery.sessions.store import SessionRows
from rookery.sessions.writing import Happened, Kept, keep

_e = run_events.c
_OF_RUN = (_e.tenant == sa.bindparam("of_tenant"), _e.run_id == sa.bindparam("of_run"))
_DONE = sa.select(_e.seq).where(*_OF_RUN, _e.type == "result").limit(1)
_INPUT = sa.select(_e.seq).where(*_OF_RUN, _e.subtype == "input").limit(1)


def has_done(tx: Tx, tenant: str, run_id: str) -> bool:
    return tx.one(_DONE, {"of_tenant": tenant, "of_run": run_id}) is not None


def has_input(tx: Tx, tenant: str, run_id: str) -> bool:
    return tx.one(_INPUT, {"of_tenant": tenant, "of_run": run_id}) is not None


def end_turn(
    tx: Tx,
    tenant: str,
    session_id: str,
    run_id: str,
    outcome: Outcome,
    error: str | None,
    events: Sequence[SessionEvent],
) -> list[Kept]:
    """Note that the turn is over, and keep its last events, the `done` among them, unless it has one already."""
    # This locks the session's row: of two who end the same turn at once, the second sees the `done` of the first.
    SessionRows(tx, tenant).turn_over(session_id, run_id, outcome, error)
    if not events or has_done(tx, tenant, run_id):
        return []
    ((_, written),) = keep(tx, [Happened(tenant, session_id, [(run_id, event) for event in events])])
    return written
