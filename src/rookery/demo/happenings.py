"""What has happened in a project, as lines that a person can follow. All of it is read from what is stored anyway."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from rookery.db.tx import Tx
from rookery.domains.tracker.learning_tables import learnings
from rookery.domains.tracker.tables import comments, coverage, findings, issue_changes, pr_gates, prs
from rookery.engine.tables import ENDED, QUEUED, dispatches, intake_requests
from rookery.lifecycle.issue_tables import issues

Row = sa.Row[Any]
YOU = "you"
OWNER = "owner"
ORCHESTRATOR = "orchestrator"
LONGEST = 160


@dataclass(frozen=True, slots=True, order=True)
class Happening:
    """Something that is told once: `key` says what it is."""

    at_ms: int
    key: tuple[str, ...]
    who: str
    what: str


def happenings(tx: Tx, project_id: str) -> list[Happening]:
    """Everything so far, in its order."""
    known = tx.all(sa.select(issues).where(issues.c.project_id == project_id))
    names: dict[str, str] = {row.id: row.identifier for row in known}
    told = [*map(_made, known)]
    for table, lines in (
        (findings, _finding),
        (issue_changes, _change),
        (comments, _comment),
        (prs, _pull_request),
        (learnings, _learning),
    ):
        rows = tx.all(sa.select(table).where(table.c.issue_id.in_(names)))
        told += [line for row in rows for line in lines(row, names.get(row.issue_id, ""))]
    for table, lines in ((dispatches, _dispatch), (coverage, _examined), (intake_requests, _request)):
        rows = tx.all(sa.select(table).where(table.c.project_id == project_id))
        told += [line for row in rows for line in lines(row, names)]
    gates = sa.select(pr_gates, prs.c.issue_id, prs.c.created_ms, prs.c.revision).join(
        prs, prs.c.id == pr_gates.c.pr_id
    )
    told += map(_gate, tx.all(gates.where(prs.c.issue_id.in_(names))))
    return sorted(told)


def _short(text: str | None) -> str:
    line = " ".join((text or "").split())
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 1]}…"


def _made(issue: Row) -> Happening:
    what = f"makes an issue, {issue.identifier}: {_short(issue.title)}"
    return Happening(issue.created_ms, ("issue", issue.id), issue.author, what)


def _finding(row: Row, issue: str) -> Iterator[Happening]:
    told: dict[str, Any] = row.payload
    if row.category == "phase_completion":
        phase = told["completed_phase"]
        done = "it is built" if phase == "ready" else f"{phase} is complete"
        what = f"claims for {issue} that {done}: {_short(told['summary'])}"
    elif row.category == "phase_verdict":
        verb = "approves" if told["verdict"] == "approved" else "REJECTS"
        what = f"{verb} {told['phase']} of {issue}: {_short(told.get('reason'))}"
    else:
        what = f"notes a {row.category.replace('_', ' ')}: {_short(told.get('summary'))}"
    yield Happening(row.created_ms, ("finding", row.id), row.author, what)


def _change(row: Row, issue: str) -> Iterator[Happening]:
    key, who = ("change", str(row.seq)), YOU if row.author == OWNER else row.author
    if row.field == "phase":
        yield Happening(row.at_ms, key, who, f"moves {issue} from {row.old} to {row.new}")
    elif row.field == "status" and (row.old == "backlog" or row.new in ("done", "blocked")):
        verb = "set" if who == YOU else "sets"
        yield Happening(row.at_ms, key, who, f"{verb} {issue} to {row.new}")


def _comment(row: Row, issue: str) -> Iterator[Happening]:
    if row.author == ORCHESTRATOR:
        yield Happening(row.created_ms, ("comment", row.id), row.author, f"writes on {issue}: {_short(row.content)}")


def _learning(row: Row, issue: str) -> Iterator[Happening]:
    yield Happening(row.created_ms, ("learning", row.id), row.author, f"has learned: {_short(row.pattern)}")


def _pull_request(row: Row, issue: str) -> Iterator[Happening]:
    stats: dict[str, Any] = row.stats
    size = f"{stats['changed_files']} files, +{stats['added']} -{stats['deleted']}"
    what = f"opens revision {row.revision} of the pull request of {issue}: {size}, risk {row.risk_level}"
    yield Happening(row.created_ms, ("pr", row.id, "open"), ORCHESTRATOR, what)
    if row.status in ("approved", "rejected"):
        verb = "approves" if row.status == "approved" else "REJECTS"
        told = f"{verb} revision {row.revision}: {_short(row.reason)}"
        yield Happening(row.updated_ms, ("pr", row.id, "judged"), "judge", told)


def _gate(row: Row) -> Happening:
    said = "passes" if row.exit_code == 0 else f"fails with {row.exit_code}"
    key = ("gate", row.pr_id, str(row.position))
    return Happening(row.created_ms, key, ORCHESTRATOR, f"gate “{row.label}” {said} on revision {row.revision}")


def _dispatch(row: Row, names: dict[str, str]) -> Iterator[Happening]:
    issue = names.get(row.issue_id or "", "")
    about = {
        "phase": f"begins to build {issue}" if row.phase == "ready" else f"begins {row.phase} of {issue}",
        "judge_phase": f"looks at {row.phase} of {issue}",
        "judge_pr": f"looks at the pull request of {issue}",
        "scan": "begins to look through files",
        "intake": "begins to read requests",
    }[row.work]
    again = f" (attempt {row.attempt})" if row.attempt > 1 else ""
    if row.state != QUEUED and row.started_ms is not None:
        yield Happening(row.started_ms, ("dispatch", row.id), row.role, f"{about}{again}")
    if row.state == ENDED and row.outcome not in ("succeeded", None):
        said = f"its run ended: {row.outcome}. {_short(row.error)}".strip()
        yield Happening(row.ended_ms, ("ended", row.id), row.role, said)


def _examined(row: Row, names: dict[str, str]) -> Iterator[Happening]:
    found = f"; it found {names.get(row.ticket_id, '')}" if row.ticket_id else ""
    what = f"has read {row.file_path} for {row.concept}{found}"
    yield Happening(row.updated_ms, ("coverage", row.file_path, row.concept), "scanner", what)


def _request(row: Row, names: dict[str, str]) -> Iterator[Happening]:
    if row.done_ms is not None:
        ids: list[str] = row.issues or []
        made = ", ".join(names.get(each, each) for each in ids)
        what = f"has taken in “{_short(row.text)[:60]}”: {made or _short(row.note) or 'nothing new'}"
        yield Happening(row.done_ms, ("request", row.id), "intake", what)
