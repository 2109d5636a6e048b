"""A session over stdio loses the project that is closed to its agent, in both modes."""

import pytest

from tests.server.conftest import Place
from tests.server.processes import Client


@pytest.fixture(scope="module")
def owner(shared: Place) -> Client:
    session = shared.session("--as-owner")
    for agent in ("ada", "bob"):
        session.request("tools/call", name="create_agent", arguments={"name": agent})
    session.call("create_project", slug="shop")
    return session


def test_a_project_that_is_closed_to_the_agent_is_refused_as_one_that_never_was(
    shared: Place, owner: Client, direct: bool
) -> None:
    assert owner.call("set_project_members", project="shop", agents=["ada"])["members"] == ["ada"]
    told: list[str] = []
    for slug in ("shop", "never"):
        code, answers, stderr = shared.client("--agent", "bob", "--project-slug", slug, direct=direct).end()
        assert (code, answers) == (2, [])
        told.append(stderr.replace(slug, "it"))
    assert told == ["rookery stdio: there is no project it (known: default)\n"] * 2
    assert shared.session("--agent", "ada", "--project-slug", "shop", direct=direct).call("ping")["status"] == "pong"


def test_a_live_session_loses_the_project_with_its_next_call_and_gets_it_back(
    shared: Place, owner: Client, direct: bool
) -> None:
    owner.call("set_project_members", project="shop", agents="everyone")
    bob = shared.session("--agent", "bob", "--project-slug", "shop", direct=direct)
    assert bob.call("ping")["status"] == "pong"
    owner.call("set_project_members", project="shop", agents=["ada"])
    error = bob.call("ping")["error"]
    assert (error["code"], error["message"]) == ("NOT_FOUND", "there is no project shop")
    assert "shop" not in error["hint"]
    owner.call("set_project_members", project="shop", agents=["ada", "bob"])
    assert bob.call("ping")["status"] == "pong"
