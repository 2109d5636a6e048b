"""`read_suite_history`: the test runs of a project."""

import pytest

from rookery.core.errors import PermissionDenied
from rookery.domains.tracker.suite_history import read_suite_history
from tests.domains.runs.told import read
from tests.domains.tracker.desk import Desk


async def test_agents_do_not_read_it_and_other_tenants_see_nothing(desk: Desk) -> None:
    issue = await desk.issue()
    await desk.call(desk.actor("worker", issue), "record_test_health", test_count=5)
    with pytest.raises(PermissionDenied):
        await read(desk.fleet, read_suite_history, desk.actor("worker"))
    assert (await read(desk.fleet, read_suite_history, desk.stranger)).runs == []


async def test_runs_come_oldest_first_with_what_is_wrong(desk: Desk) -> None:
    issue = await desk.issue()
    worker = desk.actor("worker", issue)
    for count, time_ms in ((100, 1000), (140, 3000)):
        await desk.call(worker, "record_test_health", test_count=count, execution_time_ms=time_ms, tests_removed=2)
    found = await read(desk.fleet, read_suite_history, desk.owner, days=1)
    assert [(run["test_count"], run["issue"]) for run in found.runs] == [
        (100, issue.identifier),
        (140, issue.identifier),
    ]
    assert found.trend["test_count"] == 140
    assert len(found.reasons) == 2
