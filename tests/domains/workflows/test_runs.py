"""Runs of workflows: what each type of node does, and what pausing, cancelling and restarting mean."""

from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa

from rookery.core.errors import Conflict
from rookery.domains.workflows.jobs import agent_session
from rookery.domains.workflows.tables import workflow_node_runs
from rookery.jobs.tables import jobs
from tests.domains.workflows.workshop import END, START, Workshop, chain, node, statuses, ways
from tests.platform_fixtures import Fleet


def say(node_id: str, prompt: str, **config: Any) -> dict[str, Any]:
    return node(node_id, "agent_session", prompt=prompt, retryDelayMs=0, **config)


async def test_without_a_runtime_a_session_fails_and_says_so(workshop: Workshop) -> None:
    workshop.facts["runtime"] = None
    run = await workshop.ended(await workshop.start(workshop.owner, chain(say("a", "hi"))), "failed")
    assert "runs no agents" in run["error"]
    assert "the a" in run["error"]


async def test_a_template_with_a_missing_path_fails_its_node_by_name(workshop: Workshop) -> None:
    run = await workshop.status(await workshop.start(workshop.owner, chain(say("a", "hi {{nobody.name}}"))))
    assert run["status"] == "failed"
    assert "nobody.name" in run["error"]
    assert workshop.rows(sa.select(jobs)) == []


async def test_a_session_that_fails_is_tried_again_and_then_fails_the_run(workshop: Workshop) -> None:
    graph = chain(say("a", "fail at once", retries=2), say("b", "go on"))
    run = await workshop.ended(await workshop.start(workshop.owner, graph), "failed")
    assert run["error"] == 'node "the a" failed: could not fail at once'
    assert workshop.talks.prompts == ["fail at once"] * 3
    assert statuses(run) == {"s": "completed", "a": "failed", "b": "skipped", "e": "skipped"}


async def test_other_branches_of_a_failed_run_come_to_their_end(workshop: Workshop) -> None:
    graph = {
        "nodes": [START, say("bad", "fail"), say("good", "work"), say("after", "then {{prev.output}}")],
        "edges": [*ways("s", "bad"), *ways("s", "good", "after")],
    }
    run = await workshop.ended(await workshop.start(workshop.owner, graph), "failed")
    assert statuses(run)["after"] == "completed"
    assert "then did work" in workshop.talks.prompts


async def test_a_session_acts_as_the_agent_of_the_workflow_or_of_the_node(workshop: Workshop) -> None:
    ada, bob = await workshop.agent("ada"), await workshop.agent("bob")
    await workshop.fleet.call(workshop.owner, "create_project", slug="shop")
    graph = chain(say("a", "hi {{who}}", maxTurns=7), say("b", "{{prev.output}}", agentId="bob", projectId="default"))
    made = await workshop.workflow(workshop.owner, graph, agent_id="ada", default_project_id="shop")
    run_id = (await workshop.do(workshop.owner, "run", workflow_id=made, input={"who": "you"})).runs[0]["id"]
    run = await workshop.ended(run_id)
    first, second = workshop.talks.all
    assert (first.actor.agent, first.actor.project_slug, first.max_turns) == (ada.agent, "shop", 7)
    assert (second.actor.agent, second.actor.project_slug, second.max_turns) == (bob.agent, "default", 50)
    assert second.prompt == "did hi you"
    assert run["output"]["output"] == "did did hi you"
    assert run["output"]["sessionId"] == second.id
    assert [each.get("session_id") for each in run["nodes"]] == [None, first.id, second.id, None]


async def test_sessions_reach_no_further_than_whoever_started_the_run(workshop: Workshop) -> None:
    ada = await workshop.agent("ada", scheduler=True, scope_file=frozenset({"manage_workflow", "ping"}))
    await workshop.ended(await workshop.start(ada, chain(say("a", "hi"))))
    actor = workshop.talks.all[0].actor
    assert (actor.scheduler, actor.depth, actor.source) == (True, 2, "agent")
    assert workshop.fleet.names(actor) == {"manage_workflow", "ping"}


