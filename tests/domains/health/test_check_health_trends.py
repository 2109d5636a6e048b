"""How a project's counts move, as agents are shown it."""

from dataclasses import replace
from typing import Any

import pytest
import sqlalchemy as sa

from rookery.core.errors import InvalidParams, NotFound
from rookery.domains.health.tables import health_snapshots
from rookery.identity.tables import projects
from rookery.lifecycle.suite_tables import test_health as suite_runs
from tests.domains.health.clinic import DAY_MS, PROJECT, Clinic

pytestmark = pytest.mark.anyio
TOOL = "check_health_trends"


async def test_a_project_that_is_closed_or_foreign_or_not_there_is_not_found(clinic: Clinic) -> None:
    await clinic.open()
    await clinic.record(todos=1)
    outsider = await clinic.shut_out("eve")
    for actor, project in ((outsider, PROJECT), (clinic.stranger, PROJECT), (clinic.agent(), "nowhere")):
        with pytest.raises(NotFound) as refusal:
            await clinic.call(actor, TOOL, project_id=project)
        assert refusal.value.message == f"there is no project {project}"


@pytest.mark.parametrize(
    "arguments",
    [
        {"project_id": " "},
        {"project_id": "x" * 201},
        {"project_id": PROJECT, "days": 0},
        {"project_id": PROJECT, "days": 3651},
        {"project_id": PROJECT, "days": True},
        {"project_id": PROJECT, "limit": 0},
        {"project_id": PROJECT, "limit": 101},
        {"project_id": PROJECT, "weeks": 1},
    ],
)
async def test_bad_input_is_refused(clinic: Clinic, arguments: dict[str, Any]) -> None:
    await clinic.open()
    with pytest.raises(InvalidParams):
        await clinic.call(clinic.agent(), TOOL, **arguments)


async def test_a_session_without_a_project_has_to_name_one(clinic: Clinic) -> None:
    await clinic.open()
    with pytest.raises(NotFound, match="this session has no project"):
        await clinic.call(replace(clinic.agent(), project=None), TOOL)


async def test_the_project_of_the_session_is_meant_if_none_is_named(clinic: Clinic) -> None:
    await clinic.open()
    await clinic.record(todos=4)
    found = await clinic.call(clinic.agent(), TOOL)
    assert (found.project, found.latest["todo_count"]) == (PROJECT, 4)


async def test_without_a_snapshot_it_says_what_to_run(clinic: Clinic) -> None:
    await clinic.open()
    result = await clinic.fleet.platform.calls.call(clinic.agent(), TOOL, {"project_id": PROJECT})
    assert result.text == result.structured["message"]
    assert result.text.startswith("No health snapshots of shop. Run an improvement cycle")
    assert (result.structured["latest"], result.structured["trends"]) == (None, {})


async def test_one_snapshot_has_no_trend(clinic: Clinic) -> None:
    await clinic.open()
    await clinic.record(todos=4, test_failures=0)
    found = await clinic.trends()
    assert (found.snapshots, found.trends, found.message) == (1, {}, None)
    assert (found.latest["todo_count"], found.latest["tests_passed"], found.latest["tsc_passed"]) == (4, True, None)
    text = found.as_text()
    assert "todos 4" in text
    assert "tsc_errors not counted" in text
    assert text.endswith("Trends: no trend data")


async def test_each_metric_has_its_values_and_a_word(clinic: Clinic) -> None:
    await clinic.open()
    for errors, failures, todos in ((9, 1, 100), (8, 1, 100), (2, 3, 105)):
        await clinic.record(tsc_errors=errors, test_failures=failures, todos=todos, fixmes=0)
    found = await clinic.trends()
    assert found.trends == {
        "tsc_errors": "9 → 8 → 2 IMPROVING",
        "test_failures": "1 → 1 → 3 REGRESSING",
        "todos": "100 → 100 → 105 STABLE",
        "fixmes": "0 → 0 → 0 STABLE",
        "hacks": "no trend data",
        "large_files": "no trend data",
        "outdated_deps": "no trend data",
    }
    assert "  tsc_errors: 9 → 8 → 2 IMPROVING" in found.as_text().splitlines()
    assert (found.project, found.snapshots, found.latest["tsc_error_count"]) == (PROJECT, 3, 2)


async def test_what_was_not_counted_is_left_out_and_is_no_zero(clinic: Clinic) -> None:
    await clinic.open()
    for counts in ({"todos": 5}, {"hacks": 1}, {"todos": 9}):
        await clinic.record(**counts)
    assert (await clinic.trends()).trends["todos"] == "5 → 9 REGRESSING"


async def test_the_newest_ten_are_compared_unless_more_or_fewer_are_asked_for(clinic: Clinic) -> None:
    await clinic.open()
    for number in range(12):
        await clinic.record(todos=number)
    assert (await clinic.trends()).trends["todos"] == f"{' → '.join(map(str, range(2, 12)))} REGRESSING"
    assert (await clinic.trends(limit=2)).trends["todos"] == "10 → 11 REGRESSING"
    assert (await clinic.trends(limit=100)).snapshots == 12


