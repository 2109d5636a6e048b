"""A connection that brings a session's key acts in that session, and as nobody else, on SQLite and on PostgreSQL."""

from dataclasses import replace
from typing import Any

import pytest

from rookery.core.errors import InvalidParams, PermissionDenied, Unauthorized
from rookery.identity.store import IdentityStore
from rookery.lifecycle.sessions import Outcome
from rookery.server.attach import open_launched
from rookery.sessions.store import NewSession, SessionRows
from tests.platform_fixtures import Fleet
from tests.platform_fixtures import prepared_database_url as database_url

__all__ = ["database_url"]


def rows(fleet: Fleet, work: Any, tenant: str = "default") -> Any:
    return fleet.platform.database.direct(lambda tx: work(SessionRows(tx, tenant)), write=True)


def opened(fleet: Fleet, tenant: str = "default", mode: Any = "autonomy", **binding: Any) -> tuple[str, str]:
    """A session, by its id and its key."""
    actor = fleet.actor(tenant=tenant, **binding)
    return kept(fleet, NewSession(actor=actor, runtime="command", mode=mode, opened_by="me", cwd="/srv/nest"), tenant)


def kept(fleet: Fleet, new: NewSession, tenant: str = "default") -> tuple[str, str]:
    session = rows(fleet, lambda sessions: sessions.create(new), tenant)
    rows(fleet, lambda sessions: sessions.began(session, "run-0"), tenant)
    return session.id, rows(fleet, lambda sessions: sessions.new_pass(session.id), tenant)


async def attach(fleet: Fleet, key: Any, **flags: Any) -> Any:
    return await open_launched(fleet.platform, {"attach": key, **flags}, "/elsewhere")


@pytest.mark.parametrize("key", ["", "wrong", "x" * 100_000, "half \ud800", "a\0b", "%"])
async def test_a_key_of_no_session_is_refused(fleet: Fleet, key: str) -> None:
    opened(fleet)
    with pytest.raises(Unauthorized, match="belongs to no session"):
        await attach(fleet, key)


async def test_the_id_and_the_hash_of_a_session_are_no_keys(fleet: Fleet) -> None:
    session_id, _ = opened(fleet)
    stored = rows(fleet, lambda sessions: sessions.of(session_id)).pass_hash
    for guess in (session_id, stored):
        with pytest.raises(Unauthorized):
            await attach(fleet, guess)


async def test_a_session_that_has_ended_is_refused_also_to_those_who_are_attached(fleet: Fleet) -> None:
    session_id, key = opened(fleet)
    attached = await attach(fleet, key)
    assert (await attached.actor()).session == session_id
    rows(fleet, lambda sessions: sessions.end(session_id))
    with pytest.raises(Unauthorized, match="has ended"):
        await attach(fleet, key)
    with pytest.raises(Unauthorized, match="has ended"):
        await attached.actor()


async def test_a_key_counts_while_the_session_is_at_a_turn_alone(fleet: Fleet) -> None:
    session_id, key = opened(fleet)
    attached = await attach(fleet, key)
    rows(fleet, lambda sessions: sessions.turn_over(session_id, "run-0", Outcome("done")))
    with pytest.raises(Unauthorized):
        await attach(fleet, key)
    with pytest.raises(Unauthorized):
        await attached.actor()


async def test_a_new_key_ends_the_one_before(fleet: Fleet) -> None:
    session_id, key = opened(fleet)
    attached = await attach(fleet, key)
    newer = rows(fleet, lambda sessions: sessions.new_pass(session_id))
    with pytest.raises(Unauthorized):
        await attached.actor()
    assert (await (await attach(fleet, newer)).actor()).session == session_id


@pytest.mark.parametrize(
    "flags",
    [{"agent": "default"}, {"as_owner": True}, {"session_id": "mine"}, {"depth": "1"}, {"worktree_path": "/srv"}],
    ids=lambda flags: next(iter(flags)),
)
async def test_nothing_can_be_chosen_beside_the_session(fleet: Fleet, flags: dict[str, Any]) -> None:
    _, key = opened(fleet)
    with pytest.raises(InvalidParams, match=next(iter(flags))):
        await attach(fleet, key, **flags)


