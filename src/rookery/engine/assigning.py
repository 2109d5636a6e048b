"""Gives an issue to the agent of a dispatch, keeps it there while the agent lives, and takes it back.

An attempt holds its issue by the number of its lease and by a session of its own. So whatever a dead attempt still
says comes from somebody who holds nothing, and nobody takes an issue back that has changed hands since.
"""

from typing import Any

import sqlalchemy as sa

from rookery.core.actor import Actor
from rookery.core.errors import Conflict
from rookery.db.tx import Tx
from rookery.domains.tracker.advance import orchestrator
from rookery.domains.tracker.claim_store import Claims
from rookery.domains.tracker.lease_moves import LeaseMoves
from rookery.domains.tracker.lease_store import db_now
from rookery.domains.tracker.pr_store import latest_pr
from rookery.domains.tracker.store import Issues
from rookery.domains.tracker.tables import comments
from rookery.engine.dispatches import Dispatches
from rookery.identity.store import IdentityStore
from rookery.lifecycle.issue_tables import issues
from rookery.lifecycle.session_runs import Unwanted

Row = sa.Row[Any]
LEASE_MINUTES = 5
ORCHESTRATOR = "orchestrator"
REMEMBERED = 5
"""Of what the orchestrator said last on an issue so much is not said again."""
_i = issues.c


def session_key(dispatch_id: str) -> str:
    """What the session of an attempt is called. No two attempts share one."""
    return f"dispatch:{dispatch_id}"


def assign(tx: Tx, actor: Actor, dispatch: Row) -> Row | None:
    """Begin the attempt: its issue, if it has one, is the agent's from here on. Returns the issue.

    Conflict or NotFound if the issue cannot be had: another has it, it has moved on, or nothing of it is to be judged.
    Unwanted if the dispatch was ended meanwhile.
    """
    issue = None
    if dispatch.work == "phase":
        issue = LeaseMoves(tx, actor).claim(None, LEASE_MINUTES).issue
        if issue.phase != dispatch.phase:
            raise Conflict(f"{issue.identifier} is in {issue.phase} by now", hint="that phase has its own attempt")
    elif dispatch.issue_id is not None:
        issue = Issues(tx, actor).bound(lock=True)
        if (why := undecidable(tx, actor, issue, dispatch)) is not None:
            raise Conflict(why, hint="nothing is left to be judged")
    held = {} if dispatch.work != "phase" or issue is None else {"fence": issue.fence}
    if Dispatches(tx, dispatch.tenant).begin(dispatch, session=session_key(dispatch.id), **held) is None:
        raise Unwanted
    return issue


def undecidable(tx: Tx, actor: Actor, issue: Row, dispatch: Row) -> str | None:
    """Why what a judge was sent for cannot be judged any more; None if it can."""
    if dispatch.work == "judge_pr":
        pr = latest_pr(tx, issue.id)
        if pr is None or pr.id != dispatch.about:
            return "the pull request has another revision now"
        return None if pr.status == "open" else f"the pull request is {pr.status}"
    claim = Claims(tx, actor).latest(issue.id, issue.phase)
    if claim is None or claim.finding_id != dispatch.about:
        return "another claim waits for a judge now, or none"
    return None if claim.processed_ms is None else "what was claimed is decided"


def keep(tx: Tx, dispatch: Row) -> bool:
    """Let the lease of a living attempt end later; False if it has no lease any more."""
    end = db_now(tx) + LEASE_MINUTES * 60_000
    later = sa.case((_i.lease_until_ms > end, _i.lease_until_ms), else_=end)
    renewed = sa.update(issues).where(*_held(dispatch)).values(lease_until_ms=later)
    return tx.one(renewed.returning(_i.id)) is not None


def give_back(tx: Tx, dispatch: Row, why: str) -> bool:
    """Let others have the issue, with the reason in its history; False if the attempt does not hold it any more."""
    if dispatch.work != "phase" or dispatch.fence is None:
        return False
    held = tx.one(sa.select(issues).where(*_held(dispatch)).with_for_update())
    if held is None:
        return False
    Issues(tx, orchestrator_of(tx, dispatch)).move(held, "todo", "orchestrator", why=why)
    return True


def orchestrator_of(tx: Tx, dispatch: Row) -> Actor:
    """Who writes what the orchestrator has to say in the project of a dispatch."""
    project = IdentityStore(tx, dispatch.tenant).project(dispatch.project_id)
    return orchestrator(dispatch.tenant, project.id, project.slug)


def tell(tx: Tx, dispatch: Row, text: str) -> bool:
    """Comment on the issue of a dispatch; False if it has none, or if that was said there just before."""
    issue = tx.one(sa.select(issues).where(_i.tenant == dispatch.tenant, _i.id == dispatch.issue_id))
    if issue is None or _is_told(tx, issue, text):
        return False
    Issues(tx, orchestrator_of(tx, dispatch)).comment(issue, text)
    return True


def _is_told(tx: Tx, issue: Row, text: str) -> bool:
    """Whether it is among the orchestrator's last comments on the issue: each retry would say it again."""
    mine = (comments.c.issue_id == issue.id, comments.c.subject == ORCHESTRATOR)
    last = sa.select(comments.c.content).where(*mine).order_by(comments.c.seq.desc()).limit(REMEMBERED)
    return text in [row.content for row in tx.all(last)]


def _held(dispatch: Row) -> tuple[sa.ColumnElement[bool], ...]:
    return (
        _i.tenant == dispatch.tenant,
        _i.id == dispatch.issue_id,
        _i.status == "in_progress",
        _i.fence == dispatch.fence,
        _i.lease_session == session_key(dispatch.id),
    )
