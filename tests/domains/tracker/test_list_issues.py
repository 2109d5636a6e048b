import pytest

from rookery.core.errors import InvalidParams, PermissionDenied
from tests.domains.tracker.desk import Desk


async def test_an_agent_without_a_profile_does_not_have_it(desk: Desk) -> None:
    with pytest.raises(PermissionDenied):
        await desk.call(desk.fleet.actor(), "list_issues")


async def test_wrong_filters_are_refused_by_name(desk: Desk) -> None:
    wrong = {"status": ["open", ""], "limit": [0, 101, "many"], "labels": [["ui"], ""], "cursor": [7]}
    for name, values in wrong.items():
        for value in values:
            with pytest.raises(InvalidParams, match=name):
                await desk.call(desk.actor("worker"), "list_issues", **{name: value})
    for cursor in ("nonsense", "eyJhZnRlciI6ICJ4In0", "e30"):
        with pytest.raises(InvalidParams, match="cursor"):
            await desk.call(desk.actor("worker"), "list_issues", cursor=cursor)


async def test_other_projects_and_tenants_are_not_listed(desk: Desk) -> None:
    await desk.project("other")
    await desk.issue("elsewhere", project="other")
    await desk.call(desk.stranger, "create_issue", title="theirs")
    await desk.issue("ours")
    told = await desk.call(desk.actor("intake"), "list_issues")
    assert [each["title"] for each in told.issues] == ["ours"]


async def test_urgent_ones_come_first_then_the_oldest(desk: Desk) -> None:
    for title, priority in (("b", 3), ("a", 1), ("c", 3), ("d", 4)):
        await desk.issue(title, priority=priority, status="todo")
    told = await desk.call(desk.actor("worker"), "list_issues")
    assert [each["title"] for each in told.issues] == ["a", "b", "c", "d"]
    assert told.next_cursor is None


async def test_status_and_label_narrow_the_list(desk: Desk) -> None:
    await desk.issue("a", status="todo", labels=["ui"])
    await desk.issue("b", status="review", labels=["ui"])
    await desk.issue("c", status="todo", phase="research")
    worker = desk.actor("worker")

    async def titles(**filters: str) -> list[str]:
        return [each["title"] for each in (await desk.call(worker, "list_issues", **filters)).issues]

    assert await titles(status="todo") == ["a", "c"]
    assert await titles(labels="ui") == ["a", "b"]
    assert await titles(labels="phase:research") == ["c"]
    assert await titles(status="todo", labels="ui") == ["a"]
    assert await titles(labels="u_") == []


async def test_pages_cover_everything_once(desk: Desk) -> None:
    for number in range(7):
        await desk.issue(f"issue {number}", status="todo", priority=1 + number % 2)
    seen: list[str] = []
    cursor = None
    for _ in range(10):
        page = {"limit": 3} | ({"cursor": cursor} if cursor else {})
        told = await desk.call(desk.actor("worker"), "list_issues", **page)
        seen += [each["identifier"] for each in told.issues]
        cursor = told.next_cursor
        if cursor is None:
            break
    assert len(seen) == 7
    assert len(set(seen)) == 7
