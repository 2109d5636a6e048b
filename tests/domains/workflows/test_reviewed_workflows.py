"""What a second reading of workflows found."""

import time
from typing import Any

import pytest
import sqlalchemy as sa

from rookery.core.errors import Conflict, InvalidParams
from rookery.domains.workflows import run_store, store
from rookery.domains.workflows.condition import ConditionError, parse
from rookery.domains.workflows.payload import read_object, refuse_unfit
from rookery.domains.workflows.tables import workflow_node_runs, workflow_runs, workflows
from rookery.domains.workflows.template import MAX_TEMPLATE, TemplateError, paths_of
from tests.domains.workflows.workshop import Workshop, chain, node, statuses

SOON_S = 0.5


def test_a_template_that_opens_and_never_closes_is_refused_at_once() -> None:
    began = time.perf_counter()
    with pytest.raises(TemplateError):
        paths_of("{{" * (MAX_TEMPLATE // 2))
    assert time.perf_counter() - began < SOON_S


def test_a_template_with_one_end_for_many_beginnings_is_refused_at_once() -> None:
    began = time.perf_counter()
    with pytest.raises(TemplateError):
        paths_of("{{ " * (MAX_TEMPLATE // 4) + "}}")
    assert time.perf_counter() - began < SOON_S


def test_a_condition_of_blanks_is_refused_at_once() -> None:
    began = time.perf_counter()
    for _ in range(20):
        with pytest.raises(ConditionError):
            parse("a.includes(" + " " * 980 + "x")
    assert time.perf_counter() - began < SOON_S


def test_blanks_around_what_is_included_mean_nothing() -> None:
    assert parse("a.includes(  'x' )").holds({"a": "axb"})
    assert not parse("a.includes(  ' x ' )").holds({"a": "axb"})


def test_a_number_of_thousands_of_digits_is_no_input() -> None:
    with pytest.raises(InvalidParams):
        refuse_unfit({"a": 10**5000}, "input", 64 * 1024)
    assert read_object(b'{"a": ' + b"9" * 4000 + b"}") is None


async def test_sessions_of_a_run_have_no_more_scopes_than_the_token_that_started_it(workshop: Workshop) -> None:
    await workshop.agent("ada")
    token = await workshop.fleet.call(
        workshop.owner, "create_token", name="narrow", agent="ada", scopes=["workflow:manage"]
    )
    ada = workshop.fleet.actor(token=token.secret, source="http")
    assert workshop.fleet.names(ada) == {"manage_workflow"}
    await workshop.ended(await workshop.start(ada, chain(node("a", "agent_session", prompt="hi"))))
    assert workshop.fleet.names(workshop.talks.all[0].actor) == {"manage_workflow"}


async def test_an_agent_has_so_many_workflows_and_no_more(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "MOST_WORKFLOWS", 2)
    ada, bob = await workshop.agent("ada"), await workshop.agent("bob")
    for _ in range(2):
        await workshop.workflow(ada, chain(), active=False)
    with pytest.raises(Conflict, match="2 workflows"):
        await workshop.workflow(ada, chain(), active=False)
    assert len(workshop.rows(sa.select(workflows.c.id))) == 2
    await workshop.workflow(bob, chain(), active=False)
    await workshop.workflow(workshop.owner, chain(), active=False, agent_id="ada")


async def test_an_agent_has_so_many_open_runs_and_no_more(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "MOST_OPEN_RUNS", 2)
    ada = await workshop.agent("ada")
    waits = chain(node("w", "webhook_wait"))
    first = await workshop.start(ada, waits)
    flow = workshop.rows(sa.select(workflow_runs.c.workflow_id))[0].workflow_id
    await workshop.do(ada, "run", workflow_id=flow)
    with pytest.raises(Conflict, match="2 runs"):
        await workshop.do(ada, "run", workflow_id=flow)
    await workshop.do(ada, "cancel", run_id=first)
    await workshop.do(ada, "run", workflow_id=flow)
    await workshop.do(workshop.owner, "run", workflow_id=flow)


async def test_a_failure_whose_text_no_database_can_keep_still_ends_the_run(workshop: Workshop) -> None:
    async def broken(*_: Any, **__: Any) -> Any:
        raise OSError("no such file: a\udcff\0b")

    workshop.facts["runtime"] = type("Broken", (), {"start_session": staticmethod(broken)})()
    run = await workshop.ended(
        await workshop.start(workshop.owner, chain(node("a", "agent_session", prompt="hi"))), "failed"
    )
    assert statuses(run)["a"] == "failed"
    assert "no such file: a" in run["error"]


async def test_nodes_that_copy_what_they_were_given_do_not_fill_the_disk(workshop: Workshop) -> None:
    copies = chain(*(node(f"t{number}", "transform", template="{{x}}" * 8) for number in range(40)))
    run = await workshop.status(await workshop.start(workshop.owner, copies, {"x": "a" * 60_000}))
    assert run["status"] == "failed"
    assert "too many to go on" in run["error"]
    assert set(statuses(run).values()) == {"skipped"}


async def test_sessions_that_take_hours_do_not_hold_up_what_takes_a_moment(workshop: Workshop) -> None:
    long = await workshop.start(workshop.owner, chain(node("a", "agent_session", prompt="wait for it")))
    async with workshop.working(concurrency=1):
        await workshop.until(lambda: bool(workshop.talks.all))
        also = await workshop.start(workshop.owner, chain(node("b", "agent_session", prompt="at once")))
        short = await workshop.start(workshop.owner, chain(node("d", "delay", delayMs=0)))
        await workshop.until("completed", short)
        assert workshop.talks.prompts == ["wait for it"]
        workshop.talks.all[0].go.set()
        await workshop.until("completed", long)
        await workshop.until("completed", also)


async def test_of_a_workflow_that_runs_for_years_the_newest_runs_are_kept(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_store, "KEPT", 2)
    waits = await workshop.start(workshop.owner, chain(node("w", "webhook_wait")))
    flow = (await workshop.status(waits))["workflow_id"]
    await workshop.do(workshop.owner, "update", workflow_id=flow, **chain())
    ended = [(await workshop.do(workshop.owner, "run", workflow_id=flow)).runs[0]["id"] for _ in range(5)]
    kept = {row.id for row in workshop.rows(sa.select(workflow_runs.c.id))}
    assert len(kept) == 4
    assert kept > {waits, ended[-1]}
    assert {row.run_id for row in workshop.rows(sa.select(workflow_node_runs.c.run_id))} == kept
