"""What became of the requests of a project, for people."""

import asyncio
from typing import Any

import sqlalchemy as sa
from pydantic import Field

from rookery.core.context import Context
from rookery.core.tool import ToolInput, ToolOutput, tool
from rookery.db.tx import Tx
from rookery.domains.tracker.project_store import Projects, ProjectSettings
from rookery.engine.intake_folder import folder_of, look_into
from rookery.engine.intake_store import Requests, State
from rookery.engine.project_settings import OrchestratorProjects, OrchestratorSettings
from rookery.engine.tables import ENDED, dispatches
from rookery.lifecycle.issue_tables import issues

SHOWN_TEXT = 200
_d = dispatches.c


class ListRequests(ToolInput):
    state: State | None = Field(None, description="Only these.")
    limit: int = Field(50, ge=1, le=500, description="At most.")


class ListedRequests(ToolOutput):
    requests: list[dict[str, Any]]
    counts: dict[str, int]
    left: list[dict[str, str]]
    """Files of the intake folder that are not taken in, and why."""
    failed: str | None
    """How the last intake came to nothing; None if it did not, or if nothing waits for the next one."""


# Not in a module where tools are looked for: only people ask, so no session pays for its listing.
@tool(
    title="List requests", effect="external", action="tracker:read", tier="observe", group="Read", profiles="",
    default=False, principals="people", binds="project", open_world=False,
)  # fmt: skip
async def list_requests(ctx: Context, args: ListRequests) -> ListedRequests:
    """List the bound project's raw requests, newest first, with the issues that stand for them. Use it to see what
    became of them. Returns also what cannot be taken in from the intake folder; it reads only."""
    actor = ctx.actor

    def look(tx: Tx) -> tuple[ListedRequests, ProjectSettings, OrchestratorSettings]:
        project = Projects(tx, actor).settings()
        store = Requests(tx, actor.tenant)
        rows = store.listed(project.project_id, args.state, args.limit)
        names, counts = _identifiers(tx, actor.tenant, rows), store.counts(project.project_id)
        failed = _failed(tx, actor.tenant, project.project_id) if counts.get("new") else None
        _, settings = OrchestratorProjects(tx, actor.tenant).of(project.project_id)
        shown = [_shown(row, names) for row in rows]
        return ListedRequests(requests=shown, counts=counts, left=[], failed=failed), project, settings

    listed, project, settings = await ctx.read(look)
    folder = folder_of(project, settings)
    found = await asyncio.to_thread(look_into, folder) if folder is not None else []
    left = [{"file": each.name, "why": each.why} for each in found if each.why is not None]
    return listed.model_copy(update={"left": left})


def _failed(tx: Tx, tenant: str, project_id: str) -> str | None:
    same = (_d.tenant == tenant, _d.project_id == project_id, _d.work == "intake", _d.issue_id.is_(None))
    ended = sa.select(dispatches).where(*same, _d.state == ENDED, _d.outcome != "cancelled")
    last = tx.one(ended.order_by(_d.created_ms.desc(), _d.id.desc()).limit(1))
    return None if last is None or last.outcome == "succeeded" else f"{last.outcome}: {last.error or 'no reason given'}"


def _identifiers(tx: Tx, tenant: str, rows: Any) -> dict[str, str]:
    ids = {each for row in rows for each in row.issues or ()}
    found = sa.select(issues.c.id, issues.c.identifier).where(issues.c.tenant == tenant, issues.c.id.in_(ids))
    return {row.id: row.identifier for row in tx.all(found)} if ids else {}


def _shown(row: sa.Row[Any], names: dict[str, str]) -> dict[str, Any]:
    shown = {name: getattr(row, name) for name in ("id", "state", "source", "submitted_by", "note", "created_ms")}
    text = " ".join(row.text.split())
    return {
        **shown,
        "done_ms": row.done_ms,
        "issues": [names[each] for each in row.issues or () if each in names],
        "text": text if len(text) <= SHOWN_TEXT else f"{text[: SHOWN_TEXT - 1]}…",
    }
