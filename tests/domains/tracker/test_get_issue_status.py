import pytest

from rookery.core.errors import NotFound, PermissionDenied
from tests.domains.tracker.desk import Desk


async def test_scanners_and_intake_do_not_have_it(desk: Desk) -> None:
    issue = await desk.issue()
    for profile in ("scanner", "intake"):
        with pytest.raises(PermissionDenied):
            await desk.call(desk.actor(profile, issue), "get_issue_status")


async def test_an_unknown_issue_is_not_found(desk: Desk) -> None:
    issue = await desk.issue()
    with pytest.raises(NotFound):
        await desk.call(desk.actor("worker", issue), "get_issue_status", issue_id="DEF-404")
    with pytest.raises(NotFound):
        await desk.call(desk.stranger, "get_issue_status", issue_id=issue.id)


async def test_it_is_the_slim_form_with_the_last_five_findings(desk: Desk) -> None:
    issue = await desk.issue(labels=["ui"], priority=2)
    worker = desk.actor("worker", issue)
    for number in range(7):
        await desk.call(worker, "add_finding", category="gap", summary=f"gap {number}", details="long " * 100)
    told = await desk.call(worker, "get_issue_status")
    assert set(told.model_dump()) == {
        "id", "identifier", "title", "status", "labels", "priority", "size", "recent_findings", "recent_runs",
        "updated_ms",
    }  # fmt: skip
    assert (told.status, told.priority, told.labels) == ("in_progress", 2, ["phase:ready", "ui"])
    assert [each["summary"] for each in told.recent_findings] == [f"gap {number}" for number in range(2, 7)]
    assert all("details" not in each for each in told.recent_findings)
