"""What else starts agents comes the same way: messages, workflows, schedules, work tasks, and agents elsewhere."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from rookery.db.clock import now_ms
from rookery.domains.a2a import inbound
from rookery.domains.a2a.inbound import Incoming
from rookery.domains.a2a.store import Tasks
from rookery.domains.schedules.planning import plan
from rookery.domains.schedules.tables import schedules
from rookery.sessions import asking
from rookery.sessions.manager import AgentSessions
from tests.domains.work.workshop import make_repository
from tests.domains.workflows.workshop import chain, node
from tests.jobs.working import running_worker, settled
from tests.platform_fixtures import Fleet
from tests.sessions.stage import Stage, use_sessions

pytestmark = pytest.mark.anyio


class House(Stage):
    """A fleet as `runtime = "scripted"` makes it."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self.platform = fleet.platform
        self.database = fleet.platform.database
        self.sessions: AgentSessions = fleet.platform.calls.facts["sessions"]

    async def do(self) -> None:
        """Everything that is due; no agent is left afterwards."""
        async with running_worker(self.platform):
            await settled(self.platform, ahead_ms=2_000)
        assert (self.sessions.turns, len(self.sessions.warm)) == ({}, 0)

    def only(self) -> Any:
        """The one session that there was. What it was for is done, so it has ended."""
        (row,) = self.fleet_rows()
        assert (row.state, row.runtime, row.error) == ("ended", "scripted", None)
        names = self.names(row.id)
        assert (names[0], names[-1], names.count("done")) == ("turn_input", "done", 1)
        (run,) = [each for each in self.runs() if each.session == row.id]
        assert (run.kind, run.key, run.status) == (row.origin, row.id, "succeeded")
        return row

    def fleet_rows(self) -> list[Any]:
        return list(self.change(lambda rows: rows.page(10)))


@pytest.fixture
def house(prepared_database_url: str, make_fleet: Callable[..., Fleet]) -> House:
    return House(make_fleet(prepared_database_url, extra={}, runtime="scripted"))


async def test_the_runtime_of_the_settings_is_what_starts_agents(house: House) -> None:
    facts = house.platform.calls.facts
    assert facts["runtime"] is facts["sessions"]
    assert {"scripted", "claude", "claude-cli", "codex", "gemini", "opencode"} == set(house.sessions.runtimes)


async def test_without_a_runtime_none_is_there(prepared_database_url: str, make_fleet: Callable[..., Fleet]) -> None:
    facts = make_fleet(prepared_database_url, extra={}).platform.calls.facts
    assert (facts["runtime"], facts["sessions"].runtimes, facts["sessions"].default) == (None, {}, None)


async def test_a_message_is_answered_by_a_session_that_knows_the_thread(house: House) -> None:
    for name in ("ada", "bob"):
        await house.call("create_agent", name=name)
    ada = house.fleet.actor(agent="ada")
    async with running_worker(house.platform):
        sent = await asyncio.wait_for(
            house.fleet.call(ada, "send_message", to_agent="bob", message="!say green tea\n!call ping"), 60
        )
    assert sent.reply.startswith("green tea\nping: ")
    row = house.only()
    assert (row.origin, row.agent) == ("message", house.fleet.actor(agent="bob").agent)
    async with running_worker(house.platform):
        again = await asyncio.wait_for(
            house.fleet.call(ada, "send_message", to_agent="bob", message="and milk?", thread=sent.thread), 60
        )
    assert "green tea" in again.reply
    assert len(house.fleet_rows()) == 2


async def test_a_node_of_a_workflow_is_done_by_a_session(house: House) -> None:
    graph = chain(node("a", "agent_session", prompt="!say done by {{who}}", maxTurns=3))
    made = await house.call("manage_workflow", action="create", name="tea", agent_id="default", **graph)
    workflow = made.workflows[0]["id"]
    await house.call("manage_workflow", action="activate", workflow_id=workflow)
    await house.call("manage_workflow", action="run", workflow_id=workflow, input={"who": "ada"})
    await house.do()
    row = house.only()
    ended = house.events(row.id, "done")[0]
    assert (row.origin, ended.data["output"]) == ("workflow", "done by ada")


