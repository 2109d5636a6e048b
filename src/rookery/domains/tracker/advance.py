"""Moves issues from phase to phase: the only place where that happens, exactly once for each claim and verdict.

The orchestrator calls `advance` on its tick. Reading contracts and git comes first, outside any transaction; then one
transaction looks again and does the one thing that follows, together with its record. Whoever calls it at the same
time finds nothing left to do.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from rookery.core.actor import Actor
from rookery.core.call import Calls
from rookery.core.errors import Conflict, RookeryError
from rookery.core.events import Event
from rookery.core.ids import new_id
from rookery.core.record import Record, input_digest
from rookery.core.recording import whose
from rookery.db.tx import Tx
from rookery.domains.tracker.claim_reader import latest_claim, waiting_claims, waiting_issues, waiting_verdicts
from rookery.domains.tracker.pipeline import AWAITING, MAX_REJECTIONS, Claim, Step, following, next_step
from rookery.domains.tracker.pr_store import Opener, Standing, binding_gates, hash_of, not_run, open_pr
from rookery.domains.tracker.project_store import Projects, ProjectSettings
from rookery.domains.tracker.promotion import promote
from rookery.domains.tracker.revalidation import Work, checked_artifact, checked_work
from rookery.domains.tracker.risk import GateResult, Risk, risk_of
from rookery.domains.tracker.store import Issues, now_ms
from rookery.domains.tracker.tables import artifacts, finding_processing
from rookery.lifecycle.issue_tables import issues
from rookery.lifecycle.states import PHASE

log = logging.getLogger("rookery.advance")
MAX_STEPS = 1000
"""For one issue in one call. It has a few; a fault that makes more must not hold up the others."""

RunGates = Callable[[ProjectSettings, Work, Claim], Awaitable[Sequence[GateResult] | None]]
"""What the project's gates say of claimed work; the orchestrator brings it along. None: not there yet, ask again."""


@dataclass(frozen=True, slots=True)
class Advanced:
    """What happened to one finding."""

    issue: str
    finding: str
    outcome: str
    detail: str = ""
    again: bool = False
    """Of a failure: whether it can go away by itself."""


@dataclass(frozen=True, slots=True)
class _Found:
    """What was read outside the transaction for a step: what is wrong, whether a judge is needed, the work."""

    fault: str | None = None
    judged: bool = True
    work: Work | None = None
    gates: Sequence[GateResult] = ()
    risk: Risk | None = None
    note: str | None = None


def orchestrator(tenant: str, project_id: str, slug: str) -> Actor:
    """Who moves phases."""
    return Actor(
        kind="agent",
        tenant=tenant,
        subject="orchestrator",
        agent_name="orchestrator",
        project=project_id,
        project_slug=slug,
        source="agent",
    )


async def advance(calls: Calls, tenant: str, project: str, *, run_gates: RunGates | None = None) -> list[Advanced]:
    """Act on every claim and verdict of the project (by id or slug) that waits, and say what was done."""
    nobody = orchestrator(tenant, project, project)
    settings = await calls.database.read(lambda tx: Projects(tx, nobody).find(project), timeout_s=30)
    mover = _Mover(calls, orchestrator(tenant, settings.project_id, settings.slug), settings, run_gates)
    waiting = await calls.database.read(lambda tx: waiting_issues(tx, settings.project_id), timeout_s=30)
    done: list[Advanced] = []
    for issue_id in waiting:
        for _ in range(MAX_STEPS):
            try:
                moved = await mover.one_step(issue_id)
            except Exception as error:
                # One issue whose contract, repository or gates are broken must not stop the others.
                known = isinstance(error, RookeryError)
                reason = error.message if known else f"{type(error).__name__}: {error}"
                passing = not known or error.retryable or isinstance(error, Conflict)
                log.warning("issue %s was not advanced: %s", issue_id, reason, exc_info=not known)
                done.append(Advanced(issue_id, "", "failed", reason, again=passing))
                break
            if moved is None:
                break
            done.append(moved)
    return done


