"""`name_workflow_runs`: of which workflows runs are."""

import pytest

from rookery.core.actor import Actor
from rookery.core.errors import PermissionDenied
from rookery.domains.workflows.engine import node_key
from rookery.domains.workflows.run_names import WorkflowRunNames, name_workflow_runs, run_of
from rookery.identity.store import IdentityStore
from tests.platform_fixtures import Fleet

GRAPH = {
    "nodes": [{"id": "s", "type": "start"}, {"id": "e", "type": "end"}],
    "edges": [{"id": "1", "sourceNodeId": "s", "targetNodeId": "e"}],
}


async def named(fleet: Fleet, actor: Actor, *ids: str) -> WorkflowRunNames:
    found = (await fleet.platform.calls.run(actor, name_workflow_runs, {"run_ids": list(ids)})).value
    assert isinstance(found, WorkflowRunNames)
    return found


async def begun(fleet: Fleet) -> tuple[str, str]:
    """A workflow and a run of it."""
    made = await fleet.call(fleet.owner, "manage_workflow", action="create", name="Review", **GRAPH)
    workflow = made.workflows[0]["id"]
    await fleet.call(fleet.owner, "manage_workflow", action="activate", workflow_id=workflow)
    return workflow, (await fleet.call(fleet.owner, "manage_workflow", action="run", workflow_id=workflow)).runs[0][
        "id"
    ]


async def test_an_agent_is_not_told(fleet: Fleet) -> None:
    with pytest.raises(PermissionDenied):
        await named(fleet, fleet.actor())
    assert "name_workflow_runs" not in fleet.names(fleet.owner)


async def test_each_run_that_is_there_has_its_workflow(fleet: Fleet) -> None:
    workflow, run = await begun(fleet)
    (one,) = (await named(fleet, fleet.owner, run, "gone")).runs
    assert (one.run_id, one.workflow_id, one.name) == (run, workflow, "Review")


async def test_another_tenant_is_told_nothing(fleet: Fleet) -> None:
    _, run = await begun(fleet)
    fleet.platform.database.direct(lambda tx: IdentityStore(tx, "other").set_up(), write=True)
    assert (await named(fleet, fleet.actor(tenant="other", as_owner=True), run)).runs == []


def test_a_key_says_of_which_run_a_session_is() -> None:
    assert run_of(node_key("wfr-1", "c", 2)) == "wfr-1"
    assert [run_of(key) for key in ("execution:ab:0", "node:", "ses-1", None)] == [None] * 4
