"""Scratch proofs."""

import asyncio
import base64
import json
import time
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from rookery.core.errors import Conflict, InvalidParams, NotFound, RookeryError
from rookery.core.events import Event
from rookery.core.pages import encode_cursor
from rookery.domains.tracker.advance import advance
from rookery.domains.tracker.contract import packaged_contract
from rookery.domains.tracker.pipeline import Claim, Verdict, next_step
from rookery.domains.tracker.risk import GateResult
from rookery.domains.tracker.tables import finding_processing, prs
from rookery.identity.resolve import Binding
from rookery.lifecycle.issue_tables import issues
from rookery.server.session import open_session
from tests.domains.tracker.claimant import claimant, good_text, sha256
from tests.domains.tracker.desk import Desk, git
from tests.domains.tracker.test_advance import committed, decide, tick, waiting
from tests.domains.tracker.moving import WHY

STRICT = (
    "---\nphase: research\nversion: 1\nprofiles: [researcher]\nartifact: research.md\nmin_chars: 100\n"
    "required_sections: [Problem, Cost]\nrequires_judge: true\nnext: architecture\nallowed_writes: []\n"
    "forbidden_writes: []\n---\nBody\n"
)


async def test_p1_reclaim_skips_validation(desk: Desk) -> None:
    at = await claimant(desk)
    strict = at.repository / "prompts" / "phases" / "research.md"
    strict.parent.mkdir(parents=True)
    strict.write_text(STRICT, encoding="utf-8")
    git(at.repository, "add", "-A")
    git(at.repository, "commit", "-q", "-m", "our own contract")
    await at.claim()
    await decide(at, "approve_phase")
    await at.claim()
    done = await tick(desk)
    assert "approved" not in [each.outcome for each in done], done


async def test_p2_move_leaves_session_bound(desk: Desk) -> None:
    await desk.project("api")
    await desk.issue("first", status="todo", phase="grooming")
    second = await desk.issue("second", status="todo", phase="grooming")
    session = await open_session(desk.fleet.platform, Binding(profile="planner"))
    await desk.call(await session.actor(), "claim_issue")
    await desk.call(await session.actor(), "move_issue", target_project_id="api", reason=WHY)
    assert (await desk.call(await session.actor(), "claim_issue")).identifier == second.identifier


@pytest.mark.parametrize("key", ["1 1 \0", "1 1 \ud800", "² 1 x", "1 ² x"])
async def test_p3_cursor(desk: Desk, key: str) -> None:
    await desk.issue()
    with pytest.raises(InvalidParams):
        await desk.call(desk.person(), "list_issues", cursor=encode_cursor(key))


@pytest.mark.parametrize("key", ["a\0\nb", "\ud800\nb"])
async def test_p3_coverage_cursor(desk: Desk, key: str) -> None:
    with pytest.raises(InvalidParams):
        await desk.call(desk.person(), "list_coverage", cursor=encode_cursor(key))


async def test_p4_gate_output_nul(desk: Desk) -> None:
    async def run_gates(settings: Any, work: Any) -> list[GateResult]:
        return [GateResult(command="make test", label="Tests", exit_code=0, output="a\0b\ud800", required=True)]

    at = await committed(desk)
    await at.claim()
    done = await tick(desk, run_gates=run_gates)
    assert [each.outcome for each in done] == ["pr_opened"]


async def test_p4b_gates_that_cannot_run(desk: Desk) -> None:
    async def run_gates(settings: Any, work: Any) -> list[GateResult]:
        raise OSError(28, "No space left on device")

    at = await committed(desk)
    await at.claim()
    other = await claimant(desk)
    await other.claim()
    done = await tick(desk, run_gates=run_gates)
    assert sorted(each.outcome for each in done) == ["awaiting_verdict", "failed"]


async def test_p7_required_gates_not_run(desk: Desk) -> None:
    at = await committed(desk)
    gates = [{"command": "make test", "label": "Tests", "required": True}]
    await desk.call(desk.person("repo"), "configure_project", gates=gates)
    await at.claim()
    await tick(desk)
    pr = (await desk.call(desk.owner, "get_issue", issue_id=at.issue.id)).pr
    assert pr is None or pr["risk_level"] == "high", pr


async def test_p8_parent_followers(desk: Desk) -> None:
    heard: list[str] = []
    events = desk.fleet.platform.calls.events
    parent = await desk.issue()
    child = await desk.call(desk.actor("worker", parent), "create_subtask", title="part")
    events.subscribe("ResourceUpdated", lambda event: heard.append(event.subject or ""))
    await desk.call(desk.person(), "set_issue_status", issue_id=child.id, status="cancelled")
    assert desk.reload(parent).status == "todo"
    assert f"issue://{parent.identifier}" in heard


async def test_p11_marker_surrogate(desk: Desk) -> None:
    at = await claimant(desk)
    (at.folder / ".symphony-worktree").write_text(
        json.dumps({"issue": at.issue.identifier, "issue_id": at.issue.id, "branch": "\ud800"})
    )
    try:
        await desk.call(at.actor, "verify_workspace")
    except RookeryError as error:
        assert error.code != "INTERNAL_ERROR", error


async def test_p11b_marker_surrogate_issue(desk: Desk) -> None:
    at = await claimant(desk)
    (at.folder / ".symphony-worktree").write_text(json.dumps({"issue": "\ud800", "issue_id": "", "branch": ""}))
    try:
        await desk.call(at.actor, "verify_workspace")
    except RookeryError as error:
        assert error.code != "INTERNAL_ERROR", error
        json.dumps(error.as_dict(), ensure_ascii=False).encode()


async def test_p6_cancelled_move(desk: Desk) -> None:
    target = await desk.git_project("api")
    source = await desk.git_project("src")
    issue = await desk.issue(project="src", phase="grooming")
    folder = source / "docs" / "tickets" / issue.identifier
    folder.mkdir(parents=True)
    for number in range(200):
        (folder / f"{number}.md").write_bytes(b"x" * 90_000)
    planner = desk.actor("planner", issue, project="src")
    call = asyncio.create_task(desk.call(planner, "move_issue", target_project_id="api", reason=WHY))
    limit = time.monotonic() + 10
    tickets = target / "docs" / "tickets"
    while not list(tickets.glob(".moving-*")):
        assert time.monotonic() < limit
        await asyncio.sleep(0)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    limit = time.monotonic() + 3
    while list(tickets.glob(".moving-*")):
        if time.monotonic() > limit:
            raise AssertionError(list(tickets.glob(".moving-*")))
        await asyncio.sleep(0.01)


async def test_p10_leave_behind_index(desk: Desk) -> None:
    if desk.fleet.platform.database.url.startswith("postgres"):
        pytest.skip("plan")
    q = "EXPLAIN QUERY PLAN UPDATE finding_processing SET outcome='moved' WHERE issue_id='x' AND processed_ms IS NULL"
    rows = desk.rows(sa.text(q))
    assert all("SCAN" not in row[3] for row in rows), rows