async def test_without_a_key_nothing_is_attached(fleet: Fleet) -> None:
    opened(fleet)
    with pytest.raises(InvalidParams, match="needs the key"):
        await attach(fleet, True)


async def test_the_connection_is_held_to_what_the_session_is(fleet: Fleet) -> None:
    await fleet.call(fleet.owner, "create_agent", name="ada")
    narrow = {"scopes": frozenset({"issues:read", "server:read"}), "within": frozenset({"ping", "get_server_info"})}
    held: dict[str, Any] = {"agent": "ada", "profile": "worker", "depth": 3, "source": "agent", **narrow}
    session_id, key = opened(fleet, mode="act", **held)
    rows(fleet, lambda sessions: sessions.began(sessions.of(session_id), "run-7"))
    actor = await (await attach(fleet, key, home="/somewhere", direct=True)).actor()
    assert (actor.session, actor.run, actor.agent_name, actor.profile) == (session_id, "run-7", "ada", "worker")
    assert (actor.depth, actor.source, actor.mode, actor.kind) == (3, "agent", "act", "agent")
    assert (actor.scopes, actor.within) == (narrow["scopes"], narrow["within"])
    assert (actor.cwd, actor.unattended) == ("/srv/nest", False)
    with pytest.raises(PermissionDenied):
        await fleet.call(actor, "list_agents")


async def test_a_session_without_a_person_stays_one(fleet: Fleet) -> None:
    alone = replace(fleet.actor(), unattended=True)
    _, key = kept(fleet, NewSession(actor=alone, runtime="command", mode="act", opened_by="me"))
    assert (await (await attach(fleet, key)).actor()).unattended


async def test_a_key_leads_to_its_own_tenant_and_to_no_other(fleet: Fleet) -> None:
    fleet.platform.database.direct(lambda tx: IdentityStore(tx, "other").set_up(), write=True)
    session_id, key = opened(fleet, tenant="other")
    ours, _ = opened(fleet)
    attached = await attach(fleet, key)
    actor = await attached.actor()
    assert (actor.tenant, actor.session, attached.tenant) == ("other", session_id, "other")
    assert actor.project != fleet.actor().project
    assert rows(fleet, lambda sessions: sessions.find(ours), actor.tenant) is None


async def test_a_change_of_mode_counts_at_the_next_call_and_leads_no_further_than_the_agent(fleet: Fleet) -> None:
    session_id, key = opened(fleet, mode="ask")
    attached = await attach(fleet, key)
    assert (await attached.actor()).mode == "ask"
    rows(fleet, lambda sessions: sessions.change(session_id, mode="autonomy"))
    assert (await attached.actor()).mode == "autonomy"
    narrow = replace(fleet.actor(), mode="act")
    narrow_id, key = kept(fleet, NewSession(actor=narrow, runtime="command", mode="ask", opened_by="me"))
    attached = await attach(fleet, key)
    rows(fleet, lambda sessions: sessions.change(narrow_id, mode="autonomy"))
    assert (await attached.actor()).mode == "act"


async def test_a_right_that_is_taken_away_is_missing_at_the_next_call(fleet: Fleet) -> None:
    await fleet.call(fleet.owner, "create_agent", name="ada")
    _, key = opened(fleet, agent="ada")
    attached = await attach(fleet, key)
    assert "ping" in await attached.names("tools")
    await fleet.call(fleet.owner, "update_agent", agent="ada", permissions=[])
    assert await attached.names("tools") == []


async def test_a_turn_is_known_by_its_run(fleet: Fleet) -> None:
    session_id, key = opened(fleet)
    attached = await attach(fleet, key)
    for run_id in ("run-1", "run-2"):
        rows(fleet, lambda sessions, run_id=run_id: sessions.began(sessions.of(session_id), run_id))
        assert (await attached.actor()).run == run_id
