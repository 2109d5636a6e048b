"""The tool that takes an issue to the project whose work it turned out to be."""

import asyncio
import os
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import sqlalchemy as sa
from pydantic import Field, StringConstraints

from rookery.core.actor import Actor
from rookery.core.context import Context
from rookery.core.errors import Conflict
from rookery.core.tool import ToolOutput, tool
from rookery.db.tx import Tx
from rookery.domains.tracker.inputs import OnIssue, Ref
from rookery.domains.tracker.move_files import TICKETS, Staged, read_tickets
from rookery.domains.tracker.notices import issue_changed
from rookery.domains.tracker.project_store import Projects, ProjectSettings
from rookery.domains.tracker.store import NO_LEASE, Issues, now_ms
from rookery.domains.tracker.tables import artifacts, finding_processing, issue_labels, phase_claims, prs
from rookery.domains.tracker.worktree import verify_worktree
from rookery.identity.store import begin_change
from rookery.lifecycle.issue_tables import issue_aliases, issues
from rookery.lifecycle.states import FINISHED, ISSUE, PHASES

MovedRows = tuple[sa.Row[Any], sa.Row[Any], list[str]]
Settled = tuple[sa.Row[Any], sa.Row[Any], list[str], int]


class MoveIssue(OnIssue):
    target_project_id: Ref = Field(description="Id or slug of the destination.")
    reason: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=5_000)] = Field(
        description="Why it belongs there."
    )


class Moved(ToolOutput):
    identifier: str
    moved_from: str
    project: str
    status: str
    labels: list[str]
    files_copied: int


@tool(
    title="Move issue", effect="external", action="tracker:write", tier="act", group="Write", profiles="P",
    default=False, binds="issue", open_world=False, outline=False,
)  # fmt: skip
async def move_issue(ctx: Context, args: MoveIssue) -> Moved:
    """Move the bound issue to another project, with its artifact files. Use it when the work belongs there.
    Returns its new identifier; it starts again as todo. Not for finished issues, or with open subtasks or parent."""
    actor = ctx.actor
    issue, source, target, accepted = await ctx.read(lambda tx: _look(tx, actor, args.target_project_id))
    staging = asyncio.ensure_future(asyncio.to_thread(_stage, actor, issue, (source, target), accepted))
    try:
        staged = await asyncio.shield(staging)
    except asyncio.CancelledError:
        # The thread goes on; what it leaves beside the destination goes away as soon as it is done.
        staging.add_done_callback(_discard)
        raise
    # What is committed gets its files, whoever gives up in between.
    old, new, labels, copied = await asyncio.shield(asyncio.ensure_future(_settle(ctx, args, target, staged)))
    issue_changed(ctx, old)
    ctx.publish("ResourceUpdated", subject=f"issue://{new.identifier}")
    ctx.publish("ResourceUpdated", subject=f"project://{target.slug}/board")
    return Moved(
        identifier=new.identifier,
        moved_from=old.identifier,
        project=target.slug,
        status=new.status,
        labels=labels,
        files_copied=copied,
    )


def _look(
    tx: Tx, actor: Actor, wanted: str
) -> tuple[sa.Row[Any], ProjectSettings, ProjectSettings, Sequence[sa.Row[Any]]]:
    """What there is to move and where, refused before any file is touched."""
    projects = Projects(tx, actor)
    issue, target = Issues(tx, actor).bound(), projects.find(wanted)
    _check(tx, issue, target)
    return issue, projects.settings(), target, _accepted(tx, issue)


def _check(tx: Tx, issue: sa.Row[Any], target: ProjectSettings) -> None:
    # The seed also wants a phase label, which every issue here has: its phase is a column.
    if target.project_id == issue.project_id:
        raise Conflict(f"{issue.identifier} is in {target.slug} already", hint="name another project")
    if ISSUE.terminal(issue.status):
        raise Conflict(
            f"{issue.identifier} is {issue.status} and stays where it is", hint="create_issue makes a new one"
        )
    family = sa.or_(issues.c.parent_id == issue.id, issues.c.id == issue.parent_id)
    relatives = tx.all(
        sa.select(issues.c.identifier, issues.c.id)
        .where(family, issues.c.tenant == issue.tenant, issues.c.status.not_in(FINISHED))
        .order_by(issues.c.created_ms)
        .limit(11)
    )
    if relatives:
        names = ", ".join(row.identifier for row in relatives[:10]) + (", …" if len(relatives) > 10 else "")
        raise Conflict(
            f"{issue.identifier} cannot be moved away from its open {_kin(issue, relatives)} {names}",
            hint="finish or cancel these first, or create a new issue in the other project",
        )


def _kin(issue: sa.Row[Any], relatives: Sequence[sa.Row[Any]]) -> str:
    parents = sum(row.id == issue.parent_id for row in relatives)
    words = (["parent"] if parents else []) + (["subtasks"] if len(relatives) > parents else [])
    return " and ".join(words)


