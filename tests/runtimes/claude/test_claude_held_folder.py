"""Sessions that the platform holds with the real Claude Code keep to their folder, unless a person lets them out."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.clients.scripted_model import Say, Use

pytest.importorskip("claude_agent_sdk", reason="the extra is not installed: pip install 'rookery[claude]'")

from rookery.core.actor import Mode
from rookery.runtimes.claude import ClaudeRuntime
from rookery.sessions.store import Row
from tests.platform_fixtures import Fleet
from tests.runtimes.claude.conftest import Speaks
from tests.runtimes.claude.stage import CONFIG
from tests.sessions.stage import Stage


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A folder with something in it, and something beside it that is nobody's business."""
    folder = tmp_path / "work"
    (folder / ".git" / "hooks").mkdir(parents=True)
    (folder / "inside").write_text("what is inside")
    (tmp_path / "outside").write_text("what is outside")
    return folder


@pytest.fixture
def held(
    tmp_path: Path, work: Path, user: Path, sqlite_template: Path, make_fleet: Callable[..., Fleet]
) -> Callable[[Mode], tuple[Stage, Row]]:
    shutil.copyfile(sqlite_template, tmp_path / "rookery.db")
    fleet = make_fleet(f"sqlite:///{tmp_path / 'rookery.db'}", session_roots=(str(work),))

    def opened(mode: Mode) -> tuple[Stage, Row]:
        stage = Stage(fleet, ClaudeRuntime(fleet.platform, CONFIG))
        return stage, stage.open(mode=mode, cwd=str(work))

    return opened


async def refused(stage: Stage, session: Row, *tools: str) -> list[str]:
    """Let the agent be told no for each of these, in this order; what its calls gave."""
    async with stage.at_work():
        message = stage.send(session.id, "go on")
        for tool in tools:
            (ask,) = await stage.asked()
            assert ask.subject == tool
            stage.answer(ask.id, "deny")
        await stage.done(session.id, message)
    assert len(stage.asks(None)) == len(tools)
    return [event.data["text"] for event in stage.events(session.id, "tool_result")]


async def test_nothing_outside_the_folder_is_read_unasked(
    held: Callable[[Mode], tuple[Stage, Row]], speaks: Speaks, work: Path
) -> None:
    outside = str(work.parent / "outside")
    search = {"pattern": "what", "path": outside, "output_mode": "content"}
    speaks(
        Use("Read", {"file_path": outside}),
        Use("Grep", search),
        Use("Read", {"file_path": str(work / "inside")}),
        Say(""),
    )
    results = await refused(*held("ask"), "Read", "Grep")
    assert ["outside" in text for text in results] == [False, False, False]
    assert "what is inside" in results[2]


async def test_nothing_that_makes_other_programs_run_is_written_unasked(
    held: Callable[[Mode], tuple[Stage, Row]], speaks: Speaks, work: Path
) -> None:
    hook, plain = work / ".git" / "hooks" / "pre-commit", work / "plain"
    speaks(*(Use("Write", {"file_path": str(path), "content": "x"}) for path in (hook, plain)), Say(""))
    await refused(*held("act"), "Write")
    assert (hook.exists(), plain.exists()) == (False, True)
