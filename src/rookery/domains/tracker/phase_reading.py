"""With what people see how far an issue has come: each phase with what was claimed for it and what a judge said."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import sqlalchemy as sa
from pydantic import Field

from rookery.core.context import Context
from rookery.core.tool import ToolInput, ToolOutput, tool
from rookery.domains.tracker.inputs import Ref
from rookery.domains.tracker.issue_view import IssueView
from rookery.domains.tracker.project_store import Projects
from rookery.domains.tracker.store import Issues
from rookery.domains.tracker.tables import artifacts, finding_processing, findings, phase_claims, phase_verdicts
from rookery.lifecycle.states import FINISHED, ISSUE, PHASES

Row = sa.Row[Any]
State = Literal["done", "current", "review", "rejected", "skipped", "later"]


class ReadPhases(ToolInput):
    issue_id: Ref = Field(description="Id or identifier.")


class PhaseShown(ToolOutput):
    phase: str
    state: State
    claims: int
    claim: dict[str, Any] | None
    verdict: dict[str, Any] | None
    judgeable: bool


class Phases(ToolOutput):
    identifier: str
    phases: list[PhaseShown]
    pr: dict[str, Any] | None
    moves: list[str]
    project: str


@tool(
    title="Read phases", effect="read", action="tracker:read", tier="observe", group="Read", profiles="",
    default=False, principals="people",
)  # fmt: skip
def read_phases(ctx: Context, args: ReadPhases) -> Phases:
    """Show the phases of an issue, and where a person may move it."""
    store = Issues(ctx.tx, ctx.actor)
    issue = store.find(args.issue_id)
    settings = Projects(ctx.tx, ctx.actor).settings(issue.project_id)
    labels = store.labels([issue])[issue.id]
    left_out = {label.removeprefix("skip:") for label in labels if label.startswith("skip:")}
    left_out |= set(PHASES) - set(settings.pipeline)
    claims = _claims(ctx, issue.id)
    verdicts = _verdicts(ctx, [rows[-1].finding_id for rows in claims.values()])
    pr = IssueView(ctx.tx, ctx.actor, issue).pr()
    shown: list[PhaseShown] = []
    for phase in PHASES:
        rows = claims.get(phase, [])
        claim = rows[-1] if rows else None
        verdict = None if claim is None else verdicts.get(claim.finding_id)
        state = _state(phase, issue, claim, verdict, left_out, pr)
        waits = claim is not None and claim.processed_ms is None and verdict is None
        judgeable = phase != "ready" and state == "review" and waits
        shown.append(
            PhaseShown(
                phase=phase,
                state=state,
                claims=len(rows),
                claim=None if claim is None else _claim(claim),
                verdict=None if verdict is None else _verdict(verdict),
                judgeable=judgeable,
            )
        )
    return Phases(
        identifier=issue.identifier,
        phases=shown,
        pr=pr,
        moves=list(ISSUE.legal(issue.status, "human")),
        project=settings.slug,
    )


def _state(
    phase: str, issue: Row, claim: Row | None, verdict: Row | None, left_out: set[str], pr: dict[str, Any] | None
) -> State:
    at, now = PHASES.index(phase), PHASES.index(issue.phase)
    if at > now:
        return "skipped" if phase in left_out else "later"
    if at < now:
        return "skipped" if claim is None else "done"
    if issue.status in FINISHED:
        return "done" if issue.status == "done" else "skipped"
    if phase == "ready":
        undecided = pr is not None and issue.status == "review"
        return "review" if undecided else "rejected" if pr is not None and pr["status"] == "rejected" else "current"
    if verdict is not None and verdict.verdict == "rejected":
        return "rejected"
    return "review" if claim is not None and claim.processed_ms is None else "current"


def _claims(ctx: Context, issue_id: str) -> Mapping[str, Sequence[Row]]:
    """All claims by phase, oldest first, the artifacts without their content."""
    kept = sa.and_(artifacts.c.issue_id == phase_claims.c.issue_id, artifacts.c.hash == phase_claims.c.artifact_hash)
    wanted = (
        sa.select(
            phase_claims,
            findings.c.payload,
            findings.c.author,
            findings.c.created_ms,
            finding_processing.c.processed_ms,
            finding_processing.c.outcome,
            artifacts.c.path.label("artifact_path"),
            sa.func.length(artifacts.c.content).label("artifact_length"),
        )
        .join(findings, findings.c.id == phase_claims.c.finding_id)
        .join(finding_processing, finding_processing.c.finding_id == phase_claims.c.finding_id)
        .outerjoin(artifacts, kept)
        .where(phase_claims.c.issue_id == issue_id)
        .order_by(phase_claims.c.seq)
    )
    found: dict[str, list[Row]] = {}
    for row in ctx.tx.all(wanted):
        found.setdefault(row.phase, []).append(row)
    return found


def _verdicts(ctx: Context, claim_ids: Sequence[str]) -> Mapping[str, Row]:
    wanted = (
        sa.select(phase_verdicts, findings.c.payload, findings.c.author, findings.c.created_ms)
        .join(findings, findings.c.id == phase_verdicts.c.finding_id)
        .where(phase_verdicts.c.claim_id.in_(claim_ids))
    )
    return {row.claim_id: row for row in ctx.tx.all(wanted)} if claim_ids else {}


def _claim(row: Row) -> dict[str, Any]:
    said = ("summary", "confidence", "open_questions", "contract_version")
    facts = {name: getattr(row, name) for name in ("branch", "head", "artifact_path", "artifact_length", "outcome")}
    about = {"author": row.profile or row.author, "at_ms": row.created_ms, "hash": row.artifact_hash}
    return {"id": row.finding_id, **about, **facts, **{name: row.payload.get(name) for name in said}}


def _verdict(row: Row) -> dict[str, Any]:
    said = {name: row.payload.get(name) for name in ("reason", "fix_instructions")}
    return {"verdict": row.verdict, "author": row.author, "at_ms": row.created_ms, **said}
