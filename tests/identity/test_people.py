"""People who are not the owner: what an operator and a viewer reach, and what their tokens do."""

import pytest
import sqlalchemy as sa

from rookery.core.actor import Actor
from rookery.core.errors import PermissionDenied
from rookery.db.tx import Tx
from rookery.identity.access import AccessStore
from rookery.identity.tables import people
from tests.platform_fixtures import Fleet


async def hire(fleet: Fleet, name: str, role: str) -> Actor:
    """A person with a role, signed in by a token of their own, at work on an issue."""

    def insert(tx: Tx) -> str:
        row = {"id": f"per-{name}", "tenant": "default", "name": name, "role": role, "created_ms": 1}
        tx.run(sa.insert(people).values(**row))
        return AccessStore(tx, "default").create_token(name, row["id"], "person", ["*"], row["id"], None)[1]

    secret = fleet.platform.database.direct(insert, write=True)
    return fleet.actor(token=secret, issue=await fleet.issue())


async def test_an_operator_works_and_looks_but_changes_no_rights(fleet: Fleet) -> None:
    oskar = await hire(fleet, "oskar", "operator")
    for name in ("ping", "send_message", "list_agent_settings", "list_tokens", "explain_access"):
        assert name in fleet.names(oskar)
    changing = ("create_agent", "grant_tool", "create_token", "revoke_token", "set_profile_tools", "delete_bundle")
    assert fleet.names(oskar).isdisjoint({*changing, "grant_credits", "credit_config"})
    with pytest.raises(PermissionDenied) as caught:
        await fleet.call(oskar, "grant_tool", agent="default", tool="grant_credits")
    assert caught.value.layer == "principal"


async def test_a_viewer_only_looks(fleet: Fleet) -> None:
    vera = await hire(fleet, "vera", "viewer")
    listed = [fleet.platform.registry.require(name) for name in fleet.names(vera)]
    assert {"ping", "list_projects"} <= {tool.name for tool in listed}
    assert {(tool.effect, tool.tier) for tool in listed} == {("read", "observe")}
    with pytest.raises(PermissionDenied):
        await fleet.call(vera, "create_project", slug="mine")


async def test_a_person_under_a_profile_has_the_profiles_tools_and_no_more(fleet: Fleet) -> None:
    issue = await fleet.issue()
    as_judge = fleet.actor(as_owner=True, profile="judge", issue=issue)
    assert fleet.names(as_judge) == fleet.names(fleet.actor(profile="judge", issue=issue))
    limited = fleet.actor(as_owner=True, scope_file=frozenset({"ping", "grant_credits"}))
    assert fleet.names(limited) == {"ping", "grant_credits"}
