"""`read_coverage_map`: what was examined, folder by folder."""

from typing import Any

import pytest

from rookery.core.errors import InvalidParams, PermissionDenied
from rookery.domains.tracker.coverage_map import CoverageMap, read_coverage_map
from tests.domains.runs.told import read
from tests.domains.tracker.desk import Desk
from tests.domains.tracker.test_list_coverage import examined


async def mapped(desk: Desk, **wanted: Any) -> CoverageMap:
    return await read(desk.fleet, read_coverage_map, desk.owner, **wanted)


async def test_agents_do_not_read_it_and_other_tenants_see_nothing(desk: Desk) -> None:
    await examined(desk, "src/a.py")
    with pytest.raises(PermissionDenied):
        await read(desk.fleet, read_coverage_map, desk.actor("scanner"))
    assert (await read(desk.fleet, read_coverage_map, desk.stranger)).lines == []


@pytest.mark.parametrize("wrong", [{"limit": 0}, {"offset": -1}, {"folder": "x" * 1001}])
async def test_wrong_values_are_refused(desk: Desk, wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidParams):
        await mapped(desk, **wrong)


async def test_folders_come_first_and_count_what_is_below_them(desk: Desk) -> None:
    issue = await desk.issue()
    await examined(desk, "src/a.py", "src/web/b.py", "README.md")
    await examined(desk, "src/a.py", concept="logging", status="has_issues", ticket_id=issue.identifier)
    found = await mapped(desk)
    assert [(line.name, line.is_folder) for line in found.lines] == [("src/", True), ("README.md", False)]
    assert found.concepts == ["error_handling", "logging"]
    cell = found.lines[0].cells["error_handling"]
    assert (cell["examined"], cell["with_issues"]) == (2, 0)
    assert (found.examined, found.with_issues) == (4, 1)


async def test_inside_a_folder_are_its_files_with_their_issues(desk: Desk) -> None:
    issue = await desk.issue()
    await examined(desk, "src/a.py", "src/web/b.py", "srcx/c.py")
    await examined(desk, "src/a.py", concept="logging", status="has_issues", ticket_id=issue.identifier)
    found = await mapped(desk, folder="/src/")
    assert [(line.name, line.path) for line in found.lines] == [("web/", "src/web"), ("a.py", "src/a.py")]
    assert found.lines[1].cells["logging"]["issue"] == issue.identifier
    assert (await mapped(desk, folder="nowhere")).lines == []


async def test_many_files_come_in_pages(desk: Desk) -> None:
    await examined(desk, *(f"f{n}.py" for n in range(5)))
    first = await mapped(desk, limit=3)
    assert ([line.name for line in first.lines], first.total, first.next_offset) == (["f0.py", "f1.py", "f2.py"], 5, 3)
    rest = await mapped(desk, limit=3, offset=3)
    assert ([line.name for line in rest.lines], rest.next_offset) == (["f3.py", "f4.py"], None)
