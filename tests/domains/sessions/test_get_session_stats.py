import pytest

from rookery.core.actor import Actor
from rookery.core.errors import NotFound, PermissionDenied
from rookery.lifecycle.sessions import Outcome
from tests.domains.sessions.conftest import Desk, shut

NONE = {"idle": 0, "running": 0, "waiting": 0, "ended": 0}


async def test_an_agent_does_not_see_what_another_has_used(desk: Desk, ada: Actor) -> None:
    desk.opened("bob")
    with pytest.raises(PermissionDenied, match="only its own sessions"):
        await desk.call("get_session_stats", ada, agent_id="bob")
    assert (await desk.call("get_session_stats", ada)).states == NONE


async def test_another_tenant_sees_nothing_and_knows_no_agent(desk: Desk, stranger: Actor) -> None:
    desk.opened("ada")
    assert (await desk.call("get_session_stats", stranger)).states == NONE
    with pytest.raises(NotFound):
        await desk.call("get_session_stats", stranger, agent_id="ada")


async def test_a_closed_project_counts_for_nothing(desk: Desk, ada: Actor) -> None:
    desk.opened("ada", project="secret")
    await shut(desk)
    assert (await desk.call("get_session_stats", desk.fleet.actor(agent="ada"))).states == NONE


async def test_states_tokens_and_cost_are_told_and_no_content(desk: Desk, ada: Actor) -> None:
    first, second = desk.opened("ada", title="a secret title"), desk.opened("bob")
    outcome = Outcome("done", "a secret answer", cost_usd=0.25, turns=2, input_tokens=1000, output_tokens=50)
    desk.rows(lambda rows: rows.turn_over(first, "run-1", outcome))
    desk.rows(lambda rows: rows.turn_over(first, "run-1", outcome))
    desk.rows(lambda rows: rows.end(second))
    used = {"turns": 4, "cost_micros": 500_000, "input_tokens": 2000, "output_tokens": 100}
    for actor, states in ((ada, {**NONE, "idle": 1}), (desk.fleet.owner, {**NONE, "idle": 1, "ended": 1})):
        found = await desk.call("get_session_stats", actor)
        assert found.model_dump() == {"states": states, **used}
        assert "secret" not in found.model_dump_json()
    assert (await desk.call("get_session_stats", agent_id="bob")).turns == 0
