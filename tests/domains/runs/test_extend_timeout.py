"""More time for a session: only for the one that asks, true, and never more than four times what it had at first."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import sqlalchemy as sa

from rookery.core.actor import Actor
from rookery.core.errors import Conflict, InvalidParams
from rookery.core.lint import tokens
from rookery.lifecycle.run_store import NewRun
from rookery.lifecycle.run_tables import agent_runs
from rookery.lifecycle.session_store import SessionRuns
from rookery.lifecycle.sessions import Outcome
from tests.lifecycle import session_trials
from tests.lifecycle.session_trials import Trials
from tests.platform_fixtures import Fleet

MINUTE_MS = 60_000
BASE_MS = 30 * MINUTE_MS


@pytest.fixture
def make_trials(database_url: str, make_fleet: Callable[..., Fleet]) -> Callable[..., Trials]:
    def make(**settings: Any) -> Trials:
        return Trials(make_fleet(database_url, extra={"trial": session_trials}, **settings))

    return make


@pytest.fixture
def trials(make_trials: Callable[..., Trials]) -> Trials:
    return make_trials()


def begun(trials: Trials, key: str = "k") -> Actor:
    """An agent in a session of 30 minutes."""
    actor = trials.fleet.actor()
    new = NewRun(project_id=actor.project or "", agent=actor.agent, key=key)
    run = trials.write(lambda tx: SessionRuns(tx, "default").begin(new, BASE_MS, 1))
    return replace(actor, run=run.id)


def lasts_ms(trials: Trials) -> int:
    run = trials.runs[-1]
    return run.deadline_ms - run.started_ms


async def extend(trials: Trials, actor: Actor, minutes: Any) -> Any:
    return await trials.fleet.call(actor, "extend_timeout", minutes=minutes)


async def test_who_is_in_no_session_of_ours_has_no_deadline(trials: Trials) -> None:
    inside = begun(trials)
    await trials.call("create_agent", name="ada")
    ada = trials.fleet.actor(agent="ada")
    trials.write(lambda tx: tx.run(sa.update(agent_runs).values(session="ses-1")))
    for actor in (
        trials.fleet.actor(),
        trials.fleet.owner,
        replace(trials.fleet.owner, run=inside.run),
        replace(ada, run=inside.run),
        replace(ada, session="k"),
        replace(inside, run="run-unknown"),
        replace(inside, tenant="other"),
        trials.fleet.actor(session="ses-1"),
    ):
        with pytest.raises(Conflict, match="this session has no deadline"):
            await extend(trials, actor, 10)
    assert lasts_ms(trials) == BASE_MS


async def test_a_session_that_has_ended_stays_so(trials: Trials) -> None:
    inside = begun(trials)
    trials.write(lambda tx: SessionRuns(tx, "default").finish(inside.run or "", "succeeded", Outcome("done")))
    with pytest.raises(Conflict, match="this session has no deadline"):
        await extend(trials, inside, 10)


async def test_a_session_whose_time_is_over_gets_no_more(trials: Trials) -> None:
    inside = begun(trials)
    past = {"started_ms": agent_runs.c.started_ms - BASE_MS, "deadline_ms": agent_runs.c.deadline_ms - BASE_MS - 5}
    trials.write(lambda tx: tx.run(sa.update(agent_runs).values(**past)))
    with pytest.raises(Conflict, match="time is over"):
        await extend(trials, inside, 10)


@pytest.mark.parametrize("minutes", [None, True, "soon", float("nan"), [5], {}])
async def test_what_is_no_number_is_refused(trials: Trials, minutes: Any) -> None:
    inside = begun(trials)
    with pytest.raises(InvalidParams):
        await extend(trials, inside, minutes)
    with pytest.raises(InvalidParams):
        await trials.fleet.call(inside, "extend_timeout", minutes=5, additional_minutes=5)
    assert lasts_ms(trials) == BASE_MS


@pytest.mark.parametrize(
    ("minutes", "more"), [(10, 10), (2.5, 2.5), (-3, 1), (0, 1), (float("-inf"), 1), (90, 90), (10**9, 90)]
)
async def test_it_is_added_to_what_is_left_from_1_minute_up_to_the_limit(
    trials: Trials, minutes: float, more: float
) -> None:
    inside = begun(trials)
    told = await extend(trials, inside, minutes)
    assert lasts_ms(trials) == BASE_MS + more * MINUTE_MS
    assert told.deadline_ms == trials.runs[-1].deadline_ms
    assert told.remaining_minutes == pytest.approx(30 + more, abs=0.3)


async def test_again_and_again_comes_to_four_times_the_first_length(trials: Trials) -> None:
    inside = begun(trials)
    for lasts in (70, 110, 120):
        await extend(trials, inside, 40)
        assert lasts_ms(trials) == lasts * MINUTE_MS
    with pytest.raises(Conflict, match="all of its 120 minutes"):
        await extend(trials, inside, 1)


async def test_both_spellings_and_a_session_that_is_known_by_its_key(trials: Trials) -> None:
    begun(trials, "work:wtk-1:1")
    outside = trials.fleet.actor(session="work:wtk-1:1")
    await trials.fleet.call(outside, "extend_timeout", additional_minutes=5)
    await trials.fleet.call(outside, "extend_timeout", minutes=5)
    assert lasts_ms(trials) == BASE_MS + 10 * MINUTE_MS


async def test_who_waits_for_the_session_waits_longer(make_trials: Callable[..., Trials]) -> None:
    trials = make_trials(agent_timeout_ms=600)
    asked = json.dumps({"additional_minutes": 1})
    run = await trials.done(f"!call extend_timeout {asked}", "!wait 0.8", "!say done")
    assert (run.status, run.deadline_ms - run.started_ms) == ("succeeded", 2_400)


async def test_and_no_longer_than_the_limit(make_trials: Callable[..., Trials]) -> None:
    trials = make_trials(agent_timeout_ms=1_000)
    run = await trials.done('!call extend_timeout {"minutes": 120}', "!wait 3000")
    assert (run.status, run.error) == ("timed_out", "the session did not end within 4 s")
    assert 4_000 <= run.ended_ms - run.started_ms < 20_000


def test_it_is_listed_with_the_seeds_spelling_and_few_words(trials: Trials) -> None:
    tool = trials.fleet.platform.registry.require("extend_timeout")
    assert list(tool.input_schema["properties"]) == ["additional_minutes"]
    assert tokens(tool) <= 100
