"""The budget of sessions, at its edges: shared sessions, time that passes, rows that nobody needs any more."""

from typing import Any

import pytest
import sqlalchemy as sa

from rookery.core.actor import Actor
from rookery.core.errors import RateLimited
from rookery.domains.a2a.budget import HOUR_MS, KEPT_MS, Budget, hold, note_waiting, reserve
from rookery.domains.a2a.tables import sessions
from tests.domains.a2a.outpost import Outpost

URL = "https://agent.example"


def take(outpost: Outpost, actor: Actor, url: str = URL, budget: Budget | None = None) -> Any:
    chosen = budget or Budget(calls=1, agents=1, pause_ms=0)
    return outpost.platform.database.direct(lambda tx: reserve(tx, actor, url, chosen), write=True)


def let_pass(outpost: Outpost, by_ms: int) -> None:
    older = {"since_ms": sessions.c.since_ms - by_ms, "last_ms": sessions.c.last_ms - by_ms}
    outpost.change(sa.update(sessions).values(older))


@pytest.mark.parametrize("binding", [{"session": None}, {"session": "ses-all", "shared": True}])
def test_who_shares_a_session_has_the_budget_of_an_hour(outpost: Outpost, binding: dict[str, Any]) -> None:
    actor = outpost.agent(**binding)
    take(outpost, actor)
    let_pass(outpost, HOUR_MS - 60_000)
    with pytest.raises(RateLimited):
        take(outpost, actor)
    let_pass(outpost, 60_000)
    take(outpost, actor)


def test_the_budget_of_a_session_is_not_renewed(outpost: Outpost) -> None:
    take(outpost, outpost.agent())
    let_pass(outpost, 24 * HOUR_MS)
    with pytest.raises(RateLimited):
        take(outpost, outpost.agent())


def test_nothing_is_no_limit(outpost: Outpost) -> None:
    for number in range(20):
        take(outpost, outpost.agent(), f"{URL}/{number}", Budget(calls=0, agents=0, pause_ms=0))


def test_the_pause_is_over_when_it_is(outpost: Outpost) -> None:
    budget = Budget(calls=0, agents=0, pause_ms=5_000)
    take(outpost, outpost.agent(), budget=budget)
    with pytest.raises(RateLimited):
        take(outpost, outpost.agent(), budget=budget)
    let_pass(outpost, 5_000)
    take(outpost, outpost.agent(), budget=budget)


def test_tenants_do_not_share_a_budget(outpost: Outpost) -> None:
    stranger = outpost.stranger
    take(outpost, outpost.agent())
    take(outpost, stranger)
    assert len(outpost.rows("sessions")) == 2


def test_a_task_that_waits_is_handed_out_once(outpost: Outpost) -> None:
    actor, budget = outpost.agent(), Budget(calls=0, agents=0, pause_ms=0)
    take(outpost, actor, budget=budget)
    waiting = {"task": "t1", "context": "c1"}
    outpost.platform.database.direct(lambda tx: note_waiting(tx, actor, URL, waiting), write=True)
    assert take(outpost, actor, f"{URL}/other", budget) == {}
    assert take(outpost, actor, budget=budget) == waiting
    assert take(outpost, actor, budget=budget) == {}


def test_sessions_of_long_ago_are_forgotten(outpost: Outpost) -> None:
    take(outpost, outpost.agent(session="old"))
    let_pass(outpost, KEPT_MS + 1)
    take(outpost, outpost.agent(session="new"))
    assert [row.session for row in outpost.rows("sessions")] == ["session:new"]
    outpost.platform.database.direct(lambda tx: hold(tx, "default", "from:x"), write=True)
    assert len(outpost.rows("sessions")) == 2