def _accepted(tx: Tx, issue: sa.Row[Any]) -> Sequence[sa.Row[Any]]:
    """The artifacts that were accepted for the phases that the issue has behind it, later claims last."""
    claimed = sa.and_(artifacts.c.issue_id == phase_claims.c.issue_id, artifacts.c.hash == phase_claims.c.artifact_hash)
    behind = PHASES[: PHASES.index(issue.phase)]
    return tx.all(
        sa.select(phase_claims.c.phase, artifacts.c.path, artifacts.c.content)
        .join(artifacts, claimed)
        .join(finding_processing, finding_processing.c.finding_id == phase_claims.c.finding_id)
        .where(phase_claims.c.issue_id == issue.id, phase_claims.c.phase.in_(behind))
        .where(finding_processing.c.outcome == "approved")
        .order_by(phase_claims.c.seq)
    )


def _stage(
    actor: Actor,
    issue: sa.Row[Any],
    projects: tuple[ProjectSettings, ProjectSettings],
    accepted: Sequence[sa.Row[Any]],
) -> Staged | None:
    """Put the issue's files beside their destination. None: there are none, or the target has no folder."""
    source, target = projects
    roots = [source.path] if source.path is not None else []
    if actor.worktree is not None:
        roots.append(verify_worktree(actor.worktree, actor.cwd, issue.identifier, issue.id).path)
    if target.path is None or not os.path.isdir(target.path):
        return None
    files: dict[str, bytes] = {}
    for root in roots:
        files |= read_tickets(root, issue.identifier)
    files |= _kept(issue, accepted)
    return Staged(target.path, files) if files else None


async def _settle(ctx: Context, args: MoveIssue, target: ProjectSettings, staged: Staged | None) -> Settled:
    try:
        old, new, labels = await ctx.write(lambda tx: _rehome(tx, ctx.actor, args, target.project_id))
        return old, new, labels, staged.count if staged is not None and staged.publish(new.identifier) else 0
    finally:
        if staged is not None:
            staged.discard()


def _discard(staging: asyncio.Future[Staged | None]) -> None:
    staged = staging.result() if not staging.cancelled() and staging.exception() is None else None
    if staged is not None:
        staged.discard()


def _kept(issue: sa.Row[Any], accepted: Sequence[sa.Row[Any]]) -> Mapping[str, bytes]:
    """What was accepted, byte for byte, whatever has become of the files since."""
    folder = "/".join((*TICKETS, issue.identifier)) + "/"
    return {
        (row.path.removeprefix(folder) if row.path.startswith(folder) else os.path.basename(row.path)): (
            row.content.encode()
        )
        for row in accepted
    }


def _rehome(tx: Tx, actor: Actor, args: MoveIssue, target_id: str) -> MovedRows:
    """Move the row, with what hangs on its project. Whatever its status was, it is todo afterwards."""
    store, projects = Issues(tx, actor), Projects(tx, actor)
    old, source, target = store.held(args.fence), projects.settings(), projects.settings(target_id)
    _check(tx, old, target)
    identifier, number = projects.next_identifier(target_id)
    values: dict[str, Any] = {
        "project_id": target.project_id,
        "identifier": identifier,
        "number": number,
        "status": "todo",
        "blocked_on": None,
        "phase": old.phase if old.phase in target.pipeline else target.pipeline[0],
        "rejections": 0,
        "updated_ms": now_ms(),
    }
    same = (issues.c.id == old.id, issues.c.project_id == old.project_id, issues.c.status == old.status)
    new = tx.one(sa.update(issues).where(*same).values(**values, **NO_LEASE).returning(*issues.c))
    if new is None:
        raise Conflict(f"{old.identifier} has just been changed by another", hint="get_issue_status, then again")
    tx.run(sa.insert(issue_aliases).values(tenant=old.tenant, identifier=old.identifier, issue_id=old.id))
    tx.run(sa.update(issue_labels).where(issue_labels.c.issue_id == old.id).values(project_id=target.project_id))
    phases = sorted({row.phase for row in _accepted(tx, old)}, key=PHASES.index)
    store.add_labels(new, [f"moved-from:{old.identifier}", *(f"skip:{phase}" for phase in phases)])
    _leave_behind(tx, old, identifier)
    store.note(new, "project", source.slug, target.slug, args.reason)
    for name in ("identifier", "status", "phase"):
        if getattr(old, name) != getattr(new, name):
            store.note(new, name, getattr(old, name), getattr(new, name), args.reason)
    store.comment(new, f"**moved** from {old.identifier} to {identifier}: {args.reason}")
    if old.lease_subject is not None:
        # The session that held it is bound to it no longer. Last, after every row is locked.
        begin_change(tx)
    return old, new, store.labels([new])[new.id]


def _leave_behind(tx: Tx, old: sa.Row[Any], identifier: str) -> None:
    """Claims that still wait and pull requests are about the repository that the issue leaves."""
    at, here = now_ms(), finding_processing.c.project_id == old.project_id
    mine = (here, finding_processing.c.issue_id == old.id, finding_processing.c.processed_ms.is_(None))
    tx.run(sa.update(finding_processing).where(*mine).values(processed_ms=at, outcome="moved"))
    alive = (prs.c.issue_id == old.id, prs.c.status.in_(("draft", "open", "approved")))
    # What a judge has said of it stays.
    reason = sa.func.coalesce(prs.c.reason, f"the issue was moved and is {identifier} now")
    tx.run(sa.update(prs).where(*alive).values(status="closed", reason=reason, updated_ms=at))
