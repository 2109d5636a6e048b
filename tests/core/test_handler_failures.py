"""A handler's bug ends its call and nothing else."""

import asyncio
from typing import get_args

import pytest

from rookery.core.errors import InternalError, NotFound, RookeryError, SerializationError
from rookery.identity.store import IdentityStore
from tests.core.probe_tools import How
from tests.platform_fixtures import Fleet

WAYS = get_args(How)
SOON_S = 10


async def failure(fleet: Fleet, tool: str, how: str) -> RookeryError:
    with pytest.raises(RookeryError) as caught:
        await asyncio.wait_for(fleet.call(fleet.actor(), tool, how=how), SOON_S)
    return caught.value


@pytest.mark.parametrize("tool", ["fail_inline", "fail_reading", "fail_writing", "fail_outside"])
async def test_every_kind_of_exception_becomes_an_error_and_the_next_calls_work(probe_fleet: Fleet, tool: str) -> None:
    for how in WAYS:
        error = await failure(probe_fleet, tool, how)
        assert type(error) in (InternalError, SerializationError), how
        assert "secret" not in str(error.as_dict())
    owner = probe_fleet.owner
    assert (await asyncio.wait_for(probe_fleet.call(owner, "ping"), SOON_S)).status == "pong"
    made = await asyncio.wait_for(probe_fleet.call(owner, "create_agent", name="afterwards"), SOON_S)
    listed = await asyncio.wait_for(probe_fleet.call(owner, "list_agent_settings"), SOON_S)
    assert made.id in {agent.id for agent in listed.agents}


async def test_a_write_that_fails_leaves_nothing_behind(probe_fleet: Fleet) -> None:
    for how in WAYS:
        await failure(probe_fleet, "fail_writing", how)

    def look(tx: object) -> None:
        with pytest.raises(NotFound):
            IdentityStore(tx, "default").agent("half-done")  # pyright: ignore[reportArgumentType]

    probe_fleet.platform.database.direct(look)


async def test_many_failures_at_once_do_not_wear_the_server_out(probe_fleet: Fleet) -> None:
    agent = probe_fleet.actor()
    tools = ["fail_reading", "fail_writing", "fail_outside"]
    calls = [probe_fleet.call(agent, tool, how=how) for tool in tools for how in WAYS for _ in range(3)]
    ends = await asyncio.wait_for(asyncio.gather(*calls, return_exceptions=True), SOON_S)
    assert all(isinstance(end, RookeryError) for end in ends)
    assert (await asyncio.wait_for(probe_fleet.call(probe_fleet.owner, "list_projects"), SOON_S)).projects


async def test_a_failure_is_recorded_as_one(probe_fleet: Fleet) -> None:
    await failure(probe_fleet, "fail_writing", "value_error")
    found = await probe_fleet.platform.calls.call(probe_fleet.owner, "list_audit_records", {"tool": "fail_writing"})
    assert [record["code"] for record in found.structured["records"]] == ["INTERNAL_ERROR"]
    assert found.structured["records"][0]["outcome"] == "failed"


async def test_the_log_gets_the_cause_and_the_caller_the_request_that_finds_it(
    probe_fleet: Fleet, caplog: pytest.LogCaptureFixture
) -> None:
    error = await failure(probe_fleet, "fail_reading", "value_error")
    assert "ValueError: secret" in caplog.text
    requests = {getattr(record, "request", "") for record in caplog.records}
    assert any(request and request in (error.hint or "") for request in requests)
