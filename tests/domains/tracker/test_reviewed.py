"""Moments that are easily overlooked: what comes between two steps, is claimed twice, or is given up half-way."""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from rookery.core.errors import Conflict, InvalidParams, NotFound, ValidationFailed
from rookery.core.pages import encode_cursor
from rookery.db.postgres import PostgresDatabase
from rookery.domains.tracker.pipeline import Claim, Step, Verdict, next_step
from rookery.domains.tracker.risk import GateResult
from rookery.identity.resolve import Binding
from rookery.lifecycle.issue_tables import issues
from rookery.server.auth import Credential
from rookery.server.hub import Hub
from rookery.server.session import open_session
from rookery.server.streamable.identities import Identities
from tests.domains.tracker.claimant import claimant, sha256
from tests.domains.tracker.desk import Desk, git
from tests.domains.tracker.moving import WHY, tree_of
from tests.domains.tracker.test_advance import committed, decide, tick, waiting
from tests.platform_fixtures import Fleet

LIMIT_S = 10
WAITING = sa.text("SELECT count(*) FROM pg_locks WHERE NOT granted")
STRICT = (
    "---\nphase: research\nversion: 1\nprofiles: [researcher]\nartifact: research.md\nmin_chars: 100\n"
    "required_sections: [Problem, Cost]\nrequires_judge: true\nnext: architecture\nallowed_writes: []\n"
    "forbidden_writes: []\n---\nSay what it costs.\n"
)


@pytest.fixture
def shared(postgres_url: str, make_fleet: Callable[..., Fleet], tmp_path: Path) -> Desk:
    """A desk on PostgreSQL, where one can act while another has not ended yet."""
    return Desk(make_fleet(postgres_url, extra={}), tmp_path)


async def until(holds: Callable[[], bool]) -> None:
    limit = time.monotonic() + LIMIT_S
    while not holds():
        assert time.monotonic() < limit
        await asyncio.sleep(0.005)


@contextmanager
def locked(desk: Desk, issue: Any) -> Generator[None]:
    """Nobody can change the issue meanwhile; those who want to get their turns in the order in which they came."""
    database = desk.fleet.platform.database
    assert isinstance(database, PostgresDatabase)
    with database.engine.connect() as connection:
        connection.execute(sa.select(issues.c.id).where(issues.c.id == issue.id).with_for_update())
        yield
        connection.rollback()


async def one_after_the_other(desk: Desk, issue: Any, *calls: Awaitable[Any]) -> list[Any]:
    """What comes of calls that have all begun before the first of them changes the issue."""
    with locked(desk, issue):
        tasks: list[asyncio.Future[Any]] = []
        for number, call in enumerate(calls, 1):
            tasks.append(asyncio.ensure_future(call))
            await until(lambda number=number: desk.rows(WAITING)[0][0] >= number)
    return await asyncio.gather(*tasks, return_exceptions=True)


def moving_away(desk: Desk, issue: Any, **binding: Any) -> Awaitable[Any]:
    planner = desk.actor("planner", issue, **binding)
    return desk.call(planner, "move_issue", target_project_id="api", reason=WHY)


async def test_an_artifact_that_is_claimed_again_after_its_verdict_is_validated_all_the_same(desk: Desk) -> None:
    at = await claimant(desk)
    strict = at.repository / "prompts" / "phases" / "research.md"
    strict.parent.mkdir(parents=True)
    strict.write_text(STRICT, encoding="utf-8")
    git(at.repository, "add", "-A")
    git(at.repository, "commit", "-q", "-m", "our own contract")
    await at.claim()
    await decide(at, "approve_phase")
    await at.claim()
    assert [each.outcome for each in await tick(desk)] == ["superseded", "invalid", "stale"]
    row = desk.reload(at.issue)
    assert (row.status, row.phase, waiting(desk)) == ("todo", "research", 0)


def test_a_verdict_counts_for_its_phase_and_for_what_was_validated() -> None:
    claim = Claim(id="pc-2", seq=3, phase="grooming", hash="h", payload={}, outcome=None, waiting=True)
    verdict = Verdict(id="pv-1", seq=2, phase="grooming", hash="h", approved=True, reason="")
    assert next_step("review", "grooming", claim, [claim], [verdict]) == Step("validate", claim=claim)
    earlier = Verdict(id="pv-1", seq=2, phase="research", hash="h", approved=True, reason="")
    step = next_step("review", "grooming", claim, [claim], [earlier])
    assert step is not None
    assert (step.kind, step.outcome, step.verdict) == ("drop", "stale", earlier)


async def test_a_session_that_moved_its_issue_away_can_claim_the_next(desk: Desk) -> None:
    await desk.project("api")
    await desk.issue("first", status="todo", phase="grooming")
    second = await desk.issue("second", status="todo", phase="grooming")
    session = await open_session(desk.fleet.platform, Binding(profile="planner"))
    await desk.call(await session.actor(), "claim_issue")
    await desk.call(await session.actor(), "move_issue", target_project_id="api", reason=WHY)
    assert (await session.actor()).issue is None
    assert (await desk.call(await session.actor(), "claim_issue")).identifier == second.identifier


