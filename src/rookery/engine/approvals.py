"""Looks after pull requests in review.

What is in the base branch is recorded as merged; what its branch has left behind is void; what may be merged without a
person is merged; and of whatever else is approved the owner is told, once.
"""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import sqlalchemy as sa

from rookery.core.actor import Actor
from rookery.core.call import Calls
from rookery.core.errors import RookeryError
from rookery.core.events import Event
from rookery.core.ids import new_id
from rookery.core.record import Record, input_digest
from rookery.core.recording import whose
from rookery.db.tx import Tx
from rookery.domains.owner.delivery_jobs import defer_deliveries
from rookery.domains.owner.notify_store import NewNotification, Notifications
from rookery.domains.owner.notify_tables import SHARED
from rookery.domains.tracker.advance import orchestrator
from rookery.domains.tracker.branch_merge import Merged, Stale
from rookery.domains.tracker.branch_sight import Sight, see
from rookery.domains.tracker.merging import Candidate, bring_in, record_merge, void
from rookery.domains.tracker.pr_store import UNDECIDED, not_run
from rookery.domains.tracker.project_store import Projects, ProjectSettings
from rookery.domains.tracker.risk import GateResult
from rookery.domains.tracker.store import Issues, now_ms
from rookery.domains.tracker.tables import pr_gates, prs
from rookery.engine.project_settings import OrchestratorProjects, OrchestratorSettings
from rookery.jobs.running import Ground
from rookery.lifecycle.issue_tables import issues

T = TypeVar("T")
Row = sa.Row[Any]
Deed = Literal["found", "void", "merge", "tell"]
_KEPT = [column for column in prs.c if column.name != "diff"]
_RESULTS = [column for column in pr_gates.c if column.name != "output"]
_NEWER = prs.alias("newer")
_IN_REVIEW = (
    sa.select(*_KEPT)
    .join(issues, issues.c.id == prs.c.issue_id)
    .where(issues.c.tenant == sa.bindparam("of_tenant"), issues.c.project_id == sa.bindparam("wanted"))
    .where(issues.c.status == "review", prs.c.status.in_(UNDECIDED), prs.c.head.is_not(None))
    .where(~sa.exists().where(_NEWER.c.issue_id == prs.c.issue_id, _NEWER.c.revision > prs.c.revision))
    .order_by(prs.c.created_ms, prs.c.id)
)


async def look_at_approvals(platform: Ground, tenant: str, project_id: str) -> list[str]:
    """Do for each pull request of the project what follows from its branch, and say what was done.

    One that cannot be merged by itself waits for a person from then on. Costs two git processes if there is any. What
    failed is raised when all have had their turn.
    """
    look = await platform.database.read(lambda tx: _look(tx, tenant, project_id), timeout_s=30)
    if look is None:
        return []
    failed: list[Exception] = []
    sights = dict[str, Sight]()
    for base in look.bases:
        try:
            sights[base] = await asyncio.to_thread(see, look.folder, base, look.heads(base))
        except RookeryError as error:
            # A branch that is gone is no reason to leave those of another alone.
            failed.append(error)
    caretaker = _Caretaker(platform.calls, look)
    done: list[str] = []
    for row in look.rows:
        if row.base not in sights:
            continue
        deed = deed_for(row, sights[row.base], alone=merged_alone(look.settings, look.project, row, look.gates_of(row)))
        try:
            said = None if deed is None else await caretaker.do(deed, row, sights[row.base])
        except Exception as error:
            # The others have their turn all the same.
            failed.append(error)
            continue
        done += [] if said is None else [said]
    if failed:
        raise failed[0]
    return done


@dataclass(frozen=True, slots=True)
class _Look:
    """What the database has of a project with pull requests in review."""

    actor: Actor
    folder: str
    project: ProjectSettings
    settings: OrchestratorSettings
    rows: Sequence[Row]
    gates: Sequence[Row]

    @property
    def bases(self) -> set[str]:
        return {row.base for row in self.rows}

    def heads(self, base: str) -> dict[str, str]:
        return {row.branch: row.head for row in self.rows if row.base == base}

    def gates_of(self, row: Row) -> list[GateResult]:
        mine = (gate for gate in self.gates if gate.pr_id == row.id)
        return [GateResult(gate.command, gate.label, gate.exit_code, "", gate.required) for gate in mine]


def _look(tx: Tx, tenant: str, project_id: str) -> _Look | None:
    rows = tx.all(_IN_REVIEW, {"of_tenant": tenant, "wanted": project_id})
    if not rows:
        return None
    project = Projects(tx, orchestrator(tenant, project_id, "")).settings()
    if project.path is None:
        return None
    gates = sa.select(*_RESULTS).where(pr_gates.c.pr_id.in_([row.id for row in rows])).order_by(pr_gates.c.position)
    settings = OrchestratorProjects(tx, tenant).of(project_id)[1]
    actor = orchestrator(tenant, project_id, project.slug)
    return _Look(actor, project.path, project, settings, rows, tx.all(gates))


def deed_for(pr: Row, sight: Sight, *, alone: bool) -> Deed | None:
    """What follows for a pull request from where its branch stands. Pure."""
    approved = pr.status == "approved"
    if approved and sight.has(pr.head):
        return "found"
    if sight.tips.get(pr.branch) != pr.head:
        return "void"
    if not approved or pr.told_ms is not None:
        return None
    return "merge" if alone else "tell"


