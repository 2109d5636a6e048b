"""Counts that an agent found by its own means."""

from typing import Any

import pytest

from rookery.core.errors import InvalidParams, NotFound
from tests.domains.health.clinic import PROJECT, Clinic

pytestmark = pytest.mark.anyio
TOOL = "record_health_snapshot"


async def test_a_project_that_is_closed_or_foreign_or_not_there_is_not_found(clinic: Clinic) -> None:
    await clinic.open()
    outsider = await clinic.shut_out("eve")
    for actor, project in ((outsider, PROJECT), (clinic.stranger, PROJECT), (clinic.agent(), "nowhere")):
        with pytest.raises(NotFound):
            await clinic.call(actor, TOOL, counts={"todos": 1}, project_id=project)
    assert clinic.rows() == []


@pytest.mark.parametrize(
    ("counts", "said"),
    [
        ({}, "at least one of tsc_errors, test_failures, todos"),
        (None, "at least one of"),
        ([1], "at least one of"),
        ({"bugs": 1}, "'bugs' is none of tsc_errors"),
        ({"todos": -1}, "todos must be a whole number from 0"),
        ({"todos": 1.5}, "whole number"),
        ({"todos": "3"}, "whole number"),
        ({"todos": True}, "whole number"),
        ({"todos": 10**9 + 1}, "whole number"),
        ({"todos": 1, "todo_count": 2}, "given twice"),
        ({"todos; DROP TABLE": 1}, "is none of"),
    ],
)
async def test_bad_counts_are_refused(clinic: Clinic, counts: Any, said: str) -> None:
    await clinic.open()
    with pytest.raises(InvalidParams) as refusal:
        await clinic.call(clinic.agent(), TOOL, counts=counts)
    assert said in refusal.value.message
    assert clinic.rows() == []


async def test_a_snapshot_is_kept_with_who_made_it(clinic: Clinic) -> None:
    await clinic.open()
    heard: list[tuple[str, str | None]] = []
    clinic.fleet.platform.events.subscribe(lambda event: heard.append((event.name, event.subject)))
    made = (await clinic.record(tsc_errors=3, test_failure_count=0, outdated_deps=10**9)).snapshot
    (row,) = clinic.rows()
    agent = clinic.agent()
    assert (row.id, row.agent_id, row.tenant, row.source) == (made["id"], agent.agent, "default", "recorded")
    assert (row.project_id, heard) == (agent.project, [("HealthRecorded", agent.project)])
    assert (made["tsc_error_count"], made["test_failure_count"], made["todo_count"]) == (3, 0, None)
    assert (made["tsc_passed"], made["tests_passed"], made["outdated_dep_count"]) == (False, True, 10**9)


async def test_a_person_leaves_no_agents_name(clinic: Clinic) -> None:
    await clinic.open()
    await clinic.call(clinic.person, TOOL, counts={"hacks": 2})
    assert [(row.agent_id, row.hack_count) for row in clinic.rows()] == [(None, 2)]
