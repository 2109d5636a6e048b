"""Who may open a session, of which agent, and where its agent may work."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rookery.core.actor import Actor
from rookery.core.errors import ConfigurationError, InvalidParams, NotFound, PermissionDenied
from rookery.sessions.opening import Opening, Ways, open_session
from rookery.sessions.store import Row
from tests.platform_fixtures import Fleet

Open = Callable[..., Row]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "allowed"
    (folder / "deep" / "er").mkdir(parents=True)
    (tmp_path / "allowed-not").mkdir()
    return folder


@pytest.fixture
def open_one(fleet: Fleet, root: Path) -> Open:
    def make(opener: Actor | None = None, ways: dict[str, Any] | None = None, **wanted: Any) -> Row:
        known = Ways(**{"runtimes": ("scripted",), "default": "scripted", "roots": (str(root),), **(ways or {})})
        platform = fleet.platform
        return platform.database.direct(
            lambda tx: open_session(tx, platform.resolver, known, opener or fleet.owner, Opening(**wanted)), write=True
        )

    return make


def test_an_agent_opens_no_session(fleet: Fleet, open_one: Open) -> None:
    with pytest.raises(PermissionDenied, match="only people"):
        open_one(fleet.actor())


@pytest.mark.parametrize("where", ["/", "..", "../allowed-not", "link", "deep/../../allowed-not"])
def test_a_folder_outside_the_roots_is_refused_however_it_is_written(open_one: Open, root: Path, where: str) -> None:
    os.symlink(root.parent / "allowed-not", root / "link")
    with pytest.raises(PermissionDenied, match="outside the folders"):
        open_one(cwd=os.path.join(root, where))


@pytest.mark.parametrize("where", ["relative", "", "/nowhere/at/all", "/tmp/\0x"])
def test_what_is_no_folder_is_refused(open_one: Open, where: str) -> None:
    with pytest.raises(InvalidParams):
        open_one(cwd=where)


def test_without_roots_nothing_is_allowed_but_the_folder_of_the_project(
    fleet: Fleet, open_one: Open, root: Path
) -> None:
    with pytest.raises(PermissionDenied):
        open_one(ways={"roots": ()}, cwd=str(root))
    assert open_one(ways={"roots": ()}).cwd is None


async def test_a_project_brings_its_folder(fleet: Fleet, open_one: Open, root: Path) -> None:
    await fleet.call(fleet.owner, "create_project", slug="shop", path=str(root))
    assert open_one(ways={"roots": ()}, project="shop").cwd == str(root)
    assert open_one(ways={"roots": ()}, project="shop", cwd=str(root / "deep")).cwd == str(root / "deep")


def test_unknown_agents_projects_runtimes_and_servers_without_any_are_told(open_one: Open) -> None:
    with pytest.raises(NotFound):
        open_one(agent="nobody")
    with pytest.raises(NotFound):
        open_one(project="nowhere")
    with pytest.raises(InvalidParams, match="no runtime codex"):
        open_one(runtime="codex")
    with pytest.raises(ConfigurationError, match="starts no agents"):
        open_one(ways={"runtimes": (), "default": None})


def test_a_session_is_no_freer_than_its_agent(fleet: Fleet, open_one: Open) -> None:
    assert open_one(mode="ask").mode == "ask"
    assert open_one().mode == fleet.actor().mode


async def test_a_session_can_be_bound_to_an_issue(fleet: Fleet, open_one: Open) -> None:
    issue = await fleet.issue()
    session = open_one(issue=issue)
    assert (session.issue_id, session.binding["issue"]) == (issue, issue)
