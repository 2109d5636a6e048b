"""Who acts, and on what, is bound by the door. No argument can change it."""

import json
from pathlib import Path
from typing import Any

import pytest

from rookery.core.errors import (
    ConfigurationError,
    Conflict,
    InvalidParams,
    NotFound,
    PermissionDenied,
    RookeryError,
)
from rookery.identity.resolve import read_scope_file
from rookery.identity.store import IdentityStore
from rookery.plugins import load_domains
from tests.platform_fixtures import Fleet

BINDING = {"tenant": "other", "agent": "eve", "project": "prj-2", "issue": "iss-2", "issue_id": "iss-2", "session": "x"}


async def test_a_bound_issue_and_project_cannot_be_changed_by_arguments(probe_fleet: Fleet) -> None:
    fleet = probe_fleet
    await fleet.call(fleet.owner, "create_project", slug="webshop")
    issue = (await fleet.call(fleet.actor(as_owner=True, project="webshop"), "create_issue", title="login fails")).id
    actor = fleet.actor(project="webshop", issue=issue, session="ses-1")
    before = await fleet.call(actor, "show_binding")
    for name, value in BINDING.items():
        with pytest.raises(InvalidParams, match=name):
            await fleet.call(actor, "show_binding", **{name: value})
    after = await fleet.call(actor, "show_binding")
    assert after == before
    assert (after.tenant, after.project, after.issue, after.session) == ("default", actor.project, issue, "ses-1")


async def test_what_acts_on_an_issue_is_not_there_in_a_session_without_one(probe_fleet: Fleet) -> None:
    unbound = probe_fleet.actor()
    assert "show_binding" not in probe_fleet.names(unbound)
    with pytest.raises(PermissionDenied) as caught:
        await probe_fleet.call(unbound, "show_binding", issue="iss-1")
    assert caught.value.layer == "binding"


def test_no_tool_for_agents_lets_its_caller_say_who_it_is() -> None:
    telling = {"tenant", "caller", "caller_id", "as_agent", "as_owner", "session", "session_id", "depth", "source"}
    for tool in load_domains(plugins=False).registry:
        if tool.principals == "any":
            assert telling.isdisjoint(tool.input_schema.get("properties", {})), tool.name
        assert tool.input.model_config.get("extra") == "forbid", tool.name


async def test_a_tool_called_inside_another_has_the_callers_rights_only(probe_fleet: Fleet) -> None:
    with pytest.raises(PermissionDenied) as caught:
        await probe_fleet.call(probe_fleet.actor(), "pass_on", name="create_agent")
    assert caught.value.layer == "principal"
    await probe_fleet.call(probe_fleet.owner, "pass_on", name="create_agent")
    with pytest.raises(Conflict):
        await probe_fleet.call(probe_fleet.owner, "pass_on", name="create_agent")


async def test_what_belongs_to_another_tenant_cannot_be_bound(probe_fleet: Fleet) -> None:
    fleet = probe_fleet
    fleet.platform.database.direct(lambda tx: IdentityStore(tx, "other").set_up(), write=True)
    stranger = fleet.actor(tenant="other", as_owner=True)
    eve = await fleet.call(stranger, "create_agent", name="eve")
    shop = await fleet.call(stranger, "create_project", slug="webshop")
    attempts: list[dict[str, Any]] = [
        {"agent": eve.id},
        {"agent": "eve"},
        {"project": shop.id},
        {"project_slug": "webshop"},
    ]
    for binding in attempts:
        with pytest.raises(NotFound) as caught:
            fleet.actor(**binding)
        assert "eve" not in (caught.value.hint or "")
        assert "webshop" not in (caught.value.hint or "")
    assert fleet.actor(tenant="other", agent="eve").agent == eve.id


async def test_a_session_of_an_unknown_agent_type_is_refused_with_the_known_ones(probe_fleet: Fleet) -> None:
    with pytest.raises(InvalidParams) as caught:
        probe_fleet.actor(profile="boss")
    assert "worker" in (caught.value.hint or "")


BAD_FILES = ["", "{}", "null", '"ping"', "[1]", '["ping"', '[["ping"]]', "[" * 100_000, "\xff"]


@pytest.mark.parametrize("text", BAD_FILES, ids=range(len(BAD_FILES)))
def test_a_scope_file_that_is_no_list_of_names_is_refused_by_its_path(tmp_path: Path, text: str) -> None:
    path = tmp_path / "scope.json"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(ConfigurationError, match=r"scope\.json"):
        read_scope_file(str(path), load_domains(plugins=False).registry)


def test_a_scope_file_that_is_missing_or_names_unknown_tools_is_refused(tmp_path: Path) -> None:
    registry = load_domains(plugins=False).registry
    with pytest.raises(ConfigurationError, match="nowhere"):
        read_scope_file(str(tmp_path / "nowhere.json"), registry)
    path = tmp_path / "scope.json"
    path.write_text(json.dumps(["ping", "pong"]))
    with pytest.raises(RookeryError, match="pong"):
        read_scope_file(str(path), registry)
    path.write_text("[]")
    assert read_scope_file(str(path), registry) == frozenset()
