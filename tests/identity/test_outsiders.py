"""Tokens of another issuer: when one speaks for an agent, and what everybody else who has one may do."""

import contextlib
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from rookery.core.actor import Actor
from rookery.core.errors import NotFound, PermissionDenied, Unauthorized
from rookery.identity.resolve import Binding, TokenIdentity
from rookery.server.session import Session, open_session
from tests.identity.callers import own
from tests.platform_fixtures import Fleet

EVERYTHING = ("*", "tool:*", "resource:*", "prompt:*", "admin")


def token(subject: str | None = "remote", *scopes: str, **changes: Any) -> TokenIdentity:
    given = frozenset(scopes or ("system:read",))
    right = {"tenant": "default", "client": "cli", "expires_ms": time.time_ns() // 1_000_000 + 600_000}
    return TokenIdentity(**{**right, "subject": subject, "scopes": given, **changes})


async def make_agent(fleet: Fleet, name: str, **values: Any) -> str:
    return (await own(fleet, "create_agent", name=name, **values)).id


def test_a_token_for_a_tenant_that_is_not_here_is_refused(fleet: Fleet) -> None:
    for tenant in ("acme", "", "DEFAULT", "default' OR 1=1 --"):
        with pytest.raises(Unauthorized, match="a tenant that is not here"):
            fleet.actor(identity=token(tenant=tenant))


def test_a_token_that_is_over_is_refused(fleet: Fleet) -> None:
    with pytest.raises(Unauthorized, match="has expired"):
        fleet.actor(identity=token(expires_ms=time.time_ns() // 1_000_000))


async def open_for_a_moment(fleet: Fleet) -> Session:
    """A session that has been served, whose token is over soon: on a busy machine, not quite as soon."""
    for lives_ms in (150, 600, 2_400, 9_600):
        soon = token(expires_ms=time.time_ns() // 1_000_000 + lives_ms)
        with contextlib.suppress(Unauthorized):
            session = await open_session(fleet.platform, Binding(identity=soon, source="http"))
            assert (await session.actor()).kind == "external"
            return session
    pytest.fail("no session was opened while its token was good")


async def test_an_open_session_ends_with_its_token(fleet: Fleet) -> None:
    session = await open_for_a_moment(fleet)
    while not session.outdated:
        await fleet.call(fleet.owner, "ping")
    with pytest.raises(Unauthorized, match="has expired"):
        await session.actor()


async def test_only_the_id_of_an_agent_makes_a_token_that_agents(fleet: Fleet, stranger: Actor) -> None:
    ada = await make_agent(fleet, "ada")
    theirs = (await fleet.call(stranger, "create_agent", name="eve")).id
    for subject in ("ada", "default", ada.upper(), f" {ada}", theirs, fleet.owner.subject, "owner", "local", "%"):
        actor = fleet.actor(identity=token(subject))
        assert (actor.kind, actor.agent, actor.role) == ("external", None, None)
        assert actor.subject == f"external:{subject}"
    by_client = fleet.actor(identity=token(None, client=ada))
    assert (by_client.kind, by_client.subject) == ("external", f"external-client:{ada}")
    assert fleet.actor(identity=token(ada)).agent == ada
    assert fleet.actor(identity=token(theirs, tenant="other")).agent == theirs


async def test_no_token_of_another_issuer_makes_a_person(fleet: Fleet) -> None:
    owner = fleet.owner.subject
    for binding in ({}, {"as_owner": True}, {"source": "web"}, {"as_owner": True, "source": "web", "agent": "default"}):
        actor = fleet.actor(identity=token(owner, *EVERYTHING), **binding)
        assert (actor.kind, actor.role, actor.source) != ("human", "owner", "web")
        assert (actor.kind, actor.role) == ("external", None)
        assert actor.source != "web"


def test_an_outsider_has_what_its_scopes_carry_and_nothing_else(fleet: Fleet) -> None:
    assert fleet.names(fleet.actor(identity=token("remote", "tool:ping"))) == {"ping"}
    assert fleet.names(fleet.actor(identity=token("remote", "openid", "profile", "admin"))) == set()
    reading = fleet.names(fleet.actor(identity=token("remote", "system:read")))
    assert "ping" in reading
    registry = fleet.platform.registry
    assert {scope for name in reading for scope in registry.require(name).scopes} == {"system:read"}


async def test_the_default_set_and_the_bundles_of_a_project_are_not_for_outsiders(fleet: Fleet) -> None:
    await own(fleet, "assign_bundle", bundle="preset-devops", project="default")
    assert fleet.names(fleet.actor(identity=token("remote", "nothing:here"))) == set()


async def test_not_even_every_scope_gives_an_outsider_what_is_privileged_or_for_people(fleet: Fleet) -> None:
    mighty = fleet.actor(identity=token("remote", *EVERYTHING, "tool:grant_credits", "tool:create_token", "identity:*"))
    assert fleet.names(mighty)
    tools = [fleet.platform.registry.require(name) for name in fleet.names(mighty)]
    assert all(tool.tier != "privileged" and tool.principals == "any" for tool in tools)
    for name, layer in (("grant_credits", "role"), ("create_token", "principal")):
        with pytest.raises(PermissionDenied) as caught:
            await fleet.call(mighty, name)
        assert caught.value.layer == layer


async def test_an_agent_is_limited_by_its_token_and_the_token_by_its_agent(fleet: Fleet) -> None:
    ada = await make_agent(fleet, "ada", permissions=["ping", "save_memory"])
    alone = fleet.names(fleet.actor(agent="ada"))
    assert fleet.names(fleet.actor(identity=token(ada, *EVERYTHING))) == alone
    assert fleet.names(fleet.actor(identity=token(ada, "tool:ping"))) == {"ping"}
    assert fleet.names(fleet.actor(identity=token(ada, "memory:read"))) == set()


async def test_a_change_of_the_agent_counts_for_its_tokens_at_once(fleet: Fleet) -> None:
    ada = await make_agent(fleet, "ada")
    session = await open_session(fleet.platform, Binding(identity=token(ada, "tool:ping"), source="http"))
    assert [tool.name for tool in await session.tools()] == ["ping"]
    await own(fleet, "update_agent", agent="ada", permissions=[])
    assert await session.tools() == []


async def test_without_scope_checks_an_agent_needs_no_scopes_and_an_outsider_still_has_only_its_own(
    database_url: str, make_fleet: Callable[..., Fleet]
) -> None:
    fleet = make_fleet(database_url, auth_scope_checks=False)
    ada = await make_agent(fleet, "ada", permissions=["ping", "save_memory"])
    bare = replace(token(ada), scopes=frozenset())
    assert fleet.names(fleet.actor(identity=bare)) == fleet.names(fleet.actor(agent="ada"))
    assert fleet.names(fleet.actor(identity=replace(bare, subject="remote"))) == set()
    assert fleet.names(fleet.actor(identity=token("remote", "tool:ping"))) == {"ping"}
    made = await own(fleet, "create_token", name="laptop", agent="ada", scopes=["tool:ping"])
    assert fleet.names(fleet.actor(token=made.secret)) == {"ping"}


async def test_a_mapped_scope_stands_for_others_in_tokens_of_an_issuer_only(
    database_url: str, make_fleet: Callable[..., Fleet]
) -> None:
    plain, mapping = make_fleet(database_url), (("admin", ("*",)), ("ops", ("tool:ping", "admin")))
    fleet = make_fleet(database_url, auth_scope_map=mapping)
    ada = await make_agent(fleet, "ada")
    everything = fleet.names(fleet.actor(identity=token("remote", "*")))
    assert plain.names(plain.actor(identity=token("remote", "admin"))) == set()
    assert fleet.names(fleet.actor(identity=token("remote", "admin"))) == everything
    assert fleet.names(fleet.actor(identity=token("remote", "ops"))) == {"ping"}
    assert fleet.names(fleet.actor(identity=token("remote", "Admin", "admin:*"))) == set()
    assert fleet.names(fleet.actor(identity=token(ada, "admin"))) == fleet.names(fleet.actor(agent="ada"))
    made = await own(fleet, "create_token", name="laptop", agent="ada", scopes=["admin"])
    assert fleet.names(fleet.actor(token=made.secret)) == set()


async def test_the_record_says_who_called_and_cannot_be_made_to_say_the_owner(fleet: Fleet) -> None:
    actor = fleet.actor(identity=token(fleet.owner.subject, "tool:ping"), source="http")
    assert (actor.auth.client, actor.auth.subject) == ("cli", fleet.owner.subject)
    await fleet.call(actor, "ping")
    records = (await own(fleet, "list_audit_records", tool="ping")).records
    assert [record.subject for record in records] == [f"external:{fleet.owner.subject}"]


def test_a_project_that_is_not_there_is_not_found_for_outsiders_either(fleet: Fleet) -> None:
    with pytest.raises(NotFound):
        fleet.actor(identity=token(), project="elsewhere")
