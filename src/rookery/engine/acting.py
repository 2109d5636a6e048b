"""What the orchestrator writes: each deed is one transaction behind the leader's term, committed with its record."""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

import sqlalchemy as sa

from rookery.core.call import Calls
from rookery.core.events import Event
from rookery.core.ids import new_id
from rookery.core.record import Record, input_digest
from rookery.core.recording import whose
from rookery.db.tx import Tx
from rookery.domains.tracker.advance import orchestrator
from rookery.domains.tracker.pipeline import following
from rookery.domains.tracker.project_store import Projects
from rookery.domains.tracker.store import Issues, now_ms
from rookery.engine.dispatches import Dispatches, NewDispatch
from rookery.engine.leading import Leadership
from rookery.engine.outcomes import End, settle
from rookery.engine.plan import Block, Skip, Start
from rookery.engine.reconcile import Correction
from rookery.identity.store import IdentityStore
from rookery.lifecycle.states import FINISHED, PHASE

T = TypeVar("T")
Row = sa.Row[Any]


class Deeds:
    """Carries out what was decided, for whoever leads."""

    def __init__(self, calls: Calls, lead: Leadership) -> None:
        self._calls = calls
        self._lead = lead

    async def start(self, start: Start) -> bool:
        """Queue a dispatch; whether there was none that stood in its way."""
        new = start.new
        return await self._do(start.tenant, new, "dispatch", lambda tx: self._queued(tx, start))

    def _queued(self, tx: Tx, start: Start) -> bool | None:
        return True if Dispatches(tx, start.tenant).queue(start.new) is not None else None

    async def correct(self, correction: Correction) -> bool:
        """Stop a dispatch, or note that it is lost; whether it lived."""
        row = correction.dispatch

        def work(tx: Tx) -> bool | None:
            store = Dispatches(tx, row.tenant)
            if correction.what == "lost":
                return True if settle(tx, row.tenant, row.id, End("lost", correction.why)) is not None else None
            return store.stop(row, correction.why) or None

        return await self._do(row.tenant, row, correction.what, work)

    async def skip(self, skip: Skip) -> bool:
        """Bring an issue past a phase that its labels skip, or that the project does not have."""
        return await self._on_issue(skip, "skip", lambda store, issue: self._skipped(store, issue, skip))

    def _skipped(self, store: Issues, issue: Row, skip: Skip) -> bool | None:
        if issue.phase != skip.phase or issue.status != "todo":
            return None
        skipped = frozenset(
            label.removeprefix("skip:") for label in store.labels([issue])[issue.id] if label.startswith("skip:")
        )
        pipeline = Projects(store.tx, store.actor).settings().pipeline
        if issue.phase not in skipped and issue.phase in pipeline:
            return None
        to = following(issue.phase, pipeline, skipped)
        PHASE.check(issue.phase, to, "orchestrator")
        store.change(issue, phase=to, rejections=0, why=skip.why)
        return True

    async def block(self, block: Block) -> bool:
        """Let a person look at an issue that cannot go on by itself, and say why."""
        return await self._on_issue(block, "block", lambda store, issue: blocked(store, issue, _whole(store, block)))

    async def hold_up(self, tenant: str, project_id: str, issue_id: str, why: str) -> bool:
        """The same for an issue whose claim cannot be acted on."""
        block = Block(tenant=tenant, project_id=project_id, issue_id=issue_id, identifier="", why=why)
        return await self._on_issue(block, "block", lambda store, issue: blocked(store, issue, why))

    async def _on_issue(self, about: Block | Skip, what: str, work: Callable[[Issues, Row], bool | None]) -> bool:
        def on_issue(tx: Tx) -> bool | None:
            project = IdentityStore(tx, about.tenant).project(about.project_id)
            store = Issues(tx, orchestrator(about.tenant, project.id, project.slug))
            return work(store, store.ours(about.issue_id, lock=True))

        return await self._do(about.tenant, about, what, on_issue)

    async def _do(
        self, tenant: str, about: NewDispatch | Row | Block | Skip, what: str, work: Callable[[Tx], bool | None]
    ) -> bool:
        """Run `work` if we lead, recorded unless it says None: then nothing was to be done."""
        started, done = time.monotonic(), False

        def fenced(tx: Tx) -> bool:
            nonlocal done
            self._lead.fence(tx)
            done = bool(work(tx))
            return done

        def records(error: BaseException | None) -> list[Record]:
            return [self._record(tenant, about, what, started)] if error is None and done else []

        return await self._calls.database.write(
            fenced, records=records, timeout_s=60, on_commit=lambda: self._tell(tenant, about) if done else None
        )

    def _record(self, tenant: str, about: NewDispatch | Row | Block | Skip, what: str, started: float) -> Record:
        actor = replace(orchestrator(tenant, about.project_id, ""), issue=about.issue_id)
        told = {"project": about.project_id, "issue": about.issue_id, "deed": what, "why": getattr(about, "why", "")}
        return Record(
            at_ms=now_ms(),
            **whose(actor),
            request=new_id("req"),
            trace=None,
            tool=f"orchestrator_{what}",
            effect="write",
            outcome="done",
            code=None,
            layer=None,
            input_digest=input_digest(told)[0],
            duration_us=int((time.monotonic() - started) * 1_000_000),
        )

    def _tell(self, tenant: str, about: NewDispatch | Row | Block | Skip) -> None:
        payload = {"project": about.project_id, "issue": about.issue_id}
        self._calls.events.publish(Event(name="OrchestratorActed", tenant=tenant, payload=payload))


def _whole(store: Issues, block: Block) -> str:
    """Why, with what the last attempt has left to say."""
    last = next(iter(Dispatches(store.tx, block.tenant).of_issue(block.issue_id, 1)), None)
    return block.why if last is None or not last.error else f"{block.why} What it ended with: {last.error}"


def blocked(store: Issues, issue: Row, why: str) -> bool | None:
    """The issue waits for a person, with the reason as a comment; None if it is finished or blocked already."""
    if issue.status in (*FINISHED, "blocked", "backlog"):
        return None
    if issue.status == "todo":
        issue = store.move(issue, "in_progress", "orchestrator", why=why)
    store.move(issue, "blocked", "orchestrator", why=why, blocked_on="person")
    store.comment(issue, f"**Blocked**: {why}\n\nA person has to look at it.")
    return True
