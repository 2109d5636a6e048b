"""One look at everything: what was claimed and judged, what goes on, what can begin, and what is left lying about.

The order matters: what has ended makes room for what begins. A project, an issue or a step that fails is told and left
for the next look; the others go on.
"""

import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import sqlalchemy as sa
from pydantic import ValidationError

from rookery.core.errors import RookeryError
from rookery.db.tx import Tx
from rookery.domains.tracker.advance import advance, orchestrator
from rookery.domains.tracker.claim_reader import waiting_projects
from rookery.domains.tracker.project_store import Projects, ProjectSettings
from rookery.engine.acting import Deeds
from rookery.engine.approvals import look_at_approvals
from rookery.engine.background import background_wishes, take_in_folder
from rookery.engine.cleaning import clean_later
from rookery.engine.gates import stored_gates
from rookery.engine.leading import Deposed, Leadership
from rookery.engine.plan import Plan, Wish, plan
from rookery.engine.project_settings import OrchestratorSettings, enabled_projects, unreadable
from rookery.engine.reconcile import corrections, read_live
from rookery.engine.world import read_world
from rookery.identity.store import IdentityStore
from rookery.jobs.running import Ground
from rookery.lifecycle.pauses import Pauses
from rookery.settings import Settings

log = logging.getLogger("rookery.orchestrator")
MAX_FAILURES = 20
"""Of what went wrong in a tick so much is kept for whoever looks."""


class Failure(NamedTuple):
    """What went wrong, and for whom; the empty text for everybody."""

    tenant: str
    text: str


@dataclass(slots=True)
class Report:
    """What a tick did, for people: see `rookery orchestrator status`."""

    advanced: int = 0
    corrected: int = 0
    skipped: int = 0
    blocked: int = 0
    started: int = 0
    waits: dict[str, int] = field(default_factory=dict[str, int])
    failures: list[Failure] = field(default_factory=list[Failure])
    until_ms: int | None = None
    """When something that waits for a time can begin, if that is known."""

    @property
    def did_something(self) -> bool:
        return bool(self.advanced + self.corrected + self.skipped + self.blocked + self.started)

    def as_json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class Worked:
    """A project that agents work on, unless it is paused."""

    tenant: str
    project: ProjectSettings
    settings: OrchestratorSettings
    paused: bool


class Tick:
    """One look, for whoever leads. Deposed if another does by now."""

    def __init__(self, ground: Ground, lead: Leadership) -> None:
        self._ground = ground
        self._database = ground.database
        self._settings: Settings = ground.calls.facts["settings"]
        # As it is now: what was decided in one term is not carried out in a later one.
        self._deeds = Deeds(ground.calls, copy(lead))
        self.report = Report()

    async def run(self) -> Report:
        await self._each("claims", await self._read("claims", waiting_projects, ()), self._advance)
        live = await self._read("what goes on", read_live, ())
        await self._each("what goes on", corrections(live), self._correct)
        worked = await self._worked()
        await self._each("approvals", [each for each in worked if not each.paused], self._approvals)
        await self._begin(worked)
        await self._each("requests", worked, self._take_in)
        return self.report

    async def _advance(self, found: sa.Row[Any]) -> None:
        gates = stored_gates(self._ground)
        for done in await advance(self._ground.calls, found.tenant, found.project_id, run_gates=gates):
            if done.outcome != "failed":
                self.report.advanced += 1
                continue
            self._failed(f"{done.issue}: {done.detail}", found.tenant)
            if not done.again:
                why = f"What was claimed cannot be acted on: {done.detail}."
                self.report.blocked += await self._deeds.hold_up(found.tenant, found.project_id, done.issue, why)

    async def _correct(self, correction: Any) -> None:
        self.report.corrected += await self._deeds.correct(correction)

    async def _approvals(self, worked: Worked) -> None:
        self.report.advanced += len(await look_at_approvals(self._ground, worked.tenant, worked.project.project_id))

    async def _take_in(self, worked: Worked) -> None:
        await take_in_folder(self._ground, worked.tenant, worked.project, worked.settings)

    async def _worked(self) -> list[Worked]:
        def look(tx: Tx) -> list[Worked | Failure]:
            return [_worked(tx, row) for row in enabled_projects(tx)]

        found: Sequence[Worked | Failure] = await self._read("projects", look, ())
        for fault in found:
            if isinstance(fault, Failure):
                self._failed(fault.text, fault.tenant)
        return [each for each in found if isinstance(each, Worked)]

    async def _begin(self, worked: Sequence[Worked]) -> None:
        wishes: list[Wish] = []

        async def wish(each: Worked) -> None:
            wishes.extend(await background_wishes(self._ground, each.tenant, each.project, each.settings))

        await self._each("scans and requests", worked, wish)
        runs = self._ground.calls.facts.get("runtime") is not None
        planned: Plan | None = await self._read(
            "the plan", lambda tx: plan(read_world(tx, self._settings, wishes, runtime=runs)), None
        )
        if planned is None:
            return
        await self._each("skipped phases", planned.skips, self._skip)
        await self._each("blocked issues", planned.blocks, self._block)
        await self._each("starts", planned.starts, self._start)
        self.report.waits = dict(Counter(wait.code for wait in planned.waits))
        times = [wait.until_ms for wait in planned.waits if wait.until_ms is not None]
        self.report.until_ms = min(times, default=None)

    async def _skip(self, skip: Any) -> None:
        self.report.skipped += await self._deeds.skip(skip)

    async def _block(self, block: Any) -> None:
        self.report.blocked += await self._deeds.block(block)

    async def _start(self, start: Any) -> None:
        self.report.started += await self._deeds.start(start)

    async def _read(self, what: str, look: Callable[[Tx], Any], otherwise: Any) -> Any:
        try:
            return await self._database.read(look, timeout_s=30)
        except Exception as error:
            self._complain(what, error)
            return otherwise

    async def _each(self, what: str, found: Sequence[Any], act: Callable[[Any], Awaitable[None]]) -> None:
        """Act on each; one that fails is told, and the others have their turn."""
        for one in found:
            try:
                await act(one)
            except Deposed:
                raise
            except Exception as error:
                self._complain(what, error, one.tenant)

    def _complain(self, what: str, error: Exception, tenant: str = "") -> None:
        if isinstance(error, RookeryError):
            log.warning("%s: %s", what, error.message)
            self._failed(f"{what}: {error.message}", tenant)
        else:
            log.error("%s", what, exc_info=error)
            self._failed(f"{what}: {type(error).__name__}: {error}", tenant)

    def _failed(self, text: str, tenant: str) -> None:
        if len(self.report.failures) < MAX_FAILURES:
            self.report.failures.append(Failure(tenant, text[:500]))


def _worked(tx: Tx, row: sa.Row[Any]) -> Worked | Failure:
    """A project with what is set for it, or why that cannot be read."""
    try:
        project = Projects(tx, orchestrator(row.tenant, row.project_id, "")).settings()
        paused = Pauses(tx, row.tenant).holding(row.project_id, None) is not None
        return Worked(row.tenant, project, OrchestratorSettings(**row.settings), paused)
    except ValidationError as error:
        slug = IdentityStore(tx, row.tenant).project(row.project_id).slug
        return Failure(row.tenant, f"project {slug}: {unreadable(error)}")


async def tidy(ground: Ground, lead: Leadership) -> None:
    """Have the workspaces of issues that have ended removed."""

    def work(tx: Tx) -> None:
        lead.fence(tx)
        clean_later(tx)

    await ground.database.change(work)
