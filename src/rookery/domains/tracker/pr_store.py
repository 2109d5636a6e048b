"""Keeps pull requests: each claim that work is finished is a revision, with its diff, its gates and its risk.

An approval is bound to the commit and the diff that were reviewed: with any other nothing is merged.
"""

import hashlib
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import sqlalchemy as sa

from rookery.core.actor import Actor
from rookery.core.errors import Conflict
from rookery.core.ids import new_id
from rookery.db.tx import Tx
from rookery.domains.tracker.diff import DiffStats
from rookery.domains.tracker.project_store import ProjectSettings
from rookery.domains.tracker.ratings import rate
from rookery.domains.tracker.risk import GateResult, Risk, risk_of
from rookery.domains.tracker.store import Issues, now_ms
from rookery.domains.tracker.tables import pr_gates, prs
from rookery.lifecycle.states import PR, Who

Row = sa.Row[Any]
UNDECIDED = ("open", "approved")
_LATEST = sa.select(prs).where(prs.c.issue_id == sa.bindparam("wanted")).order_by(prs.c.revision.desc()).limit(1)
MAX_OUTPUT = 100_000
NOT_RUN = -1
SHOWN_FILES = 200


class Opener(NamedTuple):
    """Whose work a pull request is; the same may not judge it."""

    subject: str
    profile: str | None


class Standing(NamedTuple):
    """A commit, and the hash of its diff from where it left the base branch."""

    head: str
    diff_hash: str


def hash_of(diff: str) -> str:
    """The hash under which a diff is reviewed and approved."""
    return hashlib.sha256(diff.encode()).hexdigest()


def latest_pr(tx: Tx, issue_id: str) -> Row | None:
    """The newest revision, or None if there is none."""
    return tx.one(_LATEST, {"wanted": issue_id})


def binding_gates(gates: Sequence[GateResult], settings: ProjectSettings) -> list[GateResult]:
    """The results, with those required that the project requires, whatever was said; of each output the end.

    What a program printed need not be text: what no database can keep of it is replaced.
    """
    required = {gate.command.strip() for gate in settings.gates if gate.required}
    return [
        gate._replace(
            required=gate.required or gate.command.strip() in required,
            output=gate.output[-MAX_OUTPUT:].replace("\0", "\ufffd").encode("utf-8", "replace").decode(),
        )
        for gate in gates
    ]


def not_run(gates: Sequence[GateResult], settings: ProjectSettings) -> list[GateResult]:
    """For each gate that the project requires and that has no result among these, one that says so. It has failed."""
    run = {gate.command.strip() for gate in gates}
    missing = (gate for gate in settings.gates if gate.required and gate.command.strip() not in run)
    return [GateResult(gate.command, gate.label, NOT_RUN, "It was not run.", required=True) for gate in missing]


def open_pr(
    tx: Tx,
    actor: Actor,
    issue: Row,
    *,
    diff: str,
    stats: DiffStats,
    branch: str,
    base: str,
    gates: Sequence[GateResult],
    settings: ProjectSettings,
    risk: Risk | None = None,
    opened_by: Opener | None = None,
    who: Who = "orchestrator",
    standing: Standing | None = None,
) -> Row:
    """Open the next revision for an issue whose row the caller has locked. Moving the issue is the caller's.

    A revision that is still undecided is closed first; an agent, who may not close one, is refused. `risk` may be
    given by who computed it outside of the transaction, `standing` by who has seen in git that the diff is the
    commit's.
    """
    revision = _next_revision(tx, actor, issue, who)
    PR.check("draft", "open", who)
    kept = binding_gates(gates, settings)
    found = risk or risk_of(stats, settings.risk_thresholds, settings.sensitive_paths, kept)
    opener = opened_by or Opener(actor.subject, actor.profile)
    work = {"branch": branch, "base": base, "diff": diff, "stats": stats.as_json(SHOWN_FILES)}
    weight = {"risk_score": found.score, "risk_level": found.level, "risk_reasons": found.reasons}
    bound: dict[str, str] = {} if standing is None else standing._asdict()
    whose = {**opener._asdict(), **bound}
    row = _insert(tx, issue, revision, source_lines=stats.source_lines, **work, **weight, **whose)
    if kept:
        tx.run(
            sa.insert(pr_gates), [{"pr_id": row.id, "position": at} | gate._asdict() for at, gate in enumerate(kept)]
        )
    Issues(tx, actor).note(issue, "pr", None, "open", f"revision {revision}")
    return row


def _next_revision(tx: Tx, actor: Actor, issue: Row, who: Who) -> int:
    before = latest_pr(tx, issue.id)
    if before is None:
        return 1
    if before.status in UNDECIDED:
        if who == "agent":
            raise Conflict(
                f"revision {before.revision} of {issue.identifier}'s pull request is still {before.status}",
                hint="wait until it is merged or rejected, or let complete_phase open the next revision",
            )
        decide_pr(tx, actor, issue, before, "closed", who, reason="superseded by a new revision")
    return before.revision + 1


def _insert(tx: Tx, issue: Row, revision: int, **values: Any) -> Row:
    whose = {"tenant": issue.tenant, "project_id": issue.project_id, "issue_id": issue.id}
    at = now_ms()
    new = {"id": new_id("pr"), "revision": revision, "status": "open", "created_ms": at, "updated_ms": at}
    row = tx.one(sa.insert(prs).values(**whose, **new, **values).returning(*prs.c))
    assert row is not None
    return row


def decide_pr(
    tx: Tx,
    actor: Actor,
    issue: Row,
    pr: Row,
    to: Literal["approved", "rejected", "merged", "closed"],
    who: Who,
    *,
    reason: str | None = None,
    fix_instructions: str | None = None,
    found: Standing | None = None,
    merged_in: str | None = None,
) -> Row:
    """Change its status, as the state machine allows it to `who`; of two who try at once one is refused.

    Merged is only what was approved: the revision's commit and diff, and what git was `found` to have, if it is known.
    """
    PR.check(pr.status, to, who)
    values: dict[str, Any] = {"status": to, "updated_ms": now_ms()}
    if to in ("approved", "rejected"):
        values |= {"reason": reason, "fix_instructions": fix_instructions, "judged_by": actor.subject}
    same = [prs.c.id == pr.id, prs.c.status == pr.status]
    if to == "approved":
        # What the judge was shown, not what the row may have become since.
        values |= {"approved_head": pr.head, "approved_diff": pr.diff_hash}
    if to == "merged":
        values["merged_in"] = merged_in
        same += _as_approved(found)
    row = tx.one(sa.update(prs).where(*same).values(**values).returning(*prs.c))
    if row is None:
        raise Conflict(
            f"the pull request of {issue.identifier} has just been decided by another", hint="get_issue shows how"
        )
    if to == "approved" or to == "rejected":
        rate(tx, issue.tenant, pr.subject, to, pr.id)
    Issues(tx, actor).note(issue, "pr", pr.status, to, reason)
    return row


def _as_approved(found: Standing | None) -> list[sa.ColumnElement[bool]]:
    head, diff = prs.c.approved_head, prs.c.approved_diff
    same = [head.is_not_distinct_from(prs.c.head), diff.is_not_distinct_from(prs.c.diff_hash)]
    return same if found is None else [*same, head == found.head, diff == found.diff_hash]
