"""Agents that obey a script: for tests and the demo."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from rookery.lifecycle.sessions import Outcome, Runtime, Session
from rookery.runtimes.scripted import Scripted
from tests.domains.work.workshop import git, make_repository
from tests.platform_fixtures import Fleet


@pytest.fixture
def fleet(tmp_path: Path, make_fleet: Callable[..., Fleet]) -> Fleet:
    return make_fleet(f"sqlite:///{tmp_path / 'rookery.db'}", extra={})


async def play(fleet: Fleet, *script: str, cwd: Path | None = None, **how: object) -> Outcome:
    runtime: Runtime = Scripted(fleet.platform.calls)
    folder = None if cwd is None else str(cwd)
    session = await runtime.start_session(fleet.actor(), "\n".join(script), key="k", cwd=folder, **how)  # type: ignore[arg-type]
    return await session.wait()


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("script", "error"),
    [
        ("!dance", "no such instruction: !dance"),
        ("!fail it rains", "it rains"),
        ("!write ../x y", "../x is no file in the session's folder"),
        ("!write /etc/x y", "/etc/x is no file in the session's folder"),
        ("!write", "nothing is no file in the session's folder"),
        ("!write link/x y", "link/x is no file in the session's folder"),
        ("!wait long", "could not convert string to float: 'long'"),
        ("!call ping [1]", "!call ping: the arguments are no JSON object"),
        ("!call ping {", "!call ping: the arguments are no JSON object"),
        ("!spend 3", "the budget of 2 dollars is used up"),
    ],
)
async def test_what_cannot_be_done_ends_the_session(fleet: Fleet, tmp_path: Path, script: str, error: str) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "link").symlink_to(tmp_path)
    outcome = await play(fleet, "!say hello", script, "!say never", cwd=folder, budget_usd=2.0)
    assert (outcome.status, outcome.output, outcome.error) == ("failed", "hello", error)


@pytest.mark.anyio
async def test_without_a_folder_or_a_platform_nothing_can_be_written_or_called(fleet: Fleet) -> None:
    assert (await play(fleet, "!write a b")).error == "this session has no folder"
    session = await Scripted().start_session(fleet.actor(), "!call ping", key="k")
    assert (await session.wait()).error == "this runtime was given no platform to call"


@pytest.mark.anyio
async def test_a_prompt_without_a_script_is_said_back(fleet: Fleet) -> None:
    assert await play(fleet, "what is", " !say this") == Outcome("done", output="what is\n !say this")


@pytest.mark.anyio
async def test_files_are_written_and_committed(fleet: Fleet, tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "shop")
    script = ["!write deep/a.txt one\\ntwo", "!append deep/a.txt three", "!commit add a", "!commit nothing", "!spend 1"]
    assert await play(fleet, *script, cwd=folder) == Outcome("done", cost_usd=1.0, turns=5)
    assert (folder / "deep/a.txt").read_text(encoding="utf-8") == "one\ntwo\nthree\n"
    assert git(folder, "log", "--format=%an %s").splitlines() == ["default add a", "Ada first"]


@pytest.mark.anyio
async def test_tools_are_called_with_the_actors_rights_and_a_refusal_is_said(fleet: Fleet) -> None:
    outcome = await play(fleet, "!call ping", "!call create_agent {}", "!say end")
    first, second, third = outcome.output.split("\n")
    assert first.startswith("ping: ")
    assert second.startswith("create_agent was refused: PERMISSION_DENIED")
    assert (third, outcome.status) == ("end", "done")


@pytest.mark.anyio
async def test_turns_are_counted(fleet: Fleet) -> None:
    assert (await play(fleet, "!say a", "!say b", max_turns=2)).status == "done"
    outcome = await play(fleet, "!say a", "!say b", "!say c", max_turns=2)
    assert (outcome.status, outcome.output, outcome.error) == ("failed", "a\nb", "not done after 2 turns")


@pytest.mark.anyio
async def test_while_a_session_lives_its_key_means_that_one(fleet: Fleet) -> None:
    runtime = Scripted(fleet.platform.calls)
    first: Session = await runtime.start_session(fleet.actor(), "!wait 60", key="k")
    same = await runtime.start_session(fleet.actor(), "!say other", key="k")
    other = await runtime.start_session(fleet.actor(), "!say other", key="l")
    assert (same.id, other.id != first.id) == (first.id, True)
    assert (await other.wait()).output == "other"
    await first.stop()
    again = await runtime.start_session(fleet.actor(), "!say again", key="k")
    assert again.id != first.id
    assert (await again.wait()).output == "again"


@pytest.mark.anyio
async def test_a_stopped_session_has_failed_for_everyone_who_waits(fleet: Fleet) -> None:
    session = await Scripted().start_session(fleet.actor(), "!wait 600", key="k")
    waiting = [asyncio.create_task(session.wait()) for _ in range(2)]
    started = time.monotonic()
    await session.stop()
    assert await asyncio.gather(*waiting) == [Outcome("failed", error="stopped", turns=0)] * 2
    assert await session.wait() == Outcome("failed", error="stopped", turns=0)
    await session.stop()
    assert time.monotonic() - started < 10


@pytest.mark.anyio
async def test_whoever_stops_waiting_does_not_stop_the_session(fleet: Fleet) -> None:
    session = await Scripted().start_session(fleet.actor(), "!wait 0.05\n!say done", key="k")
    waiting = asyncio.create_task(session.wait())
    await asyncio.sleep(0)
    waiting.cancel()
    assert (await session.wait()).output == "done"
