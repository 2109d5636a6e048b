"""Sessions that are kept without any agent: rows, their runs, and what is put into their record."""

from typing import Any

from rookery.lifecycle.run_store import NewRun, Runs
from rookery.sessions.events import SessionEvent
from rookery.sessions.store import NewSession, Row, SessionRows
from tests.platform_fixtures import Fleet


def opened(fleet: Fleet, tenant: str = "default", **more: Any) -> Row:
    """A session of the default agent."""
    new = NewSession(actor=fleet.actor(), runtime="scripted", mode="act", opened_by="me", **more)
    return rows(fleet, lambda sessions: sessions.create(new), tenant)


def rows(fleet: Fleet, work: Any, tenant: str = "default", **how: Any) -> Any:
    """What `work` makes of the sessions of a tenant, committed."""
    return fleet.platform.database.direct(lambda tx: work(SessionRows(tx, tenant, **how)), write=True)


def run_of(fleet: Fleet) -> str:
    """The id of a new run."""
    new = NewRun(project_id=fleet.actor().project or "", kind="session")
    return fleet.platform.database.direct(lambda tx: Runs(tx, "default").start(new), write=True).id


def text(said: str) -> SessionEvent:
    return SessionEvent("text_delta", {"text": said})


def line(said: str) -> SessionEvent:
    """An event that is never put together with another."""
    return SessionEvent("system", {"text": said})