async def test_days_leave_out_what_is_older(clinic: Clinic) -> None:
    await clinic.open()
    for age, todos in ((9, 50), (2, 4), (0.5, 3)):
        made = await clinic.record(todos=todos)
        clinic.age(made.snapshot["id"], age)
    assert (await clinic.trends(days=7)).trends["todos"] == "4 → 3 IMPROVING"
    assert (await clinic.trends(days=1)).trends == {}
    assert (await clinic.trends(days=30)).snapshots == 3


async def test_where_the_days_leave_nothing_it_says_of_when_the_newest_is(clinic: Clinic) -> None:
    await clinic.open()
    made = await clinic.record(todos=1)
    clinic.age(made.snapshot["id"], 9)
    at = (await clinic.trends()).latest["collected_at"]
    found = await clinic.trends(days=7)
    assert (found.snapshots, found.latest) == (0, None)
    assert found.message == f"No health snapshots of shop within days=7. The newest is of {at}."
    assert found.as_text() == found.message


async def test_what_was_recorded_among_what_was_collected_has_a_star(clinic: Clinic) -> None:
    await clinic.open(tests="echo 3 failed; exit 1")
    await clinic.collect()
    await clinic.collect()
    found = await clinic.trends()
    assert (found.trends["test_failures"], found.message) == ("3 → 3 STABLE", None)
    await clinic.record(test_failures=0)
    found = await clinic.trends()
    assert found.trends["test_failures"] == "3 → 3 → 0* IMPROVING"
    assert found.trends["todos"] == "0 → 0 STABLE"
    assert found.message == "* was recorded by somebody, not collected"
    assert found.as_text().startswith("Health of shop, recorded at ")
    assert found.as_text().splitlines()[-1] == found.message


async def test_with_an_agent_only_its_own_snapshots_count(clinic: Clinic) -> None:
    await clinic.open()
    await clinic.call(clinic.fleet.owner, "create_agent", name="ada")
    await clinic.record(todos=9)
    await clinic.call(clinic.agent("ada"), "record_health_snapshot", counts={"todos": 4})
    for reference in ("ada", clinic.agent("ada").agent):
        found = await clinic.trends(agent_id=reference)
        assert (found.snapshots, found.latest["todo_count"]) == (1, 4)
    await clinic.call(clinic.fleet.owner, "create_agent", name="bob")
    assert "No health snapshots of shop by bob." in (await clinic.trends(agent_id="bob")).message
    with pytest.raises(NotFound):
        await clinic.trends(agent_id="nobody")


async def test_projects_do_not_mix(clinic: Clinic) -> None:
    await clinic.open()
    await clinic.call(clinic.fleet.owner, "create_project", slug="other")
    await clinic.record(todos=1)
    await clinic.call(clinic.agent(), "record_health_snapshot", counts={"todos": 7}, project_id="other")
    assert (await clinic.trends()).latest["todo_count"] == 1
    assert (await clinic.trends(project_id="other")).latest["todo_count"] == 7
    ids = {row.project_id for row in clinic.rows(health_snapshots)}
    assert ids == {row.id for row in clinic.rows(projects) if row.slug in (PROJECT, "other")}
    by_id = next(row.id for row in clinic.rows(projects) if row.slug == PROJECT)
    assert (await clinic.trends(project_id=by_id)).project == PROJECT


async def test_the_test_runs_that_workers_report_to_the_tracker_are_shown(clinic: Clinic) -> None:
    await clinic.open()
    issue = await clinic.call(clinic.person, "create_issue", title="login fails")
    worker = clinic.fleet.actor(profile="worker", issue=issue.id, project=PROJECT)
    for count, took in ((100, 1000), (104, None), (131, 1000), (140, 4000)):
        told = {"test_count": count} | ({} if took is None else {"execution_time_ms": took})
        await clinic.call(worker, "record_test_health", **told)
    found = await clinic.trends()
    assert (found.latest, found.trends) == (None, {})
    assert found.suite == {
        "test_count": "100 → 104 → 131 → 140 GROWING",
        "execution_time_ms": "1000 → 1000 → 4000 REGRESSING",
    }
    assert "  test_count: 100 → 104 → 131 → 140 GROWING" in found.as_text()
    assert (await clinic.trends(limit=2)).suite["test_count"] == "131 → 140 STABLE"
    clinic.change(sa.update(suite_runs).values(at_ms=suite_runs.c.at_ms - 3 * DAY_MS))
    assert (await clinic.trends(days=2)).suite == {}
    assert (await clinic.trends(project_id="default")).suite == {}


async def test_it_changes_nothing(clinic: Clinic) -> None:
    await clinic.open()
    await clinic.trends()
    assert clinic.rows() == []
    assert clinic.fleet.platform.registry.require(f"corvid_{TOOL}").effect == "read"
