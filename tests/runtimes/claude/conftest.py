"""A platform, an empty home, and a model that is not there unless the test brings one."""

import os
import shutil
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from tests.clients.scripted_model import ScriptedModel, Step
from tests.platform_fixtures import Fleet

FOREIGN = ("ANTHROPIC_", "CLAUDE", "XDG_", "DISABLE_")
Speaks = Callable[..., ScriptedModel]


@pytest.fixture
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The empty home of whoever runs the agent, and nothing of this machine."""
    folder = tmp_path / "user"
    folder.mkdir()
    for name in [name for name in os.environ if name.startswith(FOREIGN)]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-dummy")
    monkeypatch.setenv("CLAUDE_CODE_MAX_RETRIES", "1")
    return folder


@pytest.fixture
def speaks(user: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Speaks]:
    """Starts the model that follows a script, for the agents that are started afterwards."""
    models: list[ScriptedModel] = []

    def start(*script: Step) -> ScriptedModel:
        model = ScriptedModel(*script).__enter__()
        models.append(model)
        monkeypatch.setenv("ANTHROPIC_BASE_URL", model.url)
        return model

    yield start
    for model in models:
        if not model.gone:
            model.hang_up()


@pytest.fixture
def claude_fleet(tmp_path: Path, sqlite_template: Path, make_fleet: Callable[..., Fleet]) -> Fleet:
    """With the trials of this folder. What depends on the database is tested where no program has to start."""
    from tests.runtimes.claude import trials

    shutil.copyfile(sqlite_template, tmp_path / "rookery.db")
    return make_fleet(f"sqlite:///{tmp_path / 'rookery.db'}", extra={"trials": trials})


@pytest.fixture
async def stage(claude_fleet: Fleet, user: Path, tmp_path: Path) -> "AsyncIterator[object]":
    from tests.runtimes.claude.stage import Stage

    folder = tmp_path / "work"
    folder.mkdir()
    made = Stage(claude_fleet, folder)
    yield made
    await made.close()
