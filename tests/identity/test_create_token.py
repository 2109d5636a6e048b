import logging
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from rookery.core.actor import Actor
from rookery.core.errors import InvalidParams, NotFound, PermissionDenied, RookeryError, Unauthorized
from rookery.identity.access import hash_token
from tests import stand_ins
from tests.core import probe_tools
from tests.identity.callers import agents_are_refused, fails_with, is_not_found, own
from tests.identity.rows import end_in_the_past, everything_stored
from tests.platform_fixtures import Fleet


async def test_an_agent_cannot_make_tokens(fleet: Fleet) -> None:
    await agents_are_refused(fleet, "create_token", name="mine")


async def test_the_agents_of_another_tenant_are_not_found(fleet: Fleet, stranger: Actor) -> None:
    eve = await fleet.call(stranger, "create_agent", name="eve")
    await is_not_found(fleet, fleet.owner, "create_token", name="spy", agent=eve.id)
    theirs = await fleet.call(stranger, "create_token", name="theirs", agent="eve")
    assert fleet.actor(token=theirs.secret, tenant="default").tenant == "other"


async def test_the_secret_is_shown_once_and_never_stored_or_logged(
    fleet: Fleet, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    made = await own(fleet, "create_token", name="laptop", agent="default", scopes=["*"])
    assert made.secret.startswith("rk_")
    await fleet.call(fleet.actor(token=made.secret), "ping")
    stored = everything_stored(fleet)
    assert made.id in stored
    assert hash_token(made.secret) in stored
    secret = made.secret.removeprefix("rk_")
    assert secret not in stored
    assert secret not in caplog.text
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert [path.name for path in files if secret.encode() in path.read_bytes()] == []
    assert secret not in str((await own(fleet, "list_tokens")).model_dump())
    assert secret not in str(fleet.actor(token=made.secret))


async def test_a_wrong_revoked_or_ended_token_opens_nothing(fleet: Fleet) -> None:
    later = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    revoked = await own(fleet, "create_token", name="revoked")
    ended = await own(fleet, "create_token", name="ended", expires_at=later)
    assert fleet.actor(token=ended.secret).kind == "human"
    await own(fleet, "revoke_token", id=revoked.id)
    end_in_the_past(fleet, "tokens", ended.id)
    good = await own(fleet, "create_token", name="good")
    wrong = ["", "rk_", "x", good.secret[:-1], good.secret.upper(), good.id, hash_token(good.secret), "' OR 1=1 --"]
    for secret in (*wrong, revoked.secret, ended.secret):
        with pytest.raises(Unauthorized):
            fleet.actor(token=secret, as_owner=True)


async def test_a_tokens_session_has_at_most_what_its_agent_has(fleet: Fleet) -> None:
    await own(fleet, "create_agent", name="ada", permissions=["ping", "get_issue"])
    await own(fleet, "create_agent", name="rich", permissions=["grant_credits"])
    made = await own(fleet, "create_token", name="t", agent="ada", scopes=["*"])
    ada = fleet.actor(agent="ada")
    assert fleet.names(fleet.actor(token=made.secret)) == fleet.names(ada) == {"ping", "get_issue"}
    bindings: list[dict[str, Any]] = [
        {"agent": "rich"},
        {"source": "web"},
        {"tenant": "nowhere"},
        {"profile": "judge", "issue": await fleet.issue()},
        {"scope_file": frozenset({"ping", "grant_credits", "create_agent"})},
    ]
    for binding in bindings:
        actor = fleet.actor(token=made.secret, **binding)
        assert (actor.agent, actor.tenant, actor.kind) == (ada.agent, "default", "agent")
        assert fleet.names(actor) <= {"ping", "get_issue"}
    with pytest.raises(RookeryError):
        fleet.actor(token=made.secret, as_owner=True)


async def test_a_persons_token_is_that_person(fleet: Fleet) -> None:
    made = await own(fleet, "create_token", name="phone")
    actor = fleet.actor(token=made.secret)
    assert (actor.kind, actor.role, actor.subject) == ("human", "owner", fleet.owner.subject)
    assert actor.auth.client == made.id
    assert "create_agent" in fleet.names(actor)


async def test_scopes_narrow_a_token_and_every_scope_of_a_tool_is_needed(
    database_url: str, make_fleet: Callable[..., Fleet]
) -> None:
    fleet = make_fleet(database_url, extra={"stand_ins": stand_ins, "probes": probe_tools})
    tried = {
        ("credits:write",): False,
        ("owner:notify",): False,
        ("admin",): False,
        ("credits:write", "owner:notify"): True,
        ("credits:*", "owner:*"): True,
        ("tool:pay_out",): True,
        ("*",): True,
    }
    for scopes, allowed in tried.items():
        made = await own(fleet, "create_token", name="t", agent="default", scopes=list(scopes))
        actor = fleet.actor(token=made.secret)
        assert actor.scopes == actor.auth.scopes == frozenset(scopes)
        assert ("pay_out" in fleet.names(actor)) == allowed, scopes
        if not allowed:
            with pytest.raises(PermissionDenied) as caught:
                await fleet.call(actor, "pay_out")
            assert caught.value.layer == "scopes"
    admin = await own(fleet, "create_token", name="t", agent="default", scopes=["admin"])
    both = await own(fleet, "create_token", name="t", agent="default", scopes=["admin", "system:write"])
    assert fleet.names(fleet.actor(token=admin.secret)) == set()
    assert fleet.names(fleet.actor(token=both.secret)) == {"reset_server"}


async def test_a_session_with_a_token_cannot_make_one_with_more_scopes(fleet: Fleet) -> None:
    made = await own(fleet, "create_token", name="manager", scopes=["identity:write", "tracker:*"])
    actor = fleet.actor(token=made.secret)
    for scopes in (["*"], ["identity:*"], ["tracker:*", "audit:read"], ["tool:grant_tool"], ["admin"]):
        with pytest.raises(PermissionDenied) as caught:
            await fleet.call(actor, "create_token", name="more", scopes=scopes)
        assert caught.value.layer == "scopes"
    with pytest.raises(PermissionDenied):
        await fleet.call(actor, "create_token", name="more", agent="default")
    fewer = await fleet.call(actor, "create_token", name="fewer", scopes=["tracker:read", "identity:write"])
    assert fleet.actor(token=fewer.secret).scopes == {"tracker:read", "identity:write"}
    assert len((await own(fleet, "list_tokens")).tokens) == 2


async def test_a_token_needs_a_name_scopes_and_an_end_to_come(fleet: Fleet) -> None:
    past = (datetime.now(UTC) - timedelta(seconds=1)).isoformat()
    for wrong in (
        {"name": ""},
        {"name": "t", "scopes": []},
        {"name": "t", "expires_at": past},
        {"name": "t", "role": 1},
    ):
        await fails_with(InvalidParams, fleet, "create_token", **wrong)
    await fails_with(NotFound, fleet, "create_token", name="t", agent="nobody")
    assert (await own(fleet, "list_tokens")).tokens == []


async def test_a_token_can_bind_its_sessions_to_a_profile_and_a_project(fleet: Fleet) -> None:
    shop = await own(fleet, "create_project", slug="shop")
    made = await own(fleet, "create_token", name="ci", agent="default", agent_type="judge", project="shop")
    assert (made.agent_type, made.project) == ("judge", shop.id)
    for said in ({}, {"profile": "worker", "project": "default"}):
        actor = fleet.actor(token=made.secret, **said)
        assert (actor.profile, actor.project_slug) == ("judge", "shop")
        assert fleet.names(actor) == fleet.names(fleet.actor(profile="judge", project="shop"))


async def test_a_token_for_an_unknown_profile_or_a_closed_project_is_not_made(fleet: Fleet) -> None:
    await own(fleet, "create_project", slug="shop")
    await own(fleet, "create_agent", name="ada")
    await own(fleet, "set_project_members", project="shop", agents=["ada"])
    before = len((await own(fleet, "list_tokens")).tokens)
    for wrong in ({"agent_type": "boss"}, {"project": "nowhere"}, {"project": "shop"}):
        with pytest.raises((InvalidParams, NotFound)):
            await own(fleet, "create_token", name="ci", agent="default", **wrong)
    assert len((await own(fleet, "list_tokens")).tokens) == before
