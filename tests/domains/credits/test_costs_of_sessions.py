"""What sessions have cost, whoever started them, is what the tool tells; and their turns bring an agent to its end."""

import asyncio
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
import sqlalchemy as sa

from rookery.core.actor import Actor
from rookery.core.errors import ServiceUnavailable
from rookery.ledger.store import wallet_of
from rookery.lifecycle.run_tables import agent_runs
from rookery.lifecycle.sessions import Runtime
from tests.domains.messages.post_office import LIMIT_S, PostOffice, until
from tests.domains.messages.test_interrupted_delivery import begun, worker
from tests.domains.work.workshop import Workshop
from tests.domains.workflows.workshop import chain, node
from tests.jobs.working import running_worker, settled
from tests.ledger.books import Books
from tests.platform_fixtures import Fleet
from tests.sessions.stage import use_sessions

SPENDING = "!spend 0.5\n!say here you are"


@pytest.fixture
async def office(database_url: str, make_fleet: Callable[..., Fleet]) -> PostOffice:
    made = PostOffice(make_fleet(database_url, extra={}))
    await made.open()
    return made


async def costs(fleet: Fleet, actor: Actor, by: str, **wanted: Any) -> dict[str, float]:
    told = await fleet.call(actor, "get_costs", by=by, **wanted)
    assert told.total["cost_usd"] == sum(row["cost_usd"] for row in told.costs)
    return {row.get("name", row["id"]): row["cost_usd"] for row in told.costs}


def runs(fleet: Fleet) -> list[sa.Row[Any]]:
    order = (agent_runs.c.created_ms, agent_runs.c.id)
    return list(fleet.platform.database.direct(lambda tx: tx.all(sa.select(agent_runs).order_by(*order))))


async def test_the_answer_to_a_message_costs_its_receiver(office: PostOffice) -> None:
    fleet = office.fleet
    await office.send("bob", SPENDING)
    with pytest.raises(ServiceUnavailable):
        await office.send("bob", "!spend 0.25\n!fail no")
    await office.send("carol", "!spend 1\n!say x")
    assert await costs(fleet, office.agent("bob"), "agent") == {"bob": 0.75}
    assert await costs(fleet, office.agent("ada"), "agent") == {}
    assert await costs(fleet, fleet.owner, "agent") == {"carol": 1.0, "bob": 0.75}
    by_run = await costs(fleet, fleet.owner, "run")
    assert by_run == {run.id: run.cost_micros / 1_000_000 for run in runs(fleet)}
    assert [run.kind for run in runs(fleet)] == ["message"] * 3


async def test_what_is_done_for_an_issue_is_counted_there(office: PostOffice) -> None:
    fleet = office.fleet
    issue = await fleet.issue()
    identifier = (await fleet.call(fleet.owner, "get_issue", issue_id=issue)).identifier
    await office.send("bob", SPENDING, office.agent("ada", issue=issue))
    await office.send("bob", "!spend 1\n!say for nobody")
    assert await costs(fleet, fleet.owner, "issue", id=identifier) == {identifier: 0.5}
    assert await costs(fleet, office.agent("bob"), "issue", id=identifier) == {identifier: 0.5}


async def test_who_answers_has_a_run_under_way(office: PostOffice) -> None:
    asking = asyncio.create_task(office.send("bob", "!wait 1\n!say done"))
    await until(lambda: any(run.session for run in runs(office.fleet)), "the session began")
    told = await office.fleet.call(office.agent("ada"), "list_agents")
    assert {each["name"]: each["status"] for each in told.agents}["bob"] == "busy"
    await asking
    told = await office.fleet.call(office.agent("ada"), "list_agents")
    assert {each["name"]: each["status"] for each in told.agents}["bob"] == "idle"


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_work_schedules_and_workflows_are_runs_too(
    database_url: str, make_fleet: Callable[..., Fleet], tmp_path: Path
) -> None:
    workshop = Workshop(make_fleet(database_url, extra={}), tmp_path)
    fleet = workshop.fleet
    await workshop.open()
    await workshop.work("!write a.txt b", "!spend 0.5", "!commit a")
    agent = workshop.agent()
    await fleet.call(
        fleet.owner,
        "manage_schedule",
        action="create",
        name="look",
        interval_minutes=5,
        schedule_actions=[{"type": "custom", "prompt": "!spend 0.25"}],
    )
    graph = chain(node("a", "agent_session", prompt="!spend 1", agentId=agent.agent))
    flow = await fleet.call(fleet.owner, "manage_workflow", action="create", name="flow", **graph)
    flow_id = flow.workflows[0]["id"]
    await fleet.call(fleet.owner, "manage_workflow", action="activate", workflow_id=flow_id)
    await fleet.call(fleet.owner, "manage_workflow", action="run", workflow_id=flow_id, input={})
    fleet.platform.database.direct(
        lambda tx: tx.run(sa.text("UPDATE jobs SET due_ms = 0 WHERE kind LIKE 'schedules.%' AND state = 'waiting'")),
        write=True,
    )
    async with running_worker(fleet.platform):
        await settled(fleet.platform)
    found = {run.kind: (run.status, run.cost_micros) for run in runs(fleet)}
    assert found == {
        "work": ("succeeded", 500_000), "schedule": ("succeeded", 250_000), "workflow": ("succeeded", 1_000_000)
    }  # fmt: skip
    told = await fleet.call(fleet.owner, "get_costs", by="agent")
    assert told.total["cost_usd"] == 1.75


async def test_a_run_whose_worker_was_killed_is_ended_by_who_takes_over(office: PostOffice, tmp_path: Path) -> None:
    office.use(cast(Runtime, object()))
    bob, books = wallet_of(office.id_of("bob")), Books(office.platform.database)
    books.do(lambda ledger: ledger.grant(bob, 10, "start"))
    asking = asyncio.create_task(office.post("bob", "tea?"))
    async with worker(office, tmp_path) as first:
        await until(lambda: begun(tmp_path), "the session began")
        os.kill(first.pid, signal.SIGKILL)
    assert [run.status for run in runs(office.fleet)] == ["running"]
    assert books.numbers(bob) == (9, 1, 10, 0)
    (tmp_path / "gate").touch()
    async with worker(office, tmp_path):
        await asyncio.wait_for(asking, LIMIT_S)
        await until(lambda: [run.status for run in runs(office.fleet)] == ["stalled", "succeeded"], "both have ended")
    assert books.numbers(bob) == (9, 0, 10, 1)
    books.check()


async def test_a_session_can_spend_the_last_credits_and_the_agent_is_stopped_then(
    database_url: str, make_fleet: Callable[..., Fleet]
) -> None:
    fleet = make_fleet(database_url, extra={}, credits_hard_stop=True)
    office = PostOffice(fleet)
    use_sessions(fleet.platform)
    await office.open()
    bob, books = wallet_of(office.id_of("bob")), Books(fleet.platform.database)
    books.do(lambda ledger: ledger.grant(wallet_of(office.id_of("ada")), 100, "start"))
    books.do(lambda ledger: ledger.grant(bob, 1, "start"))
    sent = await office.send("bob", '!call save_memory {"key": "k", "content": "c"}\n!say a\n!say b')
    assert "refused" not in sent.reply
    assert books.numbers(bob) == (0, 0, 1, 1)
    assert office.agent("bob").exhausted == {"credits"}
    sent = await office.send("bob", '!call save_memory {"key": "k", "content": "d"}')
    assert "PERMISSION_DENIED: the credits are used up" in sent.reply
    books.check()
