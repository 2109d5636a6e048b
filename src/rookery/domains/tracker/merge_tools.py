"""The tool with which a person merges an approved pull request."""

import asyncio
from typing import Any

import sqlalchemy as sa
from pydantic import ConfigDict, Field

from rookery.core.context import Context
from rookery.core.errors import Conflict
from rookery.core.tool import ToolInput, tool
from rookery.db.tx import Tx
from rookery.domains.tracker.branch_merge import Method, Stale
from rookery.domains.tracker.inputs import Reason, Ref
from rookery.domains.tracker.merging import Candidate, bring_in, candidate, record_merge, void
from rookery.domains.tracker.notices import issue_changed
from rookery.domains.tracker.pr_store import Row
from rookery.domains.tracker.pr_tools import Decided
from rookery.lifecycle.issue_tables import issues


def _leave_out(schema: dict[str, Any]) -> None:
    # Every field of a listing is paid for in a context; `rookery merge` and the console have these.
    for name in ("method", "revision"):
        schema["properties"].pop(name)


class MergePr(ToolInput):
    model_config = ConfigDict(json_schema_extra=_leave_out)

    issue_id: Ref = Field(description="Id or identifier.")
    reason: Reason | None = Field(None, description="Kept as a comment.")
    method: Method = "merge"
    revision: int | None = Field(None, ge=1, description="Refuse unless it is this one.")


class MergedPr(Decided):
    commit: str | None = None


@tool(
    title="Merge PR", effect="external", action="tracker:write", tier="act", group="Review", profiles="",
    default=False, principals="operators", binds="project", open_world=False,
)  # fmt: skip
async def merge_pr(ctx: Context, args: MergePr) -> MergedPr:
    """Merge an issue's approved pull request into its base branch."""
    actor = ctx.actor
    found = await ctx.read(lambda tx: candidate(tx, actor, args.issue_id, "human"))
    if args.revision is not None and args.revision != found.pr.revision:
        raise Conflict(
            f"the pull request of {found.issue.identifier} is at revision {found.pr.revision}, not {args.revision}",
            hint="read the change as it is now and merge that one",
        )
    merged = await asyncio.to_thread(bring_in, found, args.method, actor)
    if isinstance(merged, Stale):
        raise await _voided(ctx, found, merged)

    def record(tx: Tx) -> tuple[Row, Row, str | None]:
        done, pr = record_merge(tx, actor, found, merged, "human", args.reason)
        # It shows its subtasks, and the last one that finishes unblocks it.
        parent = tx.scalar(sa.select(issues.c.identifier).where(issues.c.id == done.parent_id))
        return done, pr, parent

    done, pr, parent = await ctx.write(record)
    issue_changed(ctx, done)
    if parent is not None:
        ctx.publish("ResourceUpdated", subject=f"issue://{parent}")
    return MergedPr(
        identifier=done.identifier, revision=pr.revision, pr_status=pr.status, issue_status=done.status,
        commit=pr.merged_in,
    )  # fmt: skip


async def _voided(ctx: Context, found: Candidate, stale: Stale) -> Conflict:
    if await ctx.write(lambda tx: void(tx, ctx.actor, found, stale)):
        issue_changed(ctx, found.issue)
    return Conflict(
        f"the approval of {found.issue.identifier} is void: {stale.why}",
        hint="the issue is in todo again; what is there has to be claimed and reviewed",
    )