async def test_a_run_keeps_the_graph_it_began_with(workshop: Workshop) -> None:
    run_id = await workshop.start(workshop.owner, chain(say("a", "old")))
    workflow_id = (await workshop.status(run_id))["workflow_id"]
    await workshop.do(workshop.owner, "update", workflow_id=workflow_id, **chain(say("b", "new")))
    assert set(statuses(await workshop.ended(run_id))) == {"s", "a", "e"}
    assert workshop.talks.prompts == ["old"]


async def test_a_join_waits_for_taken_branches_and_not_for_others(workshop: Workshop) -> None:
    """Invariant 23."""
    graph = {
        "nodes": [
            START, node("c", "condition", expression="kind == 'big'"), say("yes", "big"), say("no", "small"),
            node("j", "join"), END,
        ],
        "edges": [
            *ways("s", "c"), *ways("c", "yes", c="true"), *ways("c", "no", c="false"), *ways("yes", "j"),
            *ways("no", "j", "e"),
        ],
    }  # fmt: skip
    run = await workshop.ended(await workshop.start(workshop.owner, graph, {"kind": "big"}))
    assert statuses(run)["no"] == "skipped"
    assert statuses(run)["j"] == statuses(run)["e"] == "completed"
    assert workshop.talks.prompts == ["big"]


async def test_so_many_sessions_work_at_once_and_no_more(workshop: Workshop) -> None:
    names = ["a", "b", "c", "d"]
    fan = {
        "nodes": [START, node("p", "parallel"), *(say(name, f"wait {name}") for name in names), node("j", "join")],
        "edges": [*ways("s", "p"), *(edge for name in names for edge in ways("p", name, "j"))],
    }
    run_id = await workshop.start(workshop.owner, fan, max_concurrency=3)
    async with workshop.working(concurrency=8):
        await workshop.until(lambda: len(workshop.talks.all) == 3)
        assert sorted(statuses(await workshop.status(run_id)).values()).count("running") == 3
        workshop.talks.all[0].go.set()
        await workshop.until(lambda: len(workshop.talks.all) == 4)
        for talk in workshop.talks.all:
            talk.go.set()
        await workshop.until("completed", run_id)


async def test_a_paused_run_ends_what_is_under_way_and_begins_nothing(workshop: Workshop) -> None:
    run_id = await workshop.start(workshop.owner, chain(say("a", "wait"), say("b", "next")))
    with pytest.raises(Conflict, match="is running, not paused"):
        await workshop.do(workshop.owner, "resume_run", run_id=run_id)
    async with workshop.working():
        await workshop.until(lambda: len(workshop.talks.all) == 1)
        await workshop.do(workshop.owner, "pause_run", run_id=run_id)
        with pytest.raises(Conflict, match="is paused, not running"):
            await workshop.do(workshop.owner, "pause_run", run_id=run_id)
        workshop.talks.all[0].go.set()
        await workshop.until(lambda: _status(workshop, "a") == "completed")
        assert statuses(await workshop.status(run_id)) == {
            "s": "completed", "a": "completed", "b": "pending", "e": "pending",
        }  # fmt: skip
        await workshop.do(workshop.owner, "resume_run", run_id=run_id)
        await workshop.until("completed", run_id)
    assert workshop.talks.prompts == ["wait", "next"]


def _status(workshop: Workshop, node_id: str) -> str:
    wanted = sa.select(workflow_node_runs.c.status).where(workflow_node_runs.c.node_id == node_id)
    return workshop.rows(wanted)[0].status


async def test_a_cancelled_run_stops_its_sessions_and_skips_the_rest(workshop: Workshop) -> None:
    graph = {
        "nodes": [START, say("a", "wait"), node("d", "delay", delayMs=3_600_000), node("w", "webhook_wait")],
        "edges": [*ways("s", "a"), *ways("s", "d"), *ways("s", "w")],
    }
    run_id = await workshop.start(workshop.owner, graph)
    async with workshop.working():
        await workshop.until(lambda: len(workshop.talks.all) == 1)
        cancelled = (await workshop.do(workshop.owner, "cancel", run_id=run_id)).runs[0]
        assert cancelled["status"] == "cancelled"
        assert statuses(cancelled) == {"s": "completed", "a": "skipped", "d": "skipped", "w": "skipped"}
        await workshop.until(lambda: workshop.talks.all[0].stopped)
        mine = sa.select(jobs.c.state).where(jobs.c.kind.like("workflows.%"))
        await workshop.until(lambda: {row.state for row in workshop.rows(mine)} == {"cancelled"})
    for action in ("cancel", "pause_run", "resume_run"):
        with pytest.raises(Conflict, match="is cancelled, not"):
            await workshop.do(workshop.owner, action, run_id=run_id)
    assert statuses(await workshop.status(run_id)) == statuses(cancelled)


