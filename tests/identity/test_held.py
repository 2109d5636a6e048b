"""What a session that somebody started is held to, and how its rights are looked up again."""

from dataclasses import replace

import pytest

from rookery.identity.binding import binding_again, bound_by, handed_on, inherited, stricter
from rookery.identity.renewing import Renewal
from tests.platform_fixtures import Fleet

NARROW = {"profile": "worker", "depth": 2, "source": "agent", "scheduler": True}


def test_of_two_modes_the_one_that_asks_more_often_is_stricter() -> None:
    modes = ("ask", "act", "autonomy")
    for first, one in enumerate(modes):
        assert stricter(one, None) == one
        for second, other in enumerate(modes):
            assert stricter(one, other) == modes[min(first, second)]


async def test_what_was_held_before_modes_were_is_read_as_no_limit(fleet: Fleet) -> None:
    old = {"profile": None, "source": "agent", "depth": 2, "scheduler": False, "scope_file": None, "scopes": None}
    actor = fleet.actor(**bound_by(old))
    assert (actor.mode, actor.within, actor.depth) == ("autonomy", None, 2)


@pytest.mark.parametrize("narrow", [{}, NARROW, {"scope_file": frozenset({"ping"})}])
async def test_a_session_that_is_started_again_by_what_it_was_held_to_is_the_same(
    fleet: Fleet, narrow: dict[str, object]
) -> None:
    actor = fleet.actor(**narrow, scopes=frozenset({"*"}), within=frozenset({"ping", "send_message"}), mode="act")
    again = fleet.actor(**bound_by(inherited(actor)))
    assert again == actor
    assert fleet.platform.database.direct(
        lambda tx: fleet.platform.resolver.resolve(tx, binding_again(actor))
    ).actor == (actor)


async def test_a_mode_that_is_inherited_never_widens_that_of_the_agent(fleet: Fleet) -> None:
    await fleet.call(fleet.owner, "update_agent", agent="default", mode="ask")
    assert fleet.actor(mode="autonomy").mode == "ask"
    await fleet.call(fleet.owner, "update_agent", agent="default", mode="autonomy")
    assert fleet.actor(mode="act").mode == "act"


async def test_tools_within_which_a_session_stays_give_none_and_take_the_rest(fleet: Fleet) -> None:
    own = fleet.names(fleet.actor())
    assert fleet.names(fleet.actor(within=frozenset({"send_message", "vault_delete"}))) == {"send_message"}
    assert fleet.names(fleet.actor(within=frozenset())) == set()
    assert fleet.names(fleet.actor(within=None)) == own
    worker = fleet.actor(profile="worker", within=frozenset({"vault_update"}))
    assert fleet.names(worker) == {"vault_update"}


async def test_what_is_handed_on_to_another_agent_names_the_tools_of_a_narrow_session_only(fleet: Fleet) -> None:
    reach = frozenset({"ping"})
    assert handed_on(fleet.actor(), lambda: reach)["within"] is None
    for narrow in ({"profile": "worker"}, {"scope_file": reach}, {"within": reach}):
        held = handed_on(fleet.actor(**narrow), lambda: reach)
        assert (held["profile"], held["scope_file"], held["within"]) == (None, None, ["ping"])


async def test_rights_that_are_looked_up_again_are_those_of_this_moment(fleet: Fleet) -> None:
    renew = Renewal(fleet.platform.database, fleet.platform.resolver)
    granted = await fleet.call(fleet.owner, "grant_tool", agent="default", tool="vault_update")
    actor = fleet.actor(session="ses-1", mode="act")
    assert await renew(actor) == actor
    await fleet.call(fleet.owner, "revoke_grant", id=granted.id)
    assert "vault_update" in fleet.names(actor)
    assert "vault_update" not in fleet.names(await renew(actor))
    assert await renew(fleet.owner) == fleet.owner
    assert (await renew(replace(actor, run="run-1", phase="build"))).run == "run-1"