def merged_alone(
    settings: OrchestratorSettings, project: ProjectSettings, pr: Row, gates: Sequence[GateResult]
) -> bool:
    """Whether a change may be merged without a person: low risk, the project says so, and all it requires passed.

    What a diff does not show, or what nobody reads in one, counts for nothing in the risk: a person looks at it.
    """
    if not settings.auto_merge or pr.risk_level != "low" or not _can_be_read(pr.stats):
        return False
    return not not_run(gates, project) and not any(gate.failed and gate.required for gate in gates)


def _can_be_read(stats: Mapping[str, Any]) -> bool:
    files = stats.get("files", [])
    unread = any(file.get("binary") or file.get("generated") for file in files)
    return not unread and len(files) == stats.get("changed_files")


class _Caretaker:
    """Acts for the pull requests of one project."""

    def __init__(self, calls: Calls, look: _Look) -> None:
        self._calls = calls
        self._look = look
        self._actor = look.actor

    async def do(self, deed: Deed, row: Row, sight: Sight) -> str | None:
        """Do it; what was done, or None if another was first."""
        issue = await self._calls.database.read(lambda tx: Issues(tx, self._actor).ours(row.issue_id), timeout_s=30)
        found = Candidate(issue, row, self._look.folder, self._actor.subject)
        if deed == "void":
            return await self._void(found, Stale(_moved(row, sight.tips.get(row.branch))))
        if deed == "found":
            return await self._record(found, Merged(sight.base, already=True))
        return await (self._merge(found) if deed == "merge" else self._tell(found))

    async def _merge(self, found: Candidate) -> str | None:
        try:
            merged = await asyncio.to_thread(bring_in, found, self._look.settings.merge, self._actor)
        except RookeryError as error:
            if error.retryable:
                raise
            return await self._tell(found, f"It could not be merged without a person: {error.message}.")
        if isinstance(merged, Stale):
            return await self._void(found, merged)
        return await self._record(found, merged)

    async def _void(self, found: Candidate, stale: Stale) -> str | None:
        done = await self._write(found, "void", lambda tx: void(tx, self._actor, found, stale))
        return f"{found.issue.identifier}: void, {stale.why}" if done else None

    async def _record(self, found: Candidate, merged: Merged | None) -> str | None:
        def work(tx: Tx) -> bool:
            record_merge(tx, self._actor, found, merged, "orchestrator")
            return True

        await self._write(found, "merge", work)
        return f"{found.issue.identifier}: merged into {found.pr.base}"

    async def _tell(self, found: Candidate, trouble: str | None = None) -> str | None:
        """Tell the owner once that a pull request waits for a person, and why if it is not as usual."""

        def work(tx: Tx) -> bool:
            waits = (prs.c.id == found.pr.id, prs.c.status == "approved", prs.c.told_ms.is_(None))
            if not tx.run(sa.update(prs).where(*waits).values(told_ms=now_ms())):
                return False
            if trouble is not None:
                Issues(tx, self._actor).comment(found.issue, trouble)
            _notify(tx, self._actor, found, trouble)
            return True

        done = await self._write(found, "tell", work)
        return f"{found.issue.identifier}: waits for a person" if done else None

    async def _write(self, found: Candidate, what: str, work: Callable[[Tx], bool]) -> bool:
        started, done = time.monotonic(), False

        def working(tx: Tx) -> bool:
            nonlocal done
            done = work(tx)
            return done

        def records(error: BaseException | None) -> list[Record]:
            return [self._recorded(found, what, started)] if error is None and done else []

        return await self._calls.database.write(
            working, records=records, timeout_s=60, on_commit=lambda: self._changed(found) if done else None
        )

    def _recorded(self, found: Candidate, what: str, started: float) -> Record:
        return Record(
            at_ms=now_ms(),
            **{**whose(self._actor), "issue": found.issue.id},
            request=new_id("req"),
            trace=None,
            tool=f"orchestrator_{what}_pr",
            effect="write",
            outcome="done",
            code=None,
            layer=None,
            input_digest=input_digest({"pr": found.pr.id, "head": found.pr.head})[0],
            duration_us=int((time.monotonic() - started) * 1_000_000),
        )

    def _changed(self, found: Candidate) -> None:
        for uri in (f"issue://{found.issue.identifier}", f"project://{self._actor.project_slug}/board"):
            self._calls.events.publish(Event(name="ResourceUpdated", tenant=self._actor.tenant, subject=uri))


def _moved(row: Row, tip: str | None) -> str:
    if tip is None:
        return f"the branch {row.branch} is gone"
    return f"{row.branch} is at {tip[:12]}, and {row.head[:12]} was reviewed"


def _notify(tx: Tx, actor: Actor, found: Candidate, trouble: str | None) -> None:
    issue, pr = found.issue, found.pr
    message = (
        f"{issue.identifier} ({issue.title}) is approved: revision {pr.revision}, {pr.risk_level} risk. "
        f"{trouble or 'It waits for a person.'} To merge it: rookery merge {issue.identifier}"
    )
    new = NewNotification(
        agent_id=SHARED,
        sender=actor.subject,
        session_id=None,
        title=f"{issue.identifier} waits to be merged",
        message=message,
        level="info" if trouble is None else "warning",
    )
    told_id, is_new = Notifications(tx, actor.tenant).tell(new)
    if is_new:
        defer_deliveries(tx, actor.tenant, "notification", told_id, SHARED)
