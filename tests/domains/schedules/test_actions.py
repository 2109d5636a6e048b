"""What each type of action does when its time has come."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
import sqlalchemy as sa

from rookery.core.errors import PermissionDenied, RateLimited, RookeryError
from rookery.domains.memory.tables import memories
from rookery.domains.schedules.action import Action
from rookery.domains.schedules.improving import improve
from rookery.lifecycle.sessions import Outcome
from tests.domains.schedules.almanac import Almanac
from tests.jobs.working import running_worker, settled


async def test_star_repo_stars_each_repository_as_the_agent_itself(almanac: Almanac) -> None:
    step = await almanac.do(type="star_repo", repos=["a/b", "c/d"])
    assert step["status"] == "completed"
    assert almanac.deeds.of("github_star_repo") == [{"repo": "a/b"}, {"repo": "c/d"}]
    actor = almanac.deeds.done[0][1]
    assert (actor.kind, actor.agent, actor.scheduler) == ("agent", almanac.ada.agent, False)


async def test_a_repository_that_fails_does_not_keep_the_others_from_theirs(almanac: Almanac) -> None:
    almanac.deeds.broken.add("a/b")
    step = await almanac.do(type="fork_repo", repos=["a/b", "c/d"])
    assert step["status"] == "failed"
    assert step["error"] == "a/b: SERVICE_UNAVAILABLE: github_fork_repo is out of order"
    assert almanac.deeds.of("github_fork_repo") == [{"repo": "c/d"}]


async def test_send_message_is_sent_although_scheduled_sessions_may_not_send(almanac: Almanac) -> None:
    step = await almanac.do(type="send_message", to_agent_id="bob", message="tea?")
    assert step["status"] == "completed"
    assert almanac.deeds.of("send_message") == [{"to_agent": "bob", "message": "tea?"}]


async def test_reputation_attestation_publishes_one(almanac: Almanac) -> None:
    assert (await almanac.do(type="reputation_attestation"))["status"] == "completed"
    assert almanac.deeds.of("publish_attestation") == [{}]


async def test_work_task_creates_one_under_the_key_of_its_step(almanac: Almanac) -> None:
    project = (await almanac.fleet.call(almanac.owner, "create_project", slug="shop")).id
    step = await almanac.do(type="work_task", description="tidy up", projectId="shop")
    (execution,) = almanac.executions()
    (given,) = almanac.deeds.of("create_work_task")
    assert given == {"description": "tidy up", "project_id": project, "source_id": f"execution:{execution.id}:0"}
    assert step["work_task_id"] == "deed-1"
    assert almanac.deeds.done[0][1].project == project


@pytest.mark.parametrize(
    ("action", "said"),
    [
        ({"type": "review_prs", "repos": ["a/b"]}, "up to 5 open pull requests of a/b"),
        ({"type": "review_prs", "repos": ["a/b"], "maxPrs": 2}, "up to 2 open"),
        ({"type": "github_suggest", "repos": ["a/b"]}, "change nothing"),
        ({"type": "codebase_review", "description": "mind the tests"}, "mind the tests"),
        ({"type": "dependency_audit"}, "Audit the dependencies"),
        ({"type": "custom", "prompt": "water the plants"}, "water the plants"),
    ],
)
async def test_what_needs_an_agent_is_a_session_in_scheduler_mode(
    almanac: Almanac, action: dict[str, object], said: str
) -> None:
    step = await almanac.do(**action)
    ((actor, prompt, key, budget),) = almanac.runtime.asked
    assert said in prompt
    assert (actor.agent, actor.scheduler, actor.unattended, budget) == (almanac.ada.agent, True, True, None)
    assert key == f"execution:{almanac.executions()[0].id}:0"
    assert (step["status"], step["result"], step["session_id"]) == ("completed", "all fine", f"ses-{key}")
    blocked = {"send_message", "github_fork_repo"}
    assert blocked.isdisjoint(almanac.fleet.names(actor))
    with pytest.raises(PermissionDenied) as refused:
        await almanac.fleet.call(actor, "send_message", to_agent="bob", message="hi")
    assert refused.value.layer == "scheduler"


async def test_a_session_that_fails_fails_its_step(almanac: Almanac) -> None:
    almanac.runtime.outcome = Outcome("failed", error="out of ideas", cost_usd=0.5)
    step = await almanac.do(type="custom", prompt="think")
    assert (step["status"], step["error"], step["cost_usd"]) == ("failed", "out of ideas", 0.5)


async def test_without_a_runtime_the_step_says_so(almanac: Almanac) -> None:
    almanac.platform.calls.facts["runtime"] = None  # type: ignore[index]
    step = await almanac.do(type="custom", prompt="think")
    assert step["status"] == "failed"
    assert "this installation starts none" in step["error"]


async def test_a_session_is_stopped_when_its_schedule_is_deleted(almanac: Almanac) -> None:
    almanac.runtime.gate.clear()
    schedule_id = await almanac.make()
    almanac.due(schedule_id)
    async with running_worker(almanac.platform):
        async with asyncio.timeout(20):
            while not almanac.runtime.asked:
                await asyncio.sleep(0.01)
        await almanac.call(almanac.ada, "delete", schedule_id=schedule_id)
        await settled(almanac.platform)
    assert len(almanac.runtime.stopped) == 1
    assert almanac.executions() == []


async def test_the_budget_of_a_run_is_handed_on_and_ends_it(almanac: Almanac) -> None:
    actions = [{"type": "custom", "prompt": word} for word in ("one", "two", "three")]
    schedule_id = await almanac.make(schedule_actions=actions, max_budget_per_run=0.5)
    execution = await almanac.happen(schedule_id)
    assert [budget for *_, budget in almanac.runtime.asked] == [0.5, 0.25]
    assert [step["status"] for step in execution.steps] == ["completed", "completed", "failed"]
    assert "budget" in execution.steps[2]["error"]
    assert (execution.status, execution.cost_micros) == ("failed", 500_000)


async def test_memory_maintenance_removes_what_is_over(almanac: Almanac) -> None:
    await almanac.fleet.call(almanac.ada, "save_memory", key="a", content="a heron", ttl_days=1)
    almanac.change(lambda tx: tx.run(sa.update(memories).values(expires_ms=1)))
    assert (await almanac.do(type="memory_maintenance"))["status"] == "completed"
    assert almanac.rows(sa.select(memories.c.seq)) == []


async def test_the_improvement_loop_looks_first_and_then_gives_out_work_on_what_is_worst(almanac: Almanac) -> None:
    almanac.deeds.health = {"todo_count": 9, "test_failure_count": 2, "hack_count": 0, "large_file_count": 1}
    step = await almanac.do(type="improvement_loop", focusArea="the parser")
    assert step["status"] == "completed"
    tasks = [given["description"] for given in almanac.deeds.of("create_work_task")]
    assert tasks == [
        "Make the 2 failing tests pass. Focus on the parser.",
        "Split the 1 files that have grown too large. Focus on the parser.",
    ]
    assert almanac.deeds.done[0][0] == "collect_health"


@pytest.mark.parametrize(("trust", "tasks"), [(0, 0), (1, 1), (2, 2), (3, 3), (4, 3), (None, 2)])
async def test_how_many_improvements_are_begun_depends_on_trust(
    almanac: Almanac, trust: int | None, tasks: int
) -> None:
    almanac.deeds.health = {"todo_count": 1, "test_failure_count": 1, "fixme_count": 1, "hack_count": 1}
    if trust is not None:
        await almanac.fleet.call(almanac.owner, "update_agent", agent="default", trust=trust)
    step = await almanac.do(type="improvement_loop")
    assert len(almanac.deeds.of("create_work_task")) == tasks
    assert step["status"] == ("completed" if tasks else "failed")


async def test_without_a_word_of_the_owner_the_agents_reputation_decides(almanac: Almanac) -> None:
    agent = almanac.fleet.actor()
    for tool in ("create_agent", "grant_tool", "create_project", "update_agent"):
        with pytest.raises(RookeryError):
            await almanac.fleet.call(agent, tool)
    almanac.deeds.health = {"todo_count": 1, "test_failure_count": 1, "fixme_count": 1}
    await almanac.do(type="improvement_loop")
    (given,) = almanac.deeds.of("create_work_task")
    assert given["source_id"].startswith("improvement:")


async def test_a_reputation_that_cannot_be_asked_for_now_is_not_taken_for_a_good_one() -> None:
    async def busy(tool: str, given: dict[str, Any]) -> dict[str, Any]:
        assert tool == "check_reputation"
        raise RateLimited("too many calls", hint="wait")

    nobody: Any = SimpleNamespace(trust=None)
    with pytest.raises(RateLimited):
        await improve(busy, nobody, Action.model_validate({"type": "improvement_loop"}), "key", health=False)


async def test_without_a_look_at_the_codebase_there_is_one_task_in_general_terms(almanac: Almanac) -> None:
    del almanac.platform.registry._tools["collect_health"]
    await almanac.do(type="improvement_loop", maxImprovementTasks=5, focus_area="speed")
    (given,) = almanac.deeds.of("create_work_task")
    assert "weakest spot" in given["description"]
    assert "speed" in given["description"]