class _Mover:
    """Advances issues of one project."""

    def __init__(self, calls: Calls, actor: Actor, settings: ProjectSettings, run_gates: RunGates | None) -> None:
        self._calls = calls
        self._actor = actor
        self._settings = settings
        self._run_gates = run_gates

    async def one_step(self, issue_id: str) -> Advanced | None:
        """Do the next thing for an issue; None if nothing is left, its gates run, or another is doing it."""
        planned = await self._calls.database.read(lambda tx: self._plan(tx, issue_id), timeout_s=30)
        if planned is None:
            return None
        issue, step, content = planned
        found = await self._look(issue, step, content)
        if found is None:
            return None
        started, moved = time.monotonic(), False

        def work(tx: Tx) -> Advanced | None:
            nonlocal moved
            again = self._plan(tx, issue_id, lock=True)
            moved = again is not None and again[1] == step and again[0].phase == issue.phase
            return self._apply(tx, again[0], step, found) if again is not None and moved else None

        def records(error: BaseException | None) -> list[Record]:
            return [self._record(step, issue_id, started)] if error is None and moved else []

        return await self._calls.database.write(
            work, records=records, timeout_s=60, on_commit=lambda: self._tell(issue)
        )

    def _plan(self, tx: Tx, issue_id: str, *, lock: bool = False) -> tuple[sa.Row[Any], Step, str | None] | None:
        wanted = sa.select(issues).where(
            issues.c.tenant == self._actor.tenant,
            issues.c.project_id == self._settings.project_id,
            issues.c.id == issue_id,
        )
        issue = tx.one(wanted.with_for_update() if lock else wanted)
        if issue is None:
            return None
        latest = latest_claim(tx, issue_id)
        step = next_step(
            issue.status, issue.phase, latest, waiting_claims(tx, issue_id), waiting_verdicts(tx, issue_id)
        )
        if step is None:
            return None
        return issue, step, self._content(tx, issue_id, step.claim)

    def _content(self, tx: Tx, issue_id: str, claim: Claim | None) -> str | None:
        if claim is None or claim.hash is None:
            return None
        same = (artifacts.c.issue_id == issue_id, artifacts.c.hash == claim.hash)
        return tx.scalar(sa.select(artifacts.c.content).where(*same))

    async def _look(self, issue: sa.Row[Any], step: Step, content: str | None) -> _Found | None:
        """Read what the step needs of contracts, git and files; None while its gates run. Nothing has to be undone."""
        claim = step.claim
        if step.kind == "validate" and claim is not None:
            fault, judged = await asyncio.to_thread(checked_artifact, self._settings, claim, content)
            if fault is None and not judged:
                return _Found(judged=False, note=await self._promote(claim, content))
            return _Found(fault, judged)
        if step.kind == "open_pr" and claim is not None:
            work = await asyncio.to_thread(checked_work, self._settings, claim)
            if isinstance(work, str):
                return _Found(fault=work)
            ran = await self._run_gates(self._settings, work, claim) if self._run_gates is not None else ()
            if ran is None:
                return None
            gates = [*ran, *not_run(ran, self._settings)]
            return _Found(work=work, gates=gates, risk=await asyncio.to_thread(self._risk, work, gates))
        if step.kind == "approve" and claim is not None:
            return _Found(note=await self._promote(claim, content))
        return _Found()

    def _risk(self, work: Work, gates: Sequence[GateResult]) -> Risk:
        settings = self._settings
        binding = binding_gates(gates, settings)
        return risk_of(work.stats, settings.risk_thresholds, settings.sensitive_paths, binding)

    async def _promote(self, claim: Claim, content: str | None) -> str | None:
        # Before the commit: writing the same text twice harms nobody, and a promotion must not be lost by a crash.
        target = claim.payload.get("promote_to")
        if not target or content is None:
            return None
        return await asyncio.to_thread(promote, self._settings.path, target, content)

    def _apply(self, tx: Tx, issue: sa.Row[Any], step: Step, found: _Found) -> Advanced:
        store, claim, verdict = Issues(tx, self._actor), step.claim, step.verdict
        if step.comment is not None:
            store.comment(issue, step.comment)
        finding = verdict or claim
        assert finding is not None
        if step.kind == "drop" or claim is None:
            self._process(tx, finding.id, step.outcome)
            return Advanced(issue.identifier, finding.id, step.outcome)
        if found.fault is not None:
            return self._send_back(store, issue, claim, found.fault)
        if step.kind == "validate" and found.judged:
            self._await_verdict(store, issue, claim)
            return Advanced(issue.identifier, claim.id, AWAITING)
        if step.kind == "open_pr":
            return self._open_pr(store, issue, claim, found)
        if step.kind == "reject":
            return self._reject(store, issue, step)
        for each in filter(None, (claim, verdict)):
            self._process(tx, each.id, "approved")
        return self._next_phase(store, issue, finding.id, found.note)

    def _process(self, tx: Tx, finding_id: str, outcome: str) -> None:
        """Mark a finding as acted on. It can be done once."""
        waiting = (finding_processing.c.finding_id == finding_id, finding_processing.c.processed_ms.is_(None))
        if not tx.run(sa.update(finding_processing).where(*waiting).values(outcome=outcome, processed_ms=now_ms())):
            raise Conflict(f"{finding_id} was processed already", hint="nothing is to be done")

    def _await_verdict(self, store: Issues, issue: sa.Row[Any], claim: Claim) -> None:
        new = (finding_processing.c.finding_id == claim.id, finding_processing.c.outcome.is_(None))
        store.tx.run(sa.update(finding_processing).where(*new).values(outcome=AWAITING))
        _to_review(store, issue, f"the {claim.phase} artifact waits for a judge")

    def _send_back(self, store: Issues, issue: sa.Row[Any], claim: Claim, fault: str) -> Advanced:
        self._process(store.tx, claim.id, "invalid")
        store.comment(issue, f"The claim that {claim.phase} is complete was not accepted: {fault}")
        _to_todo(store, issue, "its claim was not accepted")
        return Advanced(issue.identifier, claim.id, "invalid", fault)

    def _open_pr(self, store: Issues, issue: sa.Row[Any], claim: Claim, found: _Found) -> Advanced:
        work = found.work
        assert work is not None
        in_review = _to_review(store, issue, "a pull request is open")
        pr = open_pr(
            store.tx,
            self._actor,
            in_review,
            diff=work.diff,
            stats=work.stats,
            branch=work.branch,
            base=self._settings.base_branch,
            gates=found.gates,
            settings=self._settings,
            risk=found.risk,
            opened_by=Opener(claim.subject, claim.profile),
            standing=Standing(work.head, hash_of(work.diff)),
        )
        if failed := [gate for gate in found.gates if gate.failed]:
            store.comment(issue, f"Revision {pr.revision} was opened though gates failed:\n\n{_told(failed)}")
        self._process(store.tx, claim.id, "pr_opened")
        return Advanced(issue.identifier, claim.id, "pr_opened", f"revision {pr.revision}, risk {pr.risk_level}")

    def _reject(self, store: Issues, issue: sa.Row[Any], step: Step) -> Advanced:
        assert step.claim is not None
        assert step.verdict is not None
        for each in (step.claim, step.verdict):
            self._process(store.tx, each.id, "rejected")
        count = issue.rejections + 1
        if count < MAX_REJECTIONS:
            store.change(_to_todo(store, issue, f"{step.claim.phase} was rejected"), rejections=count)
            return Advanced(issue.identifier, step.verdict.id, "rejected", f"{count} of {MAX_REJECTIONS}")
        judged = _to_review(store, issue, "judged")
        blocked = store.move(judged, "blocked", "orchestrator", why=f"{count} rejections", blocked_on="person")
        store.change(blocked, rejections=0)
        store.comment(issue, f"{step.claim.phase} was rejected {count} times. A person has to look at it.")
        return Advanced(issue.identifier, step.verdict.id, "blocked", f"{count} rejections")

    def _next_phase(self, store: Issues, issue: sa.Row[Any], finding: str, note: str | None) -> Advanced:
        skipped = frozenset(
            label.removeprefix("skip:") for label in store.labels([issue])[issue.id] if label.startswith("skip:")
        )
        phase = following(issue.phase, self._settings.pipeline, skipped)
        PHASE.check(issue.phase, phase, "orchestrator")
        moved = _to_todo(store, issue, f"{issue.phase} is complete")
        store.change(moved, phase=phase, rejections=0, why=f"{issue.phase} is complete")
        if note is not None:
            store.comment(issue, note)
        return Advanced(issue.identifier, finding, "approved", phase)

    def _record(self, step: Step, issue_id: str, started: float) -> Record:
        finding = step.verdict or step.claim
        about = {"issue": issue_id, "finding": finding.id if finding else "", "step": step.kind}
        return Record(
            at_ms=now_ms(),
            **{**whose(self._actor), "issue": issue_id},
            request=new_id("req"),
            trace=None,
            tool="advance",
            effect="write",
            outcome="done",
            code=None,
            layer=None,
            input_digest=input_digest(about)[0],
            duration_us=int((time.monotonic() - started) * 1_000_000),
        )

    def _tell(self, issue: sa.Row[Any]) -> None:
        for uri in (f"issue://{issue.identifier}", f"project://{self._settings.slug}/board"):
            self._calls.events.publish(Event(name="ResourceUpdated", tenant=self._actor.tenant, subject=uri))


def _told(gates: Sequence[GateResult]) -> str:
    """What the gates ended with, and the last line that each printed."""
    lines = ((gate, gate.output.strip().splitlines()) for gate in gates)
    return "\n".join(
        f"- {gate.label} (`{gate.command}`{'' if gate.required else ', optional'}): exit code {gate.exit_code}"
        + (f", {last[-1][:300]}" if last else "")
        for gate, last in lines
    )


def _to_review(store: Issues, issue: sa.Row[Any], why: str) -> sa.Row[Any]:
    """The issue in review, by the moves that lead there."""
    if issue.status == "review":
        return issue
    if issue.status != "in_progress":
        issue = _to_todo(store, issue, why)
        issue = store.move(issue, "in_progress", "orchestrator", why=why)
    return store.move(issue, "review", "orchestrator", why=why)


def _to_todo(store: Issues, issue: sa.Row[Any], why: str) -> sa.Row[Any]:
    return issue if issue.status == "todo" else store.move(issue, "todo", "orchestrator", why=why)
