from typing import Any

import pytest

from rookery.core.actor import Actor
from rookery.core.errors import InvalidParams, PermissionDenied
from tests.domains.tracker.desk import Desk


async def examined(desk: Desk, *paths: str, actor: Actor | None = None, **changes: Any) -> None:
    for path in paths:
        arguments = {"file_path": path, "concept": "error_handling", "status": "covered", **changes}
        await desk.call(actor or desk.actor("scanner"), "record_coverage", **arguments)


async def listed(desk: Desk, actor: Actor | None = None, **arguments: Any) -> list[str]:
    found = await desk.call(actor or desk.actor("scanner"), "list_coverage", **arguments)
    return [record["file_path"] for record in found.records]


async def test_agents_without_the_scanners_work_do_not_get_it(desk: Desk) -> None:
    for profile in ("worker", "researcher", "judge", "architect", "planner", "intake"):
        with pytest.raises(PermissionDenied):
            await desk.call(desk.actor(profile), "list_coverage")


async def test_wrong_values_are_refused(desk: Desk) -> None:
    wrong: list[dict[str, Any]] = [
        {"limit": 0},
        {"limit": 501},
        {"status": "reviewed"},
        {"concept": ""},
        {"cursor": "!"},
        {"cursor": "eyJhZnRlciI6IDV9"},
        {"path_prefix": "x" * 1001},
        {"project": "other"},
    ]
    for arguments in wrong:
        with pytest.raises(InvalidParams):
            await desk.call(desk.actor("scanner"), "list_coverage", **arguments)


async def test_an_empty_project_has_no_records(desk: Desk) -> None:
    found = await desk.call(desk.actor("scanner"), "list_coverage")
    assert (found.records, found.next_cursor) == ([], None)


async def test_a_record_says_who_saw_what_and_which_ticket_came_of_it(desk: Desk) -> None:
    ticket = await desk.issue()
    await examined(desk, "a.py", status="has_issues", ticket_id=ticket.identifier, notes="no timeout")
    for reader in (desk.actor("scanner"), desk.person()):
        (record,) = (await desk.call(reader, "list_coverage")).records
        assert record.pop("updated_ms") > 0
        assert record == {
            "file_path": "a.py",
            "concept": "error_handling",
            "status": "has_issues",
            "ticket_id": ticket.identifier,
            "notes": "no timeout",
            "author": "scanner",
        }


async def test_only_the_bound_projects_records_are_listed(desk: Desk) -> None:
    await desk.project("other")
    await examined(desk, "ours.py")
    await examined(desk, "theirs.py", actor=desk.actor("scanner", project="other"))
    await examined(desk, "foreign.py", actor=desk.stranger)
    assert await listed(desk) == ["ours.py"]
    assert await listed(desk, desk.actor("scanner", project="other")) == ["theirs.py"]
    assert await listed(desk, desk.stranger) == ["foreign.py"]


async def test_filters_narrow_the_list_and_take_every_character_as_it_is(desk: Desk) -> None:
    ticket = await desk.issue()
    await examined(desk, "src/a.py", "src_b.py", "src/%x.py", "Src/c.py", "ünder/d.py")
    await examined(desk, "src/a.py", concept="type_safety")
    await examined(desk, "src/bad.py", status="has_issues", ticket_id=ticket.id)
    assert sorted(await listed(desk, path_prefix="src/")) == ["src/%x.py", "src/a.py", "src/a.py", "src/bad.py"]
    assert await listed(desk, path_prefix="src/%") == ["src/%x.py"]
    assert await listed(desk, path_prefix="ü") == ["ünder/d.py"]
    assert await listed(desk, path_prefix="src_") == ["src_b.py"]
    assert await listed(desk, concept="type_safety") == ["src/a.py"]
    assert await listed(desk, status="has_issues") == ["src/bad.py"]
    assert await listed(desk, status="has_issues", path_prefix="Src") == []
    assert len(await listed(desk, path_prefix="")) == 7


async def test_pages_follow_each_other_without_gaps_or_repetition(desk: Desk) -> None:
    paths = ["b.py", "a b.py", "A.py", "a/b.py", "a-b.py", "ä.py"]
    for concept in ("error_handling", "type_safety"):
        await examined(desk, *paths, concept=concept)
    everything = (await desk.call(desk.actor("scanner"), "list_coverage")).records
    seen: list[dict[str, Any]] = []
    cursor: str | None = None
    for _ in range(10):
        page = await desk.call(
            desk.actor("scanner"), "list_coverage", limit=5, **({"cursor": cursor} if cursor else {})
        )
        seen += page.records
        cursor = page.next_cursor
        if cursor is None:
            break
    assert seen == everything
    assert len(everything) == 12


async def test_a_ticket_that_was_moved_is_shown_by_its_new_name_to_those_who_may_see_it(desk: Desk) -> None:
    ticket = await desk.issue(phase="grooming")
    await examined(desk, "a.py", status="has_issues", ticket_id=ticket.id)
    await desk.project("other")
    planner = desk.actor("planner", ticket)
    moved = await desk.call(planner, "move_issue", target_project_id="other", reason="it is theirs")
    (record,) = (await desk.call(desk.actor("scanner"), "list_coverage")).records
    assert record["ticket_id"] == moved.identifier
    await desk.call(desk.owner, "set_project_members", project="other", agents=[])
    (record,) = (await desk.call(desk.actor("scanner"), "list_coverage")).records
    assert record["ticket_id"] is None