@pytest.mark.parametrize("text", ["1 1 \0", "1 1 \ud800"])
async def test_a_cursor_that_no_database_can_look_for_is_refused(desk: Desk, text: str) -> None:
    for tool in ("list_issues", "list_coverage"):
        with pytest.raises(InvalidParams, match="not one of ours"):
            await desk.call(desk.owner, tool, cursor=encode_cursor(text))


async def test_what_a_gate_prints_need_not_be_text(desk: Desk) -> None:
    async def run_gates(settings: Any, work: Any, claim: Any) -> list[GateResult]:
        return [GateResult(command="make test", label="Tests", exit_code=0, output="a\0b\ud800", required=True)]

    at = await committed(desk)
    await at.claim()
    assert [each.outcome for each in await tick(desk, run_gates=run_gates)] == ["pr_opened"]


async def test_gates_that_cannot_be_run_hold_up_their_issue_and_no_other(desk: Desk) -> None:
    async def run_gates(settings: Any, work: Any, claim: Any) -> list[GateResult]:
        raise OSError(28, "No space left on device")

    at = await committed(desk)
    await at.claim()
    other = await claimant(desk)
    await other.claim()
    done = await tick(desk, run_gates=run_gates)
    assert [each.outcome for each in done] == ["failed", "awaiting_verdict"]
    assert "No space left" in done[0].detail
    assert desk.reload(at.issue).status == "in_progress"


async def test_required_gates_that_nobody_ran_make_the_risk_high(desk: Desk) -> None:
    at = await committed(desk)
    gates = [{"command": f"make {name}", "label": name, "required": name == "test"} for name in ("test", "docs")]
    await desk.call(desk.person("repo"), "configure_project", gates=gates)
    await at.claim()
    await tick(desk)
    pr = (await desk.call(desk.owner, "get_issue", issue_id=at.issue.id)).pr
    assert (pr["risk_score"], pr["risk_level"]) == (100, "high")
    assert pr["risk_reasons"][0] == "required gates failed: test (100)"


async def test_whoever_follows_a_parent_hears_that_it_is_unblocked(desk: Desk) -> None:
    parent = await desk.issue()
    child = await desk.call(desk.actor("worker", parent), "create_subtask", title="part")
    heard: list[str | None] = []
    desk.fleet.platform.calls.events.subscribe(lambda event: heard.append(event.subject))
    await desk.call(desk.person(), "set_issue_status", issue_id=child.id, status="cancelled")
    assert desk.reload(parent).status == "todo"
    assert set(heard) >= {f"issue://{child.identifier}", f"issue://{parent.identifier}", "project://default/board"}


async def test_a_marker_with_half_a_character_names_no_issue(desk: Desk) -> None:
    at = await claimant(desk)
    marker = {"issue": at.issue.identifier, "issue_id": at.issue.id, "branch": "\ud800"}
    (at.folder / ".symphony-worktree").write_text(json.dumps(marker), encoding="ascii")
    with pytest.raises(Conflict, match="names no issue"):
        await desk.call(at.actor, "verify_workspace")


async def test_a_move_that_is_given_up_half_way_leaves_no_files(desk: Desk) -> None:
    source, target = await desk.git_project("shop"), await desk.git_project("api")
    before = [path for path in tree_of(target) if not path.startswith(".git")]
    issue = await desk.issue(project="shop", phase="grooming")
    folder = source / "docs" / "tickets" / issue.identifier
    folder.mkdir(parents=True)
    for number in range(200):
        (folder / f"{number}.md").write_bytes(b"x" * 90_000)
    call = asyncio.ensure_future(moving_away(desk, issue, project="shop"))
    await until(lambda: any((target / "docs" / "tickets").glob(".moving-*")))
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await until(lambda: [path for path in tree_of(target) if not path.startswith(".git")] == before)
    assert desk.reload(issue).identifier == issue.identifier


async def test_an_issue_whose_identifier_begins_as_ids_do_is_found_in_lower_case(desk: Desk) -> None:
    await desk.project("issues")
    issue = await desk.issue(project="issues")
    assert issue.identifier == "ISS-001"
    for name in ("iss-1", "ISS-001", issue.id):
        assert (await desk.call(desk.owner, "get_issue_status", issue_id=name)).id == issue.id


async def test_no_verdict_is_left_behind_by_an_issue_that_moves_away(shared: Desk) -> None:
    await shared.project("api")
    at = await claimant(shared)
    await at.claim()
    given = {"phase": "research", "artifact_hash": sha256(at.file)}
    judging = shared.call(at.bound("judge"), "approve_phase", **given)
    moved, judged = await one_after_the_other(shared, at.issue, moving_away(shared, at.issue, project="repo"), judging)
    assert moved.project == "api"
    assert isinstance(judged, NotFound)
    assert waiting(shared) == 0


