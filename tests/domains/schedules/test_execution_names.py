"""`name_executions`: of which schedules executions are."""

import pytest

from rookery.core.actor import Actor
from rookery.core.errors import PermissionDenied
from rookery.domains.schedules.execution_names import ExecutionNames, execution_of, name_executions
from rookery.domains.schedules.overview import run_schedule_now
from rookery.identity.store import IdentityStore
from tests.platform_fixtures import Fleet


async def named(fleet: Fleet, actor: Actor, *ids: str) -> ExecutionNames:
    found = (await fleet.platform.calls.run(actor, name_executions, {"execution_ids": list(ids)})).value
    assert isinstance(found, ExecutionNames)
    return found


async def executed(fleet: Fleet) -> tuple[str, str]:
    """A schedule and an execution of it."""
    made = {
        "name": "Nightly",
        "cron_expression": "0 9 * * *",
        "schedule_actions": [{"type": "custom", "prompt": "look"}],
    }
    schedule = (await fleet.call(fleet.owner, "manage_schedule", action="create", **made)).schedules[0]["id"]
    ran = await fleet.platform.calls.run(fleet.owner, run_schedule_now, {"schedule_id": schedule})
    return schedule, ran.structured["execution"]["id"]


async def test_an_agent_is_not_told(fleet: Fleet) -> None:
    with pytest.raises(PermissionDenied):
        await named(fleet, fleet.actor())
    assert "name_executions" not in fleet.names(fleet.owner)


async def test_each_execution_that_is_there_has_its_schedule(fleet: Fleet) -> None:
    schedule, execution = await executed(fleet)
    (one,) = (await named(fleet, fleet.owner, execution, "gone")).executions
    assert (one.execution_id, one.schedule_id, one.name) == (execution, schedule, "Nightly")
    assert (await named(fleet, fleet.owner)).executions == []


async def test_another_tenant_is_told_nothing(fleet: Fleet) -> None:
    _, execution = await executed(fleet)
    fleet.platform.database.direct(lambda tx: IdentityStore(tx, "other").set_up(), write=True)
    assert (await named(fleet, fleet.actor(tenant="other", as_owner=True), execution)).executions == []


@pytest.mark.parametrize(
    ("key", "execution"),
    [("execution:ab12:0", "ab12"), ("execution:", None), ("node:ab12:c", None), ("ses-1", None), (None, None)],
)
def test_a_key_says_of_which_execution_a_session_is(key: str | None, execution: str | None) -> None:
    assert execution_of(key) == execution
