"""Everything that happened to an issue in one order, page by page, on both databases."""

from typing import Any

import pytest
import sqlalchemy as sa

from rookery.core.actor import Actor
from rookery.core.errors import InvalidParams, NotFound, PermissionDenied
from rookery.domains.tracker.issue_timeline import KINDS, LONGEST, read_timeline, read_timeline_record
from rookery.domains.tracker.tables import comments
from rookery.lifecycle.run_store import NewRun, Runs
from tests.domains.tracker.desk import Desk


async def page(desk: Desk, issue: Any, actor: Actor | None = None, **given: Any) -> Any:
    arguments = {"issue_id": issue.identifier, **given}
    return (await desk.fleet.platform.calls.run(actor or desk.owner, read_timeline, arguments)).value


async def record(desk: Desk, issue: Any, kind: str, key: str) -> dict[str, Any]:
    asked = {"issue_id": issue.identifier, "kind": kind, "key": key}
    return (await desk.fleet.platform.calls.run(desk.owner, read_timeline_record, asked)).value.entry


async def lived(desk: Desk) -> Any:
    """An issue to which one thing of each usual kind has happened."""
    issue = await desk.issue()
    worker = desk.actor("worker", issue)
    await desk.call(worker, "add_finding", category="bug", summary="it is slow")
    await desk.call(worker, "add_comment", content="I look into it")
    runs = NewRun(project_id=issue.project_id, issue_id=issue.id, profile="worker", phase="ready")
    desk.fleet.platform.database.direct(lambda tx: Runs(tx, "default").start(runs), write=True)
    return issue


async def test_agents_other_tenants_and_strange_cursors_are_refused(desk: Desk) -> None:
    issue = await lived(desk)
    with pytest.raises(PermissionDenied):
        await page(desk, issue, desk.actor("worker", issue))
    with pytest.raises(NotFound):
        await page(desk, issue, desk.stranger)
    for cursor in ("x", "MSAy", "OTk5OTk5OTk5OTk5OTk5OTk5OTkgMCAx"):
        with pytest.raises(InvalidParams):
            await page(desk, issue, cursor=cursor)
    with pytest.raises(NotFound):
        await record(desk, issue, "comment", "999999")
    with pytest.raises(InvalidParams):
        await record(desk, issue, "comment", "x")


async def test_all_kinds_stand_in_one_order_and_can_be_chosen(desk: Desk) -> None:
    issue = await lived(desk)
    found = await page(desk, issue)
    times = [entry["at_ms"] for entry in found.entries]
    assert times == sorted(times, reverse=True)
    assert {entry["kind"] for entry in found.entries} == {"finding", "comment", "run", "change"}
    assert found.totals == {"finding": 1, "verdict": 0, "comment": 1, "line": 0, "run": 1, "change": 1}
    said = next(entry for entry in found.entries if entry["kind"] == "comment")
    assert (said["author"], said["content"], said["cut"]) == ("worker", "I look into it", False)
    only = await page(desk, issue, kinds=["run"])
    assert [(entry["phase"], entry["status"]) for entry in only.entries] == [("ready", "running")]


async def test_pages_leave_nothing_out_and_repeat_nothing_even_within_one_moment(desk: Desk) -> None:
    issue = await lived(desk)
    row = {"tenant": "default", "issue_id": issue.id, "author": "a", "subject": "a", "created_ms": issue.created_ms}
    texts = [{**row, "id": f"cmt_{number}", "content": f"number {number}"} for number in range(300)]
    desk.fleet.platform.database.direct(lambda tx: tx.run(sa.insert(comments), texts), write=True)
    seen: list[tuple[str, str]] = []
    cursor = None
    while True:
        found = await page(desk, issue, limit=70, cursor=cursor)
        seen += [(entry["kind"], entry["key"]) for entry in found.entries]
        cursor = found.next_cursor
        if cursor is None:
            break
    assert len(seen) == len(set(seen)) == sum(found.totals.values()) == 304
    assert set(KINDS) > {kind for kind, _ in seen}


async def test_people_are_told_by_name_and_long_texts_are_whole_by_themselves(desk: Desk) -> None:
    issue = await desk.issue()
    bound = desk.fleet.actor(as_owner=True, issue=issue.id)
    await desk.call(bound, "add_comment", content="long " * 2000)
    (entry,) = (await page(desk, issue, kinds=["comment"])).entries
    assert (entry["cut"], len(entry["content"])) == (True, LONGEST)
    whole = await record(desk, issue, "comment", entry["key"])
    assert len(whole["content"]) == 10_000
    assert entry["author"] == "owner"