async def test_a_person_changes_no_issue_that_has_just_left_the_project(shared: Desk) -> None:
    await shared.project("api")
    issue = await shared.issue(status="todo")
    given = {"issue_id": issue.id, "status": "cancelled"}
    cancelling = shared.call(shared.person(), "set_issue_status", **given)
    _, refused = await one_after_the_other(shared, issue, moving_away(shared, issue), cancelling)
    assert isinstance(refused, NotFound)
    assert shared.reload(issue).status == "todo"


async def test_a_person_edits_no_issue_that_has_just_been_finished(shared: Desk) -> None:
    issue = await shared.issue(status="todo")
    finishing = shared.call(shared.person(), "set_issue_status", issue_id=issue.id, status="cancelled")
    editing = shared.call(shared.person(), "edit_issue", issue_id=issue.id, title="another")
    _, refused = await one_after_the_other(shared, issue, finishing, editing)
    assert isinstance(refused, Conflict)
    assert shared.reload(issue).title == issue.title


async def test_two_clients_without_a_session_never_hold_one_issue_together(desk: Desk) -> None:
    await desk.issue(status="todo")
    known = Identities(desk.fleet.platform, Hub(desk.fleet.platform))
    credential = Credential(Binding(profile="worker"), "t", None)
    one, two = await known.session(credential), await known.session(credential)
    await desk.call(await one.actor(), "claim_issue")
    with pytest.raises((Conflict, NotFound)):
        await desk.call(await two.actor(), "claim_issue")


async def test_an_answer_about_an_issue_has_a_limit(desk: Desk) -> None:
    issue = await desk.issue()
    worker = desk.actor("worker", issue)
    for _ in range(50):
        await desk.call(worker, "add_finding", category="bug", summary="s", details="x" * 50_000)
        await desk.call(worker, "add_comment", content="y" * 20_000)
    told = await desk.call(worker, "get_issue")
    assert len(told.model_dump_json()) < 1_000_000


async def test_two_who_set_different_thresholds_at_once_both_succeed(shared: Desk) -> None:
    desk = shared
    await desk.issue()
    database = desk.fleet.platform.database
    assert isinstance(database, PostgresDatabase)
    with database.engine.connect() as connection:
        connection.execute(sa.text("SELECT * FROM tracker_projects FOR UPDATE"))
        one = asyncio.create_task(desk.call(desk.person(), "configure_project", risk_thresholds={"lowLines": 10}))
        await until(lambda: desk.rows(WAITING)[0][0] >= 1)
        two = asyncio.create_task(desk.call(desk.person(), "configure_project", risk_thresholds={"highLines": 1000}))
        await until(lambda: desk.rows(WAITING)[0][0] >= 2)
        connection.rollback()
    await asyncio.gather(one, two)
    now = (await desk.call(desk.person(), "configure_project")).settings["risk_thresholds"]
    assert (now["lowLines"], now["highLines"]) == (10, 1000)


async def test_an_issue_whose_claim_waits_is_not_ready(desk: Desk) -> None:
    at = await claimant(desk)
    await at.claim()
    await desk.call(desk.person("repo"), "set_issue_status", issue_id=at.issue.id, status="todo")
    assert (await desk.call(desk.actor("researcher", project="repo"), "list_ready_issues")).issues == []


async def test_ready_is_not_complete_while_nothing_is_committed(desk: Desk) -> None:
    at = await claimant(desk, "ready")
    (at.folder / "new.py").write_text("x = 1\n")
    with pytest.raises(ValidationFailed, match="nothing is committed"):
        await at.claim()


async def test_a_subtask_cannot_wait_for_its_own_parent(desk: Desk) -> None:
    parent = await desk.issue()
    child = await desk.call(desk.actor("worker", parent), "create_subtask", title="part")
    with pytest.raises(Conflict):
        await desk.call(desk.person(), "edit_issue", issue_id=child.id, depends_on=[parent.id])


async def test_a_session_stays_in_its_project_when_its_issue_moves(desk: Desk) -> None:
    await desk.project("api")
    issue = await desk.issue()
    session = await open_session(desk.fleet.platform, Binding(profile="worker", issue=issue.identifier))
    await desk.call(desk.actor("planner", issue), "move_issue", target_project_id="api", reason=WHY)
    with pytest.raises(NotFound):
        await desk.call(await session.actor(), "add_comment", content="before the epoch")
    await desk.call(desk.owner, "create_agent", name="anybody")
    with pytest.raises(NotFound):
        await session.actor()


async def test_followers_of_an_issue_by_its_id_hear_of_changes(desk: Desk) -> None:
    issue = await desk.issue()
    heard: list[Any] = []
    desk.fleet.platform.calls.events.subscribe(lambda event: heard.append(event.subject))
    await desk.call(desk.actor("worker", issue), "add_comment", content="x")
    assert f"issue://{issue.id}" in heard
