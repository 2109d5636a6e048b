"""Sessions for the tests of pages: opened by their owner, with events that happen when a test says so."""

from typing import Any

from rookery.lifecycle.run_store import NewRun, Runs
from rookery.sessions.events import EventName, SessionEvent
from rookery.sessions.log import SessionLog
from tests.platform_fixtures import Fleet
from tests.sessions.stage import use_sessions


class Watched:
    """One session of a fleet whose agents play scripts. Nobody works on its messages."""

    def __init__(self, fleet: Fleet, **opening: Any) -> None:
        if fleet.platform.settings.runtime == "none":
            use_sessions(fleet.platform)
        self.fleet = fleet
        self._opening = opening
        self.id = ""
        self.run = ""

    async def open(self) -> "Watched":
        started = await self.fleet.call(self.fleet.owner, "start_session", **self._opening)
        self.id = started.session.id
        new = NewRun(project_id=self.fleet.actor().project or "", kind="session")
        self.run = self.fleet.platform.database.direct(lambda tx: Runs(tx, "default").start(new), write=True).id
        return self

    async def happen(self, *events: tuple[EventName, dict[str, Any]]) -> None:
        """These happen, each kept by itself: what flows would else be put together."""
        log: SessionLog = self.fleet.platform.calls.facts["sessions"].log
        for name, data in events:
            log.put("default", self.id, self.run, SessionEvent(name, data))
            await log.flush(self.id)


async def watched(fleet: Fleet, **opening: Any) -> Watched:
    return await Watched(fleet, **opening).open()