async def test_a_schedule_lets_a_session_do_its_action(house: House) -> None:
    made = await house.call(
        "manage_schedule",
        action="create",
        name="nightly",
        cron_expression="0 0 29 2 *",
        approval_policy="auto",
        agent_id="default",
        schedule_actions=[{"type": "custom", "prompt": "!say looked around\n!call ping"}],
    )
    (due,) = house.read(lambda tx: tx.all(sa.select(schedules).where(schedules.c.id == made.schedules[0]["id"])))
    house.write(lambda tx: plan(tx, due, now_ms(tx)))
    await house.do()
    row = house.only()
    assert (row.origin, row.binding["unattended"]) == ("schedule", True)
    assert house.events(row.id, "text_delta")[0].data["text"] == "looked around"


async def test_work_is_done_by_a_session_in_its_working_tree(house: House, tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "code" / "shop")
    await house.call("create_project", slug="shop", path=str(repository))
    worker = house.fleet.actor(project="shop")
    await house.fleet.call(worker, "create_work_task", description="!write a.txt tea\n!commit add tea")
    await house.do()
    row = house.only()
    assert (row.origin, Path(row.cwd).name != "shop", row.cwd.startswith(str(tmp_path))) == ("work", True, True)


async def test_a_task_of_an_agent_elsewhere_is_done_by_a_session(house: House) -> None:
    agent, calls = house.fleet.actor(session="ses-1"), house.platform.calls
    task = house.write(lambda tx: inbound.submit(tx, calls, agent, Incoming(text="!say tea is ready")))
    await house.do()
    assert house.only().origin == "a2a"
    done = house.read(lambda tx: Tasks(tx, "default").of(task.id))
    assert (done.state, done.answer) == ("completed", "tea is ready")


async def test_a_person_who_joins_in_while_a_session_works_for_a_job_has_a_turn_after_it(house: House) -> None:
    agent, calls = house.fleet.actor(session="ses-1"), house.platform.calls
    await house.call("update_agent", agent="default", mode="ask")
    house.write(lambda tx: inbound.submit(tx, calls, agent, Incoming(text="!use Bash {}")))
    async with house.at_work():
        (ask,) = await house.asked()
        (row,) = house.fleet_rows()
        message = house.send(row.id, "!say more tea")
        house.answer(ask.id, "approve")
        assert (await house.done(row.id, message)).data["output"] == "more tea"
    assert [each.data["output"] for each in house.events(row.id, "done")] == ["Bash was used", "more tea"]


async def test_work_that_a_stopping_server_interrupts_is_begun_again_by_the_next_one(house: House) -> None:
    agent, calls = house.fleet.actor(session="ses-1"), house.platform.calls
    house.write(lambda tx: inbound.submit(tx, calls, agent, Incoming(text='!use Bash {"command": "make"}')))
    await house.call("update_agent", agent="default", mode="ask")
    async with house.at_work():
        (ask,) = await house.asked()
    (row,) = house.fleet_rows()
    assert [each.data["error"] for each in house.events(row.id, "done")] == ["the server was stopped"]
    house.answer(ask.id, "approve")
    use_sessions(house.platform)
    await house.do()
    assert [each.data["reason"] for each in house.events(row.id, "done")] == ["stopped", "completed"]
    assert [(run.kind, run.status) for run in house.runs()] == [("a2a", "cancelled"), ("a2a", "succeeded")]


async def test_a_session_that_nobody_attends_is_refused_what_nobody_decides_in_time(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert asking.UNATTENDED_MS == 600_000
    monkeypatch.setattr(asking, "UNATTENDED_MS", 200)
    agent, calls = house.fleet.actor(session="ses-1"), house.platform.calls
    house.write(lambda tx: inbound.submit(tx, calls, agent, Incoming(text="!use Bash {}")))
    await house.call("update_agent", agent="default", mode="ask")
    await house.do()
    row = house.only()
    assert house.events(row.id, "done")[0].data["output"] == "Bash was refused: nobody decided in time"
    assert [each.data["how"] for each in house.events(row.id, "interaction_resolved")] == ["expired"]
    assert house.asks() == []
