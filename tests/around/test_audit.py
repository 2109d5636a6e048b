"""What is recorded of a call, whatever becomes of it, and what never is."""

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa

from rookery.core.errors import RookeryError
from tests.around import workload
from tests.db import sample
from tests.platform_fixtures import Fleet

MARKER = "mauve-heron-7731"


async def outcome_of(fleet: Fleet, tool: str, **arguments: Any) -> list[tuple[str, str | None, str | None]]:
    """What the log says of a call: outcome, code and layer of each of its records."""
    with contextlib.suppress(RookeryError):
        await fleet.platform.calls.call(fleet.actor(), tool, arguments, request_id="the call")
    rows = sample.audit_rows(fleet.platform.database, "request = 'the call'")
    assert {row.tool for row in rows} == {tool}
    return [(row.outcome, row.code, row.layer) for row in rows]


@pytest.mark.parametrize(
    ("tool", "arguments", "wanted"),
    [
        ("ping", {}, [("allowed", None, None)]),
        ("count_pairs", {}, [("allowed", None, None)]),
        ("add_pair", {"key": "a"}, [("done", None, None)]),
        ("reach_out", {"key": "a"}, [("intent", None, None), ("done", None, None)]),
        ("create_agent", {"name": "a"}, [("refused", "PERMISSION_DENIED", "principal")]),
        ("add_pair", {"kee": "a"}, [("invalid", "INVALID_PARAMS", None)]),
        ("add_and_fail", {"key": "a"}, [("failed", "CONFLICT", None)]),
        ("add_and_break", {"key": "a"}, [("failed", "INTERNAL_ERROR", None)]),
        ("add_again", {"key": "a"}, [("failed", "INTERNAL_ERROR", None)]),
        ("look_and_break", {"key": "a"}, [("allowed", None, None), ("failed", "INTERNAL_ERROR", None)]),
        ("reach_and_break", {"key": "a"}, [("intent", None, None), ("failed", "INTERNAL_ERROR", None)]),
        ("add_forever", {"key": "a"}, [("timeout", "TIMEOUT", None)]),
        ("look_forever", {}, [("allowed", None, None), ("timeout", "TIMEOUT", None)]),
        ("reach_forever", {"key": "a"}, [("intent", None, None), ("timeout", "TIMEOUT", None)]),
    ],
)
async def test_a_call_is_recorded_with_its_outcome(
    working: Fleet, tool: str, arguments: dict[str, str], wanted: list[tuple[str, str | None, str | None]]
) -> None:
    assert await outcome_of(working, tool, **arguments) == wanted
    assert sample.keys(working.platform.database) == (["a"] if tool == "add_pair" and "key" in arguments else [])


async def test_a_call_above_the_limit_is_recorded(working: Fleet) -> None:
    actor = working.actor()
    for _ in range(2):
        await working.call(actor, "look_twice_a_minute")
    [(_, code, layer)] = await outcome_of(working, "look_twice_a_minute")
    assert (code, layer) == ("RATE_LIMITED", "rate")


@pytest.mark.parametrize(
    ("tool", "arguments"), [("add_forever", {"key": "a"}), ("look_forever", {}), ("reach_forever", {"key": "a"})]
)
async def test_a_cancelled_call_is_recorded(working: Fleet, tool: str, arguments: dict[str, str]) -> None:
    calls = working.platform.calls
    workload.ENTERED.clear()
    call = asyncio.create_task(calls.call(working.actor(), tool, arguments, request_id="the call"))
    assert await asyncio.to_thread(workload.ENTERED.wait, 10)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    last = "request = 'the call' AND outcome = 'cancelled'"
    await asyncio.to_thread(sample.wait_for, lambda: bool(sample.audit_rows(working.platform.database, last)))
    [row] = sample.audit_rows(working.platform.database, last)
    assert (row.tool, row.code) == (tool, "REQUEST_CANCELLED")
    assert sample.keys(working.platform.database) == []


async def test_a_call_inside_a_call_is_recorded(working: Fleet) -> None:
    await working.platform.calls.call(working.actor(), "add_pair_inside", {"key": "a"}, request_id="outer")
    rows = sample.audit_rows(working.platform.database, "request = 'outer'")
    assert [(row.tool, row.outcome) for row in rows] == [("add_pair", "done"), ("add_pair_inside", "done")]


async def test_a_read_inside_a_read_is_recorded(working: Fleet) -> None:
    await working.platform.calls.call(working.actor(), "count_pairs_inside", {}, request_id="outer")
    rows = sample.audit_rows(working.platform.database, "request = 'outer'")
    assert sorted((row.tool, row.outcome) for row in rows) == [
        ("count_pairs", "allowed"),
        ("count_pairs_inside", "allowed"),
    ]


async def test_a_record_says_who_called(working: Fleet) -> None:
    agent = await working.call(working.owner, "create_agent", name="ada")
    actor = working.actor(agent="ada", session="session 1", depth=2)
    await working.platform.calls.call(actor, "ping", {}, request_id="r1", trace="t1")
    [row] = sample.audit_rows(working.platform.database, "request = 'r1'")
    assert (row.kind, row.agent, row.session, row.trace) == ("agent", agent.id, "session 1", "t1")
    assert (row.tenant, row.project, row.effect) == (actor.tenant, actor.project, "read")
    assert row.duration_us >= 0
    assert len(row.input_digest) == 64


async def test_nothing_that_was_said_is_recorded(working: Fleet) -> None:
    actor = working.actor()
    for tool in workload.TOOLS:
        arguments = {"key": MARKER} if "key" in tool.input.model_fields else {MARKER: MARKER}
        await asyncio.gather(working.platform.calls.call(actor, tool.name, arguments), return_exceptions=True)
    rows = sample.audit_rows(working.platform.database)
    assert {row.tool for row in rows} >= {tool.name for tool in workload.TOOLS}
    assert [row for row in rows if MARKER in repr(tuple(row))] == []


async def test_a_token_is_nowhere_in_the_database(working: Fleet) -> None:
    await working.call(working.owner, "create_agent", name="ada")
    made = await working.call(working.owner, "create_token", name="laptop", agent="ada")
    secret = made.secret
    assert len(secret) > 20

    def dump(tx: Any) -> str:
        inspector = sa.inspect(tx.connection)
        return "".join(repr(tx.all(sa.text(f'SELECT * FROM "{name}"'))) for name in inspector.get_table_names())

    text = working.platform.database.direct(dump)
    assert "laptop" in text
    assert secret not in text


async def test_the_same_arguments_have_the_same_digest(working: Fleet) -> None:
    actor = working.actor()
    for key in ("a", "b", "a"):
        await working.call(actor, "reach_out", key=key)
    digests = [row.input_digest for row in sample.audit_rows(working.platform.database, "outcome = 'intent'")]
    assert digests[0] == digests[2] != digests[1]


async def test_events_follow_the_commit_and_nothing_else(make_working: Callable[..., Fleet], database_url: str) -> None:
    fleet = make_working(database_url)
    seen: list[tuple[str, bool]] = []
    database = fleet.platform.database
    fleet.platform.events.subscribe(
        lambda event: seen.append((event.payload["key"], event.payload["key"] in sample.keys(database)))
    )
    actor = fleet.actor()
    await fleet.call(actor, "add_pair", key="a")
    for tool in ("add_and_fail", "add_and_break", "add_forever"):
        with pytest.raises(RookeryError):
            await fleet.call(actor, tool, key="b")
    assert seen == [("a", True)]