async def test_a_delay_survives_the_end_of_the_server(
    database_url: str, make_fleet: Callable[..., Fleet], workshop: Workshop
) -> None:
    run_id = await workshop.start(workshop.owner, chain(node("d", "delay", delayMs=60_000), say("a", "after")))
    async with workshop.working():
        pass
    job = workshop.rows(sa.select(jobs))[0]
    assert 59_000 <= job.due_ms - job.created_ms <= 61_000
    second = Workshop(make_fleet(database_url, extra={}))
    second.change(sa.update(jobs).values(due_ms=job.created_ms))
    run = await second.ended(run_id)
    assert run["nodes"][1]["output"] == {"delayed": True, "delayMs": 60_000}
    assert second.talks.prompts == ["after"]


async def test_what_is_settled_is_settled_once(workshop: Workshop) -> None:
    run_id = await workshop.start(workshop.owner, chain(say("a", "hi")))
    run = await workshop.ended(run_id)
    before = workshop.rows(sa.select(workflow_node_runs).order_by("node_id"))
    workshop.change(sa.update(jobs).values(state="waiting", ended_ms=None))
    async with workshop.working():
        of_nodes = sa.select(jobs.c.state).where(jobs.c.kind.startswith("workflows."))
        await workshop.until(lambda: {row.state for row in workshop.rows(of_nodes)} == {"done"})
    assert workshop.talks.prompts == ["hi"]
    assert workshop.rows(sa.select(workflow_node_runs).order_by("node_id")) == before
    assert await workshop.status(run_id) == run


async def test_a_worker_that_stops_gives_its_session_to_the_next(workshop: Workshop) -> None:
    run_id = await workshop.start(workshop.owner, chain(say("a", "wait")))
    async with workshop.working(grace_s=0.0):
        await workshop.until(lambda: len(workshop.talks.all) == 1)
    assert workshop.talks.all[0].stopped
    async with workshop.working():
        await workshop.until(lambda: len(workshop.talks.all) == 2)
        workshop.talks.all[1].go.set()
        await workshop.until("completed", run_id)
    assert [talk.key for talk in workshop.talks.all] == [f"node:{run_id}:a"] * 2


async def test_two_servers_bring_many_runs_to_their_end_together(
    database_url: str, make_fleet: Callable[..., Fleet], workshop: Workshop
) -> None:
    names = ["a", "b", "c", "d", "f"]
    fan = {
        "nodes": [START, *(say(name, name) for name in names), node("d0", "delay", delayMs=1), node("j", "join"), END],
        "edges": [*(edge for name in names for edge in ways("s", name, "j")), *ways("s", "d0", "j"), *ways("j", "e")],
    }
    other = Workshop(make_fleet(database_url, extra={}))
    made = await workshop.workflow(workshop.owner, fan, max_concurrency=3)
    started = [(await workshop.do(workshop.owner, "run", workflow_id=made)).runs[0]["id"] for _ in range(6)]
    async with workshop.working(concurrency=6), other.working(concurrency=6):
        for run_id in started:
            await workshop.until("completed", run_id)
    keys = [talk.key for talk in (*workshop.talks.all, *other.talks.all)]
    assert sorted(keys) == sorted(f"node:{run_id}:{name}" for run_id in started for name in names)


async def test_data_that_grow_without_end_fail_the_run(workshop: Workshop) -> None:
    doubling = "{{transformed}}" * 8
    first = node("t0", "transform", template="{{big}}")
    graph = chain(first, *(node(f"t{number}", "transform", template=doubling) for number in range(1, 5)))
    run = await workshop.status(await workshop.start(workshop.owner, graph, {"big": "x" * 60_000}))
    assert run["status"] == "failed"
    assert "longer than" in run["error"]


def test_sessions_are_started_once_unless_a_node_asks_for_more() -> None:
    assert agent_session.attempts == 1
