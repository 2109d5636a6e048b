from dataclasses import replace
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy import exc

from rookery.core.actor import Actor
from rookery.core.errors import Conflict, InvalidParams, NotFound, PermissionDenied, RookeryError, ValidationFailed
from rookery.domains.tracker.tables import findings
from tests.domains.tracker.desk import Desk

BUG: dict[str, Any] = {"category": "bug", "summary": "Race condition in worktree cleanup"}


async def refused(desk: Desk, error: type[RookeryError], actor: Actor, **changes: Any) -> RookeryError:
    """What the caller is told; nothing is written."""
    with pytest.raises(error) as caught:
        await desk.call(actor, "add_finding", **BUG | changes)
    assert caught.value.hint
    assert desk.count(findings) == 0
    return caught.value


async def test_intake_agents_without_a_profile_and_sessions_without_an_issue_have_no_findings(desk: Desk) -> None:
    issue = await desk.issue()
    for actor in (desk.actor("intake", issue), desk.fleet.actor(issue=issue.id), desk.actor("worker")):
        await refused(desk, PermissionDenied, actor)


async def test_an_issue_that_went_to_another_project_gets_no_findings_from_this_one(desk: Desk) -> None:
    issue, other = await desk.issue(), await desk.project("other")
    worker = desk.actor("worker", issue)
    desk.change(sa.text("UPDATE issues SET project_id = :id").bindparams(id=other.id))
    await refused(desk, NotFound, worker)


async def test_an_issue_in_a_project_without_a_role_is_not_there(desk: Desk) -> None:
    issue = await desk.issue()
    await refused(desk, NotFound, replace(desk.actor("worker", issue), closed=frozenset({issue.project_id})))


async def test_an_issue_of_another_tenant_is_not_there(desk: Desk) -> None:
    issue, stranger = await desk.issue(), desk.stranger
    await refused(desk, NotFound, replace(stranger, issue=issue.id, project=issue.project_id))


async def test_what_has_no_kind_no_summary_or_too_much_of_anything_is_refused(desk: Desk) -> None:
    worker = desk.actor("worker", await desk.issue())
    for changes in (
        {"category": "idea"},
        {"category": "phase_verdict"},
        {"summary": ""},
        {"summary": "  "},
        {"summary": "x" * 501},
        {"details": "x" * 50_001},
        {"files": ["a"] * 51},
        {"files": [""]},
        {"files": "a.py"},
        {"issue_id": "DEF-001"},
        {"summary": "a\x00b"},
    ):
        await refused(desk, InvalidParams, worker, **changes)


async def test_files_outside_the_project_are_refused(desk: Desk) -> None:
    worker = desk.actor("worker", await desk.issue())
    for path in ("/etc/passwd", "../secrets", "src/../../x", "~/x", "C:\\x", ".", "a\nb"):
        error = await refused(desk, ValidationFailed, worker, files=["src/a.py", path])
        assert repr(path) in error.message


async def test_a_worker_whose_claim_is_over_cannot_add_findings(desk: Desk) -> None:
    issue = await desk.issue(status="todo")
    claim = await desk.call(desk.actor("worker", session="one"), "claim_issue", issue_id=issue.identifier)
    await refused(desk, Conflict, desk.actor("worker", issue, session="two"))
    await refused(desk, Conflict, desk.actor("worker", issue, session="one"), fence=claim.fence + 1)


async def test_every_profile_but_intake_records_under_its_own_name(desk: Desk) -> None:
    issue = await desk.issue()
    profiles = ("worker", "researcher", "judge", "scanner", "architect", "planner")
    made = [await desk.call(desk.actor(profile, issue), "add_finding", **BUG) for profile in profiles]
    rows = desk.rows(sa.select(findings).order_by(findings.c.seq))
    assert [(row.id, row.author, row.issue_id) for row in rows] == [
        (each.id, profile, issue.id) for each, profile in zip(made, profiles, strict=True)
    ]
    assert all(row.id.startswith("fnd-") for row in rows)


async def test_what_was_recorded_is_what_the_issue_shows(desk: Desk) -> None:
    issue = await desk.issue()
    files = ["./server//workspace.ts", "server/workspace.ts", "tests/größe.py"]
    details = "When two agents exit at once,\n`rm` fails"
    made = await desk.call(desk.actor("scanner", issue), "add_finding", **BUG, details=details, files=files)
    (shown,) = (await desk.call(desk.owner, "get_issue", issue_id=issue.id)).findings
    created_ms = shown.pop("created_ms")
    assert shown == {
        "id": made.id,
        "category": "bug",
        "author": "scanner",
        "summary": BUG["summary"],
        "details": details,
        "files": ["server/workspace.ts", "tests/größe.py"],
    }
    assert desk.reload(issue).updated_ms >= created_ms >= issue.updated_ms


async def test_the_same_finding_twice_is_two_findings(desk: Desk) -> None:
    worker = desk.actor("worker", await desk.issue())
    one, two = [await desk.call(worker, "add_finding", **BUG) for _ in range(2)]
    assert one.id != two.id
    assert desk.count(findings) == 2


async def test_the_database_itself_refuses_to_change_or_remove_a_finding(desk: Desk) -> None:
    made = await desk.call(desk.actor("worker", await desk.issue()), "add_finding", **BUG)
    for statement in (
        sa.update(findings).values(category="gap"),
        sa.delete(findings),
        sa.update(findings).values(id=findings.c.id),
    ):
        with pytest.raises(exc.DBAPIError, match="append-only"):
            desk.change(statement)
    (row,) = desk.rows(sa.select(findings))
    assert (row.id, row.category) == (made.id, "bug")
