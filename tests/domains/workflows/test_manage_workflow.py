"""manage_workflow: who reaches which workflow, which graphs are refused, and what becomes of one."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from rookery.core.errors import Conflict, InvalidParams, NotFound, PermissionDenied, RookeryError, ValidationFailed
from rookery.core.lint import lint, tokens
from rookery.domains.workflows.tables import workflow_node_runs, workflow_runs, workflows
from tests.domains.workflows.workshop import END, START, Workshop, chain, node, ways

WITH_WORKFLOW = ("get", "update", "delete", "activate", "pause", "run", "runs")
WITH_RUN = ("run_status", "cancel", "pause_run", "resume_run")
HOOK = chain(node("w", "webhook_wait"))


@pytest.mark.parametrize("action", WITH_WORKFLOW)
async def test_a_workflow_of_another_agent_or_tenant_is_not_there(workshop: Workshop, action: str) -> None:
    ada, bob = await workshop.agent("ada"), await workshop.agent("bob")
    made = await workshop.workflow(ada, chain())
    before = workshop.rows(sa.select(workflows))
    for caller, wanted in ((bob, made), (workshop.stranger, made), (ada, "wfl-404")):
        with pytest.raises(NotFound, match="there is no workflow"):
            await workshop.do(caller, action, workflow_id=wanted, name="mine now")
    assert workshop.rows(sa.select(workflows)) == before
    assert workshop.rows(sa.select(workflow_runs)) == []


@pytest.mark.parametrize("action", WITH_RUN)
async def test_a_run_of_another_agent_or_tenant_is_not_there(workshop: Workshop, action: str) -> None:
    ada, bob = await workshop.agent("ada"), await workshop.agent("bob")
    run = await workshop.start(ada, HOOK)
    before = workshop.rows(sa.select(workflow_node_runs).order_by("node_id"))
    for caller, wanted in ((bob, run), (workshop.stranger, run), (ada, "wfr-404")):
        with pytest.raises(NotFound, match="there is no run"):
            await workshop.do(caller, action, run_id=wanted)
    assert workshop.rows(sa.select(workflow_node_runs).order_by("node_id")) == before


async def test_lists_show_an_agent_its_own_and_a_person_everything(workshop: Workshop) -> None:
    ada, bob = await workshop.agent("ada"), await workshop.agent("bob")
    made = await workshop.workflow(ada, chain())
    assert (await workshop.do(bob, "list")).workflows == []
    assert (await workshop.do(workshop.stranger, "list")).workflows == []
    for caller in (ada, workshop.owner):
        assert [each["id"] for each in (await workshop.do(caller, "list")).workflows] == [made]


@pytest.mark.parametrize("action", [*WITH_WORKFLOW, *WITH_RUN, "create"])
async def test_an_action_says_what_it_needs(workshop: Workshop, action: str) -> None:
    missing = "workflow_id" if action in WITH_WORKFLOW else "run_id" if action in WITH_RUN else "name"
    with pytest.raises(InvalidParams, match=f"{missing}: {action} needs it"):
        await workshop.do(await workshop.agent("ada"), action)


async def test_an_action_that_is_not_known_is_refused(workshop: Workshop) -> None:
    with pytest.raises(InvalidParams, match="action"):
        await workshop.do(workshop.owner, "explode")


@pytest.mark.parametrize(
    ("graph", "error", "said"),
    [
        ({"nodes": []}, ValidationFailed, "no nodes"),
        ({"nodes": [END]}, ValidationFailed, "no start node"),
        (chain(node("x", "teleport")), ValidationFailed, "unknown type 'teleport'"),
        (chain(node("x", "condition", expression="__import__('os')")), ValidationFailed, "condition node 'x'"),
        (chain(node("x", "agent_session")), ValidationFailed, "needs prompt"),
        (chain(node("x", "transform", template="{{a")), ValidationFailed, "without closing it"),
        (chain(node("x", "delay", delayMs=3_600_001)), ValidationFailed, "delayMs"),
        ({"nodes": [START, END], "edges": ways("s", "x")}, ValidationFailed, "missing node 'x'"),
        ({"nodes": [START, node("a", "transform")], "edges": []}, ValidationFailed, "cannot be reached"),
        (
            {"nodes": [START, node("a", "transform"), node("b", "transform")], "edges": ways("s", "a", "b", "a")},
            ValidationFailed,
            "there is a cycle",
        ),
        ({"nodes": [{"id": "s"}]}, InvalidParams, "nodes.0.type"),
        ({"nodes": [{**START, "color": "red"}]}, InvalidParams, "nodes.0.color"),
        ({"nodes": [START], "edges": [{"id": "x"}]}, InvalidParams, "edges.0.sourceNodeId"),
        (chain(node("x", "transform", template="x" * 600_000)), InvalidParams, "more than"),
        (chain(node("x", "agent_session", prompt="hi", agentId="nobody")), NotFound, "no agent nobody"),
        (chain(node("x", "agent_session", prompt="hi", projectId="nowhere")), NotFound, "no project nowhere"),
        (chain() | {"default_project_id": "nowhere"}, NotFound, "no project nowhere"),
        (chain() | {"max_concurrency": 0}, InvalidParams, "max_concurrency"),
        (chain() | {"name": ""}, InvalidParams, "1 to 200"),
    ],
)
async def test_a_graph_that_cannot_run_is_refused_and_nothing_is_made(
    workshop: Workshop, graph: dict[str, Any], error: type[RookeryError], said: str
) -> None:
    with pytest.raises(error, match=said):
        await workshop.workflow(workshop.owner, graph)
    assert workshop.rows(sa.select(workflows)) == []


async def test_whoever_is_no_agent_of_ours_has_no_workflows(workshop: Workshop) -> None:
    outside = replace(
        workshop.owner, kind="external", role=None, subject="external:x", scopes=frozenset({"workflow:manage"})
    )
    with pytest.raises(PermissionDenied, match="workflows belong to agents"):
        await workshop.do(outside, "list")


async def test_an_agents_workflow_acts_as_nobody_else(workshop: Workshop) -> None:
    ada = await workshop.agent("ada")
    await workshop.agent("bob")
    for graph in (chain(node("x", "agent_session", prompt="hi", agentId="bob")), chain() | {"agent_id": "bob"}):
        with pytest.raises(PermissionDenied) as refused:
            await workshop.workflow(ada, graph)
        assert refused.value.layer == "principal"
    as_itself = chain(node("x", "agent_session", prompt="hi", agentId="ada"))
    mine = await workshop.workflow(ada, as_itself)
    as_bob = chain(node("x", "agent_session", prompt="hi", agentId="bob"))
    with pytest.raises(PermissionDenied):
        await workshop.do(ada, "update", workflow_id=mine, **as_bob)


async def test_an_agent_cannot_rewrite_what_a_person_lets_others_do(workshop: Workshop) -> None:
    ada = await workshop.agent("ada")
    await workshop.agent("bob")
    graph = chain(node("x", "agent_session", prompt="hi", agentId="bob"))
    made = await workshop.workflow(workshop.owner, graph, agent_id="ada")
    evil = chain(node("x", "agent_session", prompt="give me everything", agentId="bob"))
    for change in (evil, {"edges": graph["edges"]}):
        with pytest.raises(PermissionDenied, match="acts as that agent alone"):
            await workshop.do(ada, "update", workflow_id=made, **change)
    assert (await workshop.do(ada, "get", workflow_id=made)).workflows[0]["nodes"][1]["config"]["prompt"] == "hi"
    assert (await workshop.do(ada, "update", workflow_id=made, name="renamed")).workflows[0]["name"] == "renamed"


async def test_a_project_that_is_closed_to_an_agent_is_not_there(workshop: Workshop) -> None:
    ada = await workshop.agent("ada")
    await workshop.fleet.call(workshop.owner, "create_project", slug="secret")
    await workshop.fleet.call(workshop.owner, "set_project_members", project="secret", agents=[])
    ada = workshop.fleet.actor(agent="ada")
    for more in ({"default_project_id": "secret"}, chain(node("x", "work_task", description="x", projectId="secret"))):
        with pytest.raises(NotFound, match="no project secret"):
            await workshop.workflow(ada, chain() | more)


async def test_only_an_active_workflow_runs(workshop: Workshop) -> None:
    made = await workshop.workflow(workshop.owner, chain(), active=False)
    with pytest.raises(Conflict, match="is draft, not active"):
        await workshop.do(workshop.owner, "run", workflow_id=made)
    with pytest.raises(Conflict, match="is a draft"):
        await workshop.do(workshop.owner, "pause", workflow_id=made)
    await workshop.do(workshop.owner, "activate", workflow_id=made)
    assert (await workshop.do(workshop.owner, "pause", workflow_id=made)).workflows[0]["status"] == "paused"
    with pytest.raises(Conflict, match="is paused, not active"):
        await workshop.do(workshop.owner, "run", workflow_id=made)
    assert workshop.rows(sa.select(workflow_runs)) == []


@pytest.mark.parametrize("given", [{"x": "y" * 70_000}, {"x": float("nan")}])
async def test_an_input_that_does_not_fit_is_refused(workshop: Workshop, given: dict[str, Any]) -> None:
    made = await workshop.workflow(workshop.owner, chain())
    with pytest.raises(InvalidParams, match="input"):
        await workshop.do(workshop.owner, "run", workflow_id=made, input=given)
    deep: dict[str, Any] = {}
    for _ in range(60):
        deep = {"x": deep}
    with pytest.raises(InvalidParams, match="levels"):
        await workshop.do(workshop.owner, "run", workflow_id=made, input=deep)


async def test_workflows_are_not_nested_without_end(workshop: Workshop) -> None:
    ada = await workshop.agent("ada")
    made = await workshop.workflow(ada, chain())
    deep = await workshop.agent("ada", depth=3)
    with pytest.raises(PermissionDenied) as refused:
        await workshop.do(deep, "run", workflow_id=made)
    assert refused.value.layer == "depth"
    assert (await workshop.do(deep, "list")).workflows != []


async def test_a_workflow_is_made_changed_and_removed(workshop: Workshop) -> None:
    ada = await workshop.agent("ada")
    made = await workshop.workflow(ada, chain(node("x", "delay")), active=False, description="waits")
    shown = (await workshop.do(ada, "get", workflow_id=made)).workflows[0]
    assert (shown["status"], shown["agent_id"], shown["max_concurrency"]) == ("draft", ada.agent, 2)
    assert shown["edges"][0] == {"id": "s-x", "sourceNodeId": "s", "targetNodeId": "x"}
    with pytest.raises(InvalidParams, match="nothing is to be changed"):
        await workshop.do(ada, "update", workflow_id=made)
    changed = await workshop.do(ada, "update", workflow_id=made, max_concurrency=5, default_project_id="default")
    assert changed.workflows[0]["max_concurrency"] == 5
    assert changed.workflows[0]["nodes"] == shown["nodes"]
    with pytest.raises(ValidationFailed, match="missing node 'x'"):
        await workshop.do(ada, "update", workflow_id=made, nodes=[START, END])
    await workshop.do(ada, "update", workflow_id=made, **chain())
    assert (await workshop.do(ada, "delete", workflow_id=made)).workflows[0]["id"] == made
    assert workshop.rows(sa.select(workflows)) == []


async def test_a_workflow_with_an_open_run_is_not_removed(workshop: Workshop) -> None:
    run = await workshop.start(workshop.owner, HOOK)
    workflow_id = (await workshop.status(run))["workflow_id"]
    with pytest.raises(Conflict, match="has not ended"):
        await workshop.do(workshop.owner, "delete", workflow_id=workflow_id)
    await workshop.do(workshop.owner, "cancel", run_id=run)
    await workshop.do(workshop.owner, "delete", workflow_id=workflow_id)
    for table in (workflows, workflow_runs, workflow_node_runs):
        assert workshop.rows(sa.select(table)) == []


async def test_a_run_without_work_is_over_at_once(workshop: Workshop) -> None:
    graph = chain(node("t", "transform", template="{{who}}!"))
    made = await workshop.workflow(workshop.owner, graph)
    run = (await workshop.do(workshop.owner, "trigger", workflow_id=made, input={"who": "Ada"})).runs[0]
    assert (run["status"], run["output"]["transformed"], run["error"]) == ("completed", "Ada!", None)
    listed = (await workshop.do(workshop.owner, "runs", workflow_id=made)).runs
    assert [(each["id"], each["status"]) for each in listed] == [(run["id"], "completed")]


async def test_the_example_of_the_docs_can_run(workshop: Workshop) -> None:
    page = (Path(__file__).parents[3] / "docs" / "workflows.md").read_text(encoding="utf-8")
    example = page.partition("```json\n")[2].partition("```")[0]
    run = await workshop.status(await workshop.start(workshop.owner, json.loads(example), {"repo": "shop"}))
    assert run["current"] == ["a"]


def test_the_listing_is_complete_and_cheap(workshop: Workshop) -> None:
    tool = workshop.fleet.platform.registry.require("manage_workflow")
    assert lint(tool) == []
    assert tokens(tool) <= 400
