"""list_agents: everybody of the tenant, who is at work, and which of them is the caller."""

import asyncio

import pytest
import sqlalchemy as sa

from rookery.core.errors import PermissionDenied
from rookery.lifecycle.run_tables import agent_runs
from rookery.lifecycle.sessions import Outcome
from tests.domains.messages.post_office import Gated, PostOffice
from tests.jobs.working import running_worker


async def statuses(office: PostOffice) -> dict[str, str]:
    listed = await office.fleet.call(office.agent(), "list_agents")
    return {each["name"]: each["status"] for each in listed.agents}


async def test_sessions_of_agents_may_be_kept_from_it(office: PostOffice) -> None:
    await office.fleet.call(office.fleet.owner, "update_agent", agent="ada", restrict_networking=True)
    with pytest.raises(PermissionDenied) as caught:
        await office.fleet.call(office.agent(source="agent"), "list_agents")
    assert caught.value.layer == "source"


async def test_everybody_is_listed_and_the_caller_is_marked(office: PostOffice) -> None:
    await office.fleet.call(office.fleet.owner, "update_agent", agent="bob", trust=3)
    listed = await office.fleet.call(office.agent(), "list_agents")
    assert [(each["name"], each["trust"], each["self"]) for each in listed.agents] == [
        ("ada", None, True),
        ("bob", "high", False),
        ("carol", None, False),
        ("default", None, False),
    ]
    lines = listed.as_text().splitlines()
    assert lines[0] == f"ada ({office.id_of('ada')}): idle, you"
    assert lines[1] == f"bob ({office.id_of('bob')}): idle, trust high"


async def test_other_tenants_are_not_listed_and_a_person_is_nobodys_self(office: PostOffice) -> None:
    listed = await office.fleet.call(office.stranger, "list_agents")
    assert [each["name"] for each in listed.agents] == ["default"]
    mine = await office.fleet.call(office.fleet.owner, "list_agents")
    assert [each["self"] for each in mine.agents] == [False] * 4


async def test_whoever_answers_a_message_is_busy_until_it_is_answered(office: PostOffice) -> None:
    slow = Gated(Outcome("done", output="hi"))
    office.use(slow)
    async with running_worker(office.platform):
        asking = asyncio.create_task(office.post("bob", "tea?"))
        await asyncio.wait_for(slow.started.wait(), 30)
        assert await statuses(office) == {"ada": "idle", "bob": "busy", "carol": "idle", "default": "idle"}
        slow.gate.set()
        await asking
    assert (await statuses(office))["bob"] == "idle"


async def test_whoever_has_a_run_under_way_is_busy(office: PostOffice) -> None:
    zeros = dict.fromkeys(
        ("cost_micros", "input_tokens", "output_tokens", "attempt", "event_count", "created_ms", "updated_ms"), 0
    )
    for number, (agent, status) in enumerate(
        [("carol", "running"), (office.id_of("bob"), "running"), ("ada", "failed")]
    ):
        office.change(
            sa.insert(agent_runs).values(
                id=f"run-{number}", tenant="default", project_id="prj", agent=agent, status=status, **zeros
            )
        )
    assert await statuses(office) == {"ada": "idle", "bob": "busy", "carol": "busy", "default": "idle"}
