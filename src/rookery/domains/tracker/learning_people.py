"""What people see of learnings, and how they say which of them hold.

Not in a module where tools are looked for: no agent has them, and no session pays for their listing. They are called,
decided and recorded like any other.
"""

from typing import Any

import sqlalchemy as sa
from pydantic import Field

from rookery.core.context import Context
from rookery.core.errors import InvalidParams, NotFound
from rookery.core.tool import ToolInput, ToolOutput, tool
from rookery.domains.tracker.learning_tables import learnings
from rookery.lifecycle.issue_tables import issues

SHOWN = (
    "id", "pattern", "context", "applies_to", "learning_type", "quality_score", "verified", "author", "created_ms",
)  # fmt: skip


class ListLearnings(ToolInput):
    learning_id: str | None = Field(None, max_length=100, description="Only this one.")
    limit: int = Field(50, ge=1, le=200, description="At most.")


class RateLearning(ToolInput):
    learning_id: str = Field(max_length=100, description="Its id.")
    verified: bool | None = Field(None, description="Whether somebody has seen that it holds.")
    quality_score: int | None = Field(None, ge=0, le=100, description="How useful it is.")


class ListedLearnings(ToolOutput):
    learnings: list[dict[str, Any]]
    total: int


class RatedLearning(ToolOutput):
    id: str
    verified: bool
    quality_score: int


@tool(
    title="List learnings", effect="read", action="tracker:read", tier="observe", group="System", profiles="",
    default=False, principals="people", binds="project",
)  # fmt: skip
def list_learnings(ctx: Context, args: ListLearnings) -> ListedLearnings:
    """List what was learnt in the bound project, newest first."""
    mine = _mine(ctx)
    visible = sa.and_(issues.c.id == learnings.c.issue_id, issues.c.project_id.not_in(ctx.actor.closed))
    wanted = sa.select(*(learnings.c[name] for name in SHOWN), issues.c.identifier).outerjoin(issues, visible)
    wanted = wanted.where(*mine).order_by(learnings.c.seq.desc()).limit(args.limit)
    if args.learning_id is not None:
        wanted = wanted.where(learnings.c.id == args.learning_id)
    total = ctx.tx.scalar(sa.select(sa.func.count()).select_from(learnings).where(*mine))
    rows = ctx.tx.all(wanted)
    return ListedLearnings(learnings=[dict(zip((*SHOWN, "identifier"), row, strict=True)) for row in rows], total=total)


@tool(
    title="Rate learning", effect="write", action="tracker:write", tier="act", group="System", profiles="",
    default=False, principals="operators", binds="project", idempotent=True,
)  # fmt: skip
def rate_learning(ctx: Context, args: RateLearning) -> RatedLearning:
    """Say whether a learning of the bound project holds, and how useful it is. Agents are shown the best first."""
    values = args.model_dump(include={"verified", "quality_score"}, exclude_none=True)
    if not values:
        raise InvalidParams("verified: there is nothing to change", hint="give verified or quality_score")
    row = ctx.tx.one(
        sa.update(learnings)
        .where(*_mine(ctx), learnings.c.id == args.learning_id)
        .values(**values)
        .returning(learnings.c.id, learnings.c.verified, learnings.c.quality_score)
    )
    if row is None:
        raise NotFound(f"there is no learning {args.learning_id}", hint="search_learnings shows them")
    return RatedLearning(id=row.id, verified=bool(row.verified), quality_score=row.quality_score)


def _mine(ctx: Context) -> list[sa.ColumnElement[bool]]:
    return [learnings.c.tenant == ctx.actor.tenant, learnings.c.project_id == (ctx.actor.project or "")]
