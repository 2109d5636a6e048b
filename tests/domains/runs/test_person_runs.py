"""`show_run` and `read_run_trace`: one run as people see it."""

from dataclasses import replace
from typing import Any

import pytest
import sqlalchemy as sa

from rookery.core.actor import Actor
from rookery.core.errors import InvalidParams, NotFound, PermissionDenied
from rookery.core.tool import Tool
from rookery.domains.runs import person_runs
from rookery.domains.runs.person_runs import read_run_trace, show_run
from rookery.lifecycle.issue_tables import issues
from rookery.lifecycle.run_store import Usage
from rookery.sessions.store import NewSession, SessionRows
from rookery.sessions.tables import session_messages
from tests.domains.runs.conftest import Ward
from tests.domains.runs.told import START_MS, called, read, told


@pytest.mark.parametrize("tool", [show_run, read_run_trace])
async def test_agents_and_other_tenants_see_no_run(ward: Ward, stranger: Actor, tool: Tool) -> None:
    run = ward.start()
    with pytest.raises(PermissionDenied):
        await read(ward.fleet, tool, ward.actor(), run_id=run)
    with pytest.raises(NotFound, match=f"there is no run {run}"):
        await read(ward.fleet, tool, stranger, run_id=run)
    with pytest.raises(NotFound):
        await read(ward.fleet, tool, run_id="run-0")


async def test_a_trace_of_nothing_is_empty(ward: Ward) -> None:
    trace = await read(ward.fleet, read_run_trace, run_id=ward.start())
    assert (trace.steps, trace.total, trace.first_ms, trace.next_offset) == ([], 0, None, None)


@pytest.mark.parametrize("wrong", [{"limit": 0}, {"limit": 1001}, {"offset": -1}, {"order": "shuffled"}])
async def test_wrong_pages_are_refused(ward: Ward, wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidParams):
        await read(ward.fleet, read_run_trace, run_id=ward.start(), **wrong)


async def test_a_run_has_the_names_of_what_it_belongs_to(ward: Ward) -> None:
    agent = ward.fleet.actor(agent="default").agent
    assert agent is not None
    run = ward.start(agent=agent, kind="work", phase="build")
    ward.rows.change(lambda runs: runs.spend(run, Usage(cost_micros=1500, input_tokens=7, output_tokens=3, turns=2)))
    view = await read(ward.fleet, show_run, run_id=run)
    assert (view.run.issue, view.run.agent_name, view.run.project) == ("SYM-001", "default", "default")
    assert (view.run.kind, view.run.turns, view.run.cost_micros) == ("work", 2, 1500)
    assert (view.session, view.turns, view.run.session) == (None, [], None)


async def test_an_issue_that_was_moved_where_the_caller_has_no_role_names_no_run(ward: Ward) -> None:
    run, owner = ward.start(), ward.fleet.owner
    secret = await ward.fleet.call(owner, "create_project", slug="secret")
    moved = sa.update(issues).where(issues.c.id == ward.issue).values(project_id=secret.id, title="secret plan")
    ward.fleet.platform.database.direct(lambda tx: tx.run(moved), write=True)
    outsider = replace(owner, closed=frozenset({secret.id}))
    for reader, known in ((owner, ("SYM-001", "secret plan")), (outsider, (None, None))):
        seen = (await read(ward.fleet, show_run, reader, run_id=run)).run
        assert (seen.issue, seen.issue_title) == known


async def test_a_run_of_a_session_shows_what_the_other_turns_have_cost(ward: Ward) -> None:
    session = _session(ward)
    first, second = (ward.start(session=session, kind="session", key=session) for _ in range(2))
    for run in (first, second):
        _sent(ward, session, run)
    ward.rows.change(lambda runs: runs.spend(first, Usage(cost_micros=10)))
    view = await read(ward.fleet, show_run, run_id=second)
    assert view.session.id == view.run.session == session
    assert [(turn.id, turn.cost_micros) for turn in view.turns] == [(first, 10), (second, 0)]


async def test_a_trace_has_steps_in_both_orders_and_in_pages(ward: Ward) -> None:
    run = ward.start()
    ward.rows.append(
        run, *called("c1", "Bash", 0, 100), told("text_delta", 200, text="so"), *called("c2", "Read", 300, 400)
    )
    oldest = await read(ward.fleet, read_run_trace, run_id=run)
    assert [step["title"] for step in oldest.steps] == ["Bash", "so", "Read"]
    assert (oldest.first_ms, oldest.last_ms, oldest.skipped) == (START_MS, START_MS + 400, 0)
    newest = await read(ward.fleet, read_run_trace, run_id=run, order="newest", limit=1)
    assert ([step["title"] for step in newest.steps], newest.next_offset, newest.total) == (["Read"], 1, 3)
    rest = await read(ward.fleet, read_run_trace, run_id=run, order="newest", offset=1)
    assert ([step["title"] for step in rest.steps], rest.next_offset) == (["so", "Bash"], None)
    assert [(use["tool"], use["calls"]) for use in rest.tools] == [("Bash", 1), ("Read", 1)]


async def test_a_call_whose_result_is_long_keeps_its_names(ward: Ward) -> None:
    run = ward.start()
    start, end, _ = called("c1", "Bash", 0, 100)
    result = told("tool_result", 50, call_id="c1", tool="Bash", text="wörd " * 40_000, is_error=True)
    ward.rows.append(run, start, end, result, told("text_delta", 60, text="x" * 9000))
    trace = await read(ward.fleet, read_run_trace, run_id=run)
    assert [(step["kind"], step["outcome"]) for step in trace.steps] == [("tool", "failed"), ("text", "")]
    assert trace.steps[1]["title"] == "x" * 200 + "…"


async def test_tools_at_work_are_named_wherever_the_page_is(ward: Ward) -> None:
    run = ward.start()
    ward.rows.append(run, *called("c1", "Bash", 0, 100)[:2], *called("c2", "Read", 300, 400))
    trace = await read(ward.fleet, read_run_trace, run_id=run, order="newest", limit=1)
    assert [step["call_id"] for step in trace.working] == ["c1"]
    ward.rows.change(lambda runs: runs.move(run, "failed", error="it died"))
    assert (await read(ward.fleet, read_run_trace, run_id=run)).working == []


async def test_of_a_very_long_run_the_last_events_are_drawn(ward: Ward, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(person_runs, "MOST_EVENTS", 3)
    run = ward.start()
    ward.rows.append(run, *called("c1", "Bash", 0, 100), *called("c2", "Read", 300, 400))
    trace = await read(ward.fleet, read_run_trace, run_id=run)
    assert ([step["title"] for step in trace.steps], trace.skipped) == (["Read"], 3)


def _session(ward: Ward) -> str:
    new = NewSession(actor=ward.fleet.actor(agent="default"), runtime="scripted", mode="act", opened_by="me")
    return ward.fleet.platform.database.direct(lambda tx: SessionRows(tx, "default").create(new), write=True).id


def _sent(ward: Ward, session: str, run: str) -> None:
    row = {"tenant": "default", "id": f"msg-{run}", "session_id": session, "text": "go", "sent_by": "me"}
    row |= {"state": "done", "run_id": run, "created_ms": START_MS}
    ward.fleet.platform.database.direct(lambda tx: tx.run(sa.insert(session_messages).values(**row)), write=True)
