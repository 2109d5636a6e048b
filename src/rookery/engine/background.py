"""What agents do in the background of a project: files are scanned, and raw requests become issues."""

from collections.abc import Callable
from typing import Any

import sqlalchemy as sa

from rookery.core.actor import Actor
from rookery.core.errors import RookeryError
from rookery.db.database import Database
from rookery.db.tx import Tx
from rookery.domains.tracker.coverage_store import Readings
from rookery.domains.tracker.project_store import ProjectSettings
from rookery.domains.tracker.tables import coverage
from rookery.engine.assigning import session_key
from rookery.engine.dispatches import NewDispatch, Outcome
from rookery.engine.intake_folder import take_in_folder
from rookery.engine.intake_prompt import intake_prompt
from rookery.engine.intake_settling import return_requests, runs_of, settle_requests
from rookery.engine.intake_store import Requests
from rookery.engine.project_settings import OrchestratorSettings
from rookery.engine.scan_prompt import scan_prompt
from rookery.engine.scan_wish import next_scan
from rookery.engine.tables import ENDED, dispatches
from rookery.engine.world_facts import Wish
from rookery.jobs.running import Ground

__all__ = ["background_outcome", "background_prompt", "background_wishes", "take_in_folder"]
Row = sa.Row[Any]
MOST_CHARACTERS = 60_000
"""An intake agent is told no more of requests at once, unless a single one is longer."""
MOST_REQUESTS = 100
MOST_NAMED = 10
_d = dispatches.c
_AT_WORK = (
    sa.select(_d.id)
    .where(_d.tenant == sa.bindparam("of_tenant"), _d.project_id == sa.bindparam("wanted"))
    .where(_d.work == "intake", _d.issue_id.is_(None), _d.state != ENDED)
    .limit(1)
)
_PROMPTS: dict[str, Callable[[Tx, Row, Actor], str]] = {"scan": scan_prompt, "intake": intake_prompt}


async def background_wishes(
    platform: Ground, tenant: str, project: ProjectSettings, settings: OrchestratorSettings
) -> list[Wish]:
    """The scan and the intake that could start now in the project, at most one of each.

    What an intake that has ended left behind is settled first. Raises what is wrong with the project's folder.
    """
    intake = await next_intake(platform.database, tenant, project.project_id, settings)
    scan = None
    try:
        scan = await next_scan(platform.database, tenant, project, settings)
    except RookeryError:
        if intake is None:
            raise
        # It is told when no request would be held up by that.
    return [Wish(tenant=tenant, new=new) for new in (intake, scan) if new is not None]


async def background_prompt(platform: Ground, dispatch: Row, actor: Actor) -> str:
    """What the agent of a scan or an intake is told; from here on it has what it was given.

    Called once the dispatch runs, before its session starts. Conflict if there is nothing left to do.
    """
    return await platform.database.change(lambda tx: _PROMPTS[dispatch.work](tx, dispatch, actor))


def background_outcome(tx: Tx, dispatch: Row) -> tuple[Outcome, str | None]:
    """What an attempt came to by what is on record, and what was left.

    It succeeded if nothing is left, or if its session ended well and did some of it. What is left is given to another.
    """
    given, left = _scanned(tx, dispatch) if dispatch.work == "scan" else _taken_in(tx, dispatch)
    if not left:
        return "succeeded", None
    what = "files were not recorded" if dispatch.work == "scan" else "requests were not answered"
    more = f" and {len(left) - MOST_NAMED} more" if len(left) > MOST_NAMED else ""
    why = f"{len(left)} of {given} {what}: {', '.join(left[:MOST_NAMED])}{more}"
    ended_well = any(run.status == "succeeded" for run in runs_of(tx, dispatch))
    return ("succeeded" if ended_well and len(left) < given else "idle"), why


async def next_intake(
    database: Database, tenant: str, project_id: str, settings: OrchestratorSettings
) -> NewDispatch | None:
    """The requests that an intake agent could be given now, if there are any."""
    left_behind = await database.read(lambda tx: Requests(tx, tenant).left_behind(project_id))
    for dispatch in left_behind:
        await database.change(lambda tx, over=dispatch: return_requests(tx, over, settings.max_retries))
    chosen = await database.read(lambda tx: _batch(tx, tenant, project_id, settings.intake_batch))
    if not chosen:
        return None
    return NewDispatch(project_id=project_id, work="intake", role="intake", agent="", payload={"requests": chosen})


def _batch(tx: Tx, tenant: str, project_id: str, size: int) -> list[str]:
    """The oldest of those that were tried least, in smaller company each time; none while an agent is at work."""
    if tx.one(_AT_WORK, {"of_tenant": tenant, "wanted": project_id}) is not None:
        return []
    store = Requests(tx, tenant)
    waiting = store.waiting(project_id, MOST_REQUESTS)
    counted = {name: sum(counts) for name, counts in store.tries(project_id, waiting).items()}
    tries = min(counted.values(), default=0)
    room = max(min(size, MOST_REQUESTS) >> tries, 1)
    chosen: list[str] = []
    characters = 0
    for request in waiting:
        if counted[request.id] != tries:
            continue
        characters += len(request.text)
        if len(chosen) == room or (chosen and characters > MOST_CHARACTERS):
            break
        chosen.append(request.id)
    return chosen


def _scanned(tx: Tx, dispatch: Row) -> tuple[int, list[str]]:
    """How many files the scanner was given, and which of them nobody has recorded with the content that they had."""
    c, payload = coverage.c, dispatch.payload
    mine = (c.tenant == dispatch.tenant, c.project_id == dispatch.project_id, c.concept == payload["concept"])
    named = c.file_path.in_([file["path"] for file in payload["files"]])
    seen = {row.file_path: row.content for row in tx.all(sa.select(c.file_path, c.content).where(*mine, named))}
    Readings(tx, dispatch.tenant).end(session_key(dispatch.id))
    return len(payload["files"]), [
        file["path"] for file in payload["files"] if seen.get(file["path"]) != file["content"]
    ]


def _taken_in(tx: Tx, dispatch: Row) -> tuple[int, list[str]]:
    """How many requests the agent was given, and which of them nothing stands for."""
    settle_requests(tx, dispatch)
    given = dispatch.payload["requests"]
    return len(given), Requests(tx, dispatch.tenant).undone(dispatch.project_id, given)
