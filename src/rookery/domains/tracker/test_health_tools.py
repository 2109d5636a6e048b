"""The tool with which workers report test runs, and the trend that it keeps."""

import asyncio
from dataclasses import asdict
from typing import Annotated, Any

import sqlalchemy as sa
from pydantic import Field

from rookery.core.actor import Actor
from rookery.core.context import Context
from rookery.core.errors import ValidationFailed
from rookery.core.tool import ToolOutput, tool
from rookery.db.tx import Tx
from rookery.domains.tracker.inputs import OnIssue
from rookery.domains.tracker.notices import issue_changed
from rookery.domains.tracker.project_store import Projects
from rookery.domains.tracker.store import Issues, author, now_ms
from rookery.domains.tracker.tables import prs
from rookery.domains.tracker.test_health import RUNS, TestRun, TestTrend, trend
from rookery.domains.tracker.worktree import changed_source_lines, verify_worktree
from rookery.lifecycle.suite_tables import test_health

Count = Annotated[int, Field(ge=0, le=10_000_000)]


class RecordTestHealth(OnIssue):
    test_count: Count = Field(description="Test cases now.")
    test_files_changed: Count | None = Field(None, description="Test files changed.")
    tests_added: Count | None = Field(None, description="New test cases.")
    tests_removed: Count | None = Field(None, description="Removed or merged ones.")
    execution_time_ms: int | None = Field(None, ge=0, le=10**12, description="Of the suite.")


class TestHealth(ToolOutput):
    trend: dict[str, Any]
    bloat: bool
    reasons: list[str]


@tool(
    title="Record test health", effect="external", action="tracker:write", tier="act", group="Write", profiles="W",
    default=False, binds="issue", open_world=False, outline=False,
)  # fmt: skip
async def record_test_health(ctx: Context, args: RecordTestHealth) -> TestHealth:
    """Record a run of the whole test suite. Use it after each. Returns the trend of the last 10 runs, and whether
    tests outgrow the code. Not for partial runs."""
    actor = ctx.actor
    issue, base = await ctx.read(lambda tx: (Issues(tx, actor).bound(), Projects(tx, actor).settings().base_branch))
    own_lines = await asyncio.to_thread(_lines_in_worktree, actor, issue, base)
    issue, found = await ctx.write(lambda tx: _record(tx, actor, args, own_lines))
    issue_changed(ctx, issue)
    return TestHealth(trend=_shown(found), bloat=found.bloat, reasons=list(found.reasons))


def _shown(found: TestTrend) -> dict[str, Any]:
    return {name: value for name, value in asdict(found).items() if name != "reasons"}


def project_health(tx: Tx, project_id: str) -> TestTrend | None:
    """The trend of the project's last runs, or None if none was recorded."""
    newest = sa.select(test_health).where(test_health.c.project_id == project_id).order_by(test_health.c.seq.desc())
    rows = tx.all(newest.limit(RUNS))
    return trend([TestRun(row.test_count, row.execution_time_ms, row.source_lines) for row in reversed(rows)])


def _lines_in_worktree(actor: Actor, issue: sa.Row[Any], base: str) -> int | None:
    """The issue's changed source lines so far, if a worktree is bound and git can compare it with the base branch."""
    if actor.worktree is None:
        return None
    workspace = verify_worktree(actor.worktree, actor.cwd, issue.identifier, issue.id)
    try:
        return changed_source_lines(workspace.path, base)
    except ValidationFailed:
        return None


def _record(tx: Tx, actor: Actor, args: RecordTestHealth, own_lines: int | None) -> tuple[sa.Row[Any], TestTrend]:
    issue = Issues(tx, actor).held(args.fence)
    tx.run(
        sa.insert(test_health).values(
            **args.model_dump(exclude={"fence"}),
            tenant=issue.tenant,
            project_id=issue.project_id,
            issue_id=issue.id,
            run_id=actor.run,
            source_lines=_project_lines(tx, issue, own_lines),
            author=author(actor),
            at_ms=now_ms(),
        )
    )
    found = project_health(tx, issue.project_id)
    assert found is not None
    return issue, found


def _project_lines(tx: Tx, issue: sa.Row[Any], own_lines: int | None) -> int:
    """Changed source lines of the whole project so far: those of each issue's latest pull request, but for the bound
    issue those in its worktree. The sum goes on from issue to issue, so that runs of different issues compare.
    Where nothing is known to have changed, it is 0: tests that grow all the same are what bloat looks like.
    """
    later = prs.alias()
    newest = ~sa.exists().where(later.c.issue_id == prs.c.issue_id, later.c.revision > prs.c.revision)
    counted = sa.select(sa.func.sum(prs.c.source_lines)).where(prs.c.project_id == issue.project_id, newest)
    if own_lines is not None:
        counted = counted.where(prs.c.issue_id != issue.id)
    return int(tx.scalar(counted) or 0) + (own_lines or 0)
