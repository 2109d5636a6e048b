"""The real Claude Code, with a model that follows a script, takes an issue from todo to review."""

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import sqlalchemy as sa

from tests.clients.scripted_model import Say, Use

pytest.importorskip("claude_agent_sdk", reason="the extra is not installed: pip install 'rookery[claude]'")

from rookery.domains.tracker.tables import prs
from rookery.engine.orchestrator import Orchestrator
from rookery.engine.tables import dispatches
from rookery.engine.workspace_names import folder_name
from tests.domains.tracker.desk import git
from tests.engine.crew import Crew
from tests.jobs.working import running_worker
from tests.platform_fixtures import Fleet
from tests.runtimes.claude.conftest import Speaks, speaks, user

__all__ = ["speaks", "user"]
LIMIT_S = 120.0
COMMIT = "git add -A && git -c user.name=Ada -c user.email=ada@example.org commit -q -m 'add the greeting'"


@pytest.mark.anyio
async def test_claude_code_takes_an_issue_from_todo_to_review(
    tmp_path: Path, sqlite_template: Path, make_fleet: Callable[..., Fleet], speaks: Speaks
) -> None:
    # What depends on the database is tested where no program has to start.
    shutil.copyfile(sqlite_template, tmp_path / "rookery.db")
    fleet = make_fleet(f"sqlite:///{tmp_path / 'rookery.db'}", extra={}, runtime="claude")
    crew = Crew(fleet, tmp_path, plays=False)
    await crew.git_project("shop")
    issue = await crew.todo("greet people")
    worktree = tmp_path / ".rookery-worktrees" / "shop" / folder_name(issue.identifier, issue.id)
    claim = {"completed_phase": "ready", "summary": "People are greeted.", "project_path": str(worktree)}
    model = speaks(
        Use("Write", {"file_path": str(crew.repository / "stray.txt"), "content": "out of bounds\n"}),
        Use("Write", {"file_path": str(worktree / "greeting.txt"), "content": "Hello\n"}),
        Use("Bash", {"command": COMMIT, "description": "Commit"}),
        Use("mcp__rookery__complete_phase", claim),
        Say("People are greeted now."),
    )
    # A judge would need another script.
    crew.set(role_caps={"judge": 0}, max_turns=20)
    orchestrator = Orchestrator(fleet.platform)
    try:
        async with running_worker(fleet.platform), asyncio.timeout(LIMIT_S):
            while crew.reload(issue).status != "review" or crew.rows(sa.select(dispatches))[0].state != "ended":
                await asyncio.sleep(0.05)
    finally:
        await orchestrator.stop()
    (row,) = crew.rows(sa.select(dispatches))
    assert (row.outcome, row.error, row.workspace) == ("succeeded", None, str(worktree))
    (run,) = crew.runs()
    assert (run.id, run.status, run.profile, run.phase) == (row.run_id, "succeeded", "worker", "ready")
    assert (run.issue_id, run.input_tokens > 0, run.output_tokens > 0) == (issue.id, True, True)
    (pr,) = crew.rows(sa.select(prs))
    assert (pr.status, pr.revision, pr.issue_id) == ("open", 1, issue.id)
    assert git(worktree, "log", "-1", "--format=%s").strip() == "add the greeting"
    # What it was told came from the orchestrator, and what it tried outside of its worktree was refused by the server.
    said = str(model.requests[-1]["messages"])
    assert f"# {issue.identifier}: work on ready" in said
    assert "is outside of the worktree of this session" in said
    assert not (crew.repository / "stray.txt").exists()
    assert [comment.partition(",")[0] for comment in crew.said(issue)] == [
        "The worker tried to write outside of its worktree"
    ]
    assert ("complete_phase" in row.tools["names"], "approve_pr" in row.tools["names"]) == (True, False)
