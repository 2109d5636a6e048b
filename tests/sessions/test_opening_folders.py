"""Where agents work: where their work is, else in a folder of their own. Never where the server was started."""

import os
import stat
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from rookery.core.errors import ServiceUnavailable
from rookery.domains.a2a import inbound
from rookery.domains.a2a.inbound import Incoming
from rookery.sessions.events import SessionEvent
from rookery.sessions.folders import OwnFolders
from tests.jobs.working import settled
from tests.sessions.agents import Puppet, Puppets, obedient
from tests.sessions.stage import Stage

pytestmark = pytest.mark.anyio


@pytest.fixture
def puppets(stage: Stage) -> Puppets:
    made = Puppets()
    stage.use(made)
    return made


def home(stage: Stage) -> str:
    return os.path.realpath(stage.platform.settings.home)


async def job(stage: Stage, **where: Any) -> None:
    """Let an agent do a task for a job."""
    agent, calls = stage.fleet.actor(session="ses-1", **where), stage.platform.calls
    stage.write(lambda tx: inbound.submit(tx, calls, agent, Incoming(text="tea")))
    async with stage.at_work():
        await settled(stage.platform, ahead_ms=2_000)


def test_what_stands_where_a_folder_should_be_is_not_worked_in(tmp_path: Path) -> None:
    folders = OwnFolders(str(tmp_path))
    (tmp_path / "sessions").mkdir()
    os.symlink("/", folders.path("link"))
    Path(folders.path("file")).touch()
    for session_id in ("link", "file"):
        with pytest.raises(ServiceUnavailable, match="cannot be made"):
            folders.made(session_id)


def test_every_session_has_a_folder_of_its_own_whatever_it_is_called(tmp_path: Path) -> None:
    folders = OwnFolders(str(tmp_path))
    ids = ["ses_1", "a:b", "a_b", "../a_b", "..", ".", "", "/", "é" * 300, "x" * 300, "x" * 301]
    paths = {folders.made(each) for each in ids}
    assert len(paths) == len(ids)
    assert {os.path.dirname(path) for path in paths} == {str(tmp_path / "sessions")}
    assert {stat.S_IMODE(os.stat(path).st_mode) for path in (*paths, tmp_path / "sessions")} == {0o700}


async def test_a_session_without_a_project_folder_works_in_one_of_its_own(stage: Stage, puppets: Puppets) -> None:
    session = stage.open()
    async with stage.at_work():
        await stage.turn(session.id, "one")
        puppets.made[0].alive = False
        await stage.turn(session.id, "two")
    folder = os.path.join(home(stage), "sessions", session.id)
    assert [agent.launch.cwd for agent in puppets.made] == [folder, folder]
    assert stat.S_IMODE(os.stat(folder).st_mode) == 0o700


async def test_so_does_one_that_a_job_starts_and_no_empty_folder_is_left(stage: Stage, puppets: Puppets) -> None:
    await job(stage)
    (agent,) = puppets.made
    own = OwnFolders(home(stage)).path(agent.launch.session)
    assert (agent.launch.cwd, os.path.exists(own), os.listdir(os.path.dirname(own))) == (own, False, [])


async def test_what_an_agent_leaves_in_its_folder_stays(stage: Stage, puppets: Puppets) -> None:
    async def play(puppet: Puppet) -> AsyncIterator[SessionEvent]:
        Path(puppet.launch.cwd or "", "tea.txt").write_text("green")
        async for event in obedient(puppet):
            yield event

    puppets.play = play
    await job(stage)
    assert Path(puppets.made[0].launch.cwd or "", "tea.txt").read_text() == "green"


async def test_a_job_of_a_project_is_done_in_its_folder(stage: Stage, puppets: Puppets, tmp_path: Path) -> None:
    folder = tmp_path / "shop"
    folder.mkdir()
    await stage.call("create_project", slug="shop", path=str(folder))
    await job(stage, project="shop")
    assert puppets.made[0].launch.cwd == os.path.realpath(folder)
    assert folder.is_dir()


async def test_a_job_of_a_project_that_is_not_on_this_machine_has_a_folder_of_its_own(
    stage: Stage, puppets: Puppets, tmp_path: Path
) -> None:
    await stage.call("create_project", slug="shop", path=str(tmp_path / "away"))
    await job(stage, project="shop")
    assert (puppets.made[0].launch.cwd or "").startswith(os.path.join(home(stage), "sessions", ""))
