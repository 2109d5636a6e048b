"""Runs a project's gates on the commit that was claimed, once for each claim, and keeps what came of them.

They run in a copy of that commit: what an agent left lying in its worktree does not count. Where they could not be run
at all, each of them has failed, with the reason.
"""

import contextlib
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from rookery.core.errors import RookeryError
from rookery.db.clock import DbNow
from rookery.db.tx import Tx
from rookery.domains.tracker.advance import RunGates, orchestrator
from rookery.domains.tracker.pipeline import Claim
from rookery.domains.tracker.pr_store import MAX_OUTPUT, NOT_RUN
from rookery.domains.tracker.project_store import Gate, Projects, ProjectSettings
from rookery.domains.tracker.revalidation import Work
from rookery.domains.tracker.risk import GateResult
from rookery.domains.tracker.tables import finding_processing, findings
from rookery.engine.project_settings import WAKE, OrchestratorProjects, OrchestratorSettings
from rookery.engine.tables import gate_runs
from rookery.engine.workspaces import discard, reading_copy, site_of
from rookery.jobs.kinds import Ended, Finish, JobArgs, job
from rookery.jobs.running import Ground, Running
from rookery.jobs.store import Jobs, is_over
from rookery.lifecycle.issue_tables import issues
from rookery.lifecycle.programs import run_command

Row = sa.Row[Any]
KIND = "orchestrator.gates"
MAX_ERROR = 2_000
_g = gate_runs.c


def stored_gates(platform: Ground) -> RunGates:
    """What `advance` asks: the results of a claim, or None while they are not there; who asks first has them run."""

    async def results(settings: ProjectSettings, work: Work, claim: Claim) -> Sequence[GateResult] | None:
        if not settings.gates:
            return ()
        row, goes_on = await platform.database.read(lambda tx: _of(tx, claim.id), timeout_s=30)
        if row is None:
            await platform.database.change(lambda tx: _begin(tx, claim))
            return None
        if row.ended_ms is None:
            if not goes_on:
                await platform.database.change(lambda tx: _end(tx, claim.id, error="Its job was cancelled."))
            return None
        if row.results is None:
            return [_not_run(gate, row.error or "The reason is not known.") for gate in settings.gates]
        return [GateResult(**result) for result in row.results]

    return results


class ClaimArgs(JobArgs):
    claim_id: str


@job(KIND, queue="runs", attempts=3, backoff_s=5.0, lasting=True)
async def run_gates(running: Running, args: ClaimArgs) -> Finish:
    """Run the gates of a claim, one after the other, and keep what they said. A finished run is never repeated."""
    found = await running.read(lambda tx: _task(tx, running.tenant, args.claim_id))
    if found is None:
        return lambda tx: _end(tx, args.claim_id, error="Nobody waits for it any more.")
    head, project, settings = found
    try:
        results = await _run_all(running, args.claim_id, head, project, settings)
    except RookeryError as error:
        if error.retryable:
            raise
        reason = error.message
        return lambda tx: _end(tx, args.claim_id, error=reason)
    return lambda tx: _end(tx, args.claim_id, results=[each._asdict() for each in results])


@run_gates.ended
def _given_up(tx: Tx, end: Ended) -> None:
    _end(tx, end.args.claim_id, error=end.error)


async def _run_all(
    running: Running, claim_id: str, head: str, project: ProjectSettings, settings: OrchestratorSettings
) -> list[GateResult]:
    site = site_of(project, settings, running.platform.calls.facts["settings"])
    folder = await reading_copy(site, f"gates-{claim_id}", head)
    results: list[GateResult] = []
    try:
        for gate in project.gates:
            await running.progress(len(results), len(project.gates), gate.label)
            ran = await run_command(gate.command, folder, settings.gate_limit_s, MAX_OUTPUT)
            code = NOT_RUN if ran.exit_code is None else ran.exit_code
            results.append(GateResult(gate.command, gate.label, code, ran.output, gate.required))
    finally:
        # What cannot be removed now goes when it is old; the results are what counts.
        with contextlib.suppress(RookeryError):
            await discard(site, folder)
    return results


def _of(tx: Tx, claim_id: str) -> tuple[Row | None, bool]:
    """What is kept of the gates of a claim, and whether somebody will go on with them."""
    row = tx.one(sa.select(gate_runs).where(_g.claim_id == claim_id))
    job = None if row is None else Jobs(tx, row.tenant).by_key(_key(claim_id))
    return row, job is not None and not is_over(job)


def _key(claim_id: str) -> str:
    return f"gates:{claim_id}"


def _begin(tx: Tx, claim: Claim) -> None:
    """Have the gates run. Of several who ask at once one does."""
    finding = tx.one(sa.select(findings.c.tenant, findings.c.issue_id).where(findings.c.id == claim.id))
    if finding is None:
        return
    insert = (sqlite if tx.dialect == "sqlite" else postgresql).insert(gate_runs)
    row = {"claim_id": claim.id, "tenant": finding.tenant, "issue_id": finding.issue_id, "head": claim.head or ""}
    made = insert.values(**row, created_ms=DbNow()).on_conflict_do_nothing()
    if tx.one(made.returning(_g.claim_id)) is not None:
        Jobs(tx, finding.tenant).defer(run_gates, {"claim_id": claim.id}, key=_key(claim.id))


def _task(tx: Tx, tenant: str, claim_id: str) -> tuple[str, ProjectSettings, OrchestratorSettings] | None:
    """The commit and what is set for its project; None if the claim waits no more, or its gates have run."""
    wanted = (
        sa.select(gate_runs.c.head, issues.c.project_id)
        .join(issues, issues.c.id == _g.issue_id)
        .join(finding_processing, finding_processing.c.finding_id == _g.claim_id)
        .where(_g.tenant == tenant, _g.claim_id == claim_id, _g.ended_ms.is_(None))
        .where(finding_processing.c.processed_ms.is_(None))
    )
    row = tx.one(wanted)
    if row is None:
        return None
    project = Projects(tx, orchestrator(tenant, row.project_id, "")).settings()
    return row.head, project, OrchestratorProjects(tx, tenant).of(row.project_id)[1]


def _end(tx: Tx, claim_id: str, *, results: list[dict[str, Any]] | None = None, error: str | None = None) -> None:
    """Keep how the run ended; the first end counts."""
    said = None if error is None else error[:MAX_ERROR].replace("\0", "").encode("utf-8", "replace").decode()
    ended = sa.update(gate_runs).where(_g.claim_id == claim_id, _g.ended_ms.is_(None))
    if tx.run(ended.values(results=sa.null() if results is None else results, error=said, ended_ms=DbNow())):
        tx.wake(WAKE)


def _not_run(gate: Gate, reason: str) -> GateResult:
    return GateResult(gate.command, gate.label, NOT_RUN, f"It could not be run. {reason}", gate.required)
