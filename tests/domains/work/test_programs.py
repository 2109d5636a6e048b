"""The owner's commands: what they print is kept in part, and nothing of them outlives its time."""

import asyncio
import os
import time
from pathlib import Path

import pytest

from rookery.lifecycle.leftovers import RUN_MARK
from rookery.lifecycle.programs import OUTPUT_CHARACTERS, run_command, run_program


@pytest.mark.anyio
async def test_a_command_that_takes_too_long_is_stopped_with_everything_it_started(tmp_path: Path) -> None:
    started = time.monotonic()
    ran = await run_command("echo begun; (sleep 60; touch late) & sleep 60", str(tmp_path), 0.5)
    assert time.monotonic() - started < 10
    assert (ran.ok, ran.output) == (False, "begun\nstopped after 0.5 s")
    assert (tmp_path / "late").exists() is False


@pytest.mark.anyio
async def test_what_a_command_leaves_in_the_background_ends_with_it(tmp_path: Path) -> None:
    ran = await run_command("sleep 60 & echo $! > pid; echo done", str(tmp_path), 20)
    assert (ran.ok, ran.output) == (True, "done")
    await gone(int((tmp_path / "pid").read_text()))


@pytest.mark.anyio
@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="the system shows no process")
@pytest.mark.parametrize("end", ["echo done", "sleep 60"], ids=["in time", "late"])
async def test_what_begins_a_session_of_its_own_ends_with_the_command_all_the_same(tmp_path: Path, end: str) -> None:
    # It starts another one and is no more: nobody's child, in nobody's group.
    daemon = "setsid sh -c 'sleep 60 & echo $! > pid; mv pid there'"
    bystander = await asyncio.create_subprocess_exec("sleep", "60", env={**os.environ, RUN_MARK: "0"})
    try:
        ran = await run_command(f"{daemon}; while [ ! -e there ]; do sleep 0.01; done; {end}", str(tmp_path), 3)
        await gone(int((tmp_path / "there").read_text()))
        assert ran.ok is (end == "echo done")
        assert bystander.returncode is None
    finally:
        bystander.kill()
        await bystander.wait()


@pytest.mark.anyio
async def test_only_our_own_programs_can_use_the_owners_ssh_keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSH_AUTH_SOCK", "/run/agent")
    assert "SSH_AUTH_SOCK=/run/agent" in (await run_program(("env",), str(tmp_path), 5)).output
    assert "SSH_AUTH_SOCK" not in (await run_command("env", str(tmp_path), 5)).output
    monkeypatch.delenv("SSH_AUTH_SOCK")
    assert "SSH_AUTH_SOCK" not in (await run_program(("env",), str(tmp_path), 5)).output


@pytest.mark.anyio
async def test_whoever_is_cancelled_leaves_no_process(tmp_path: Path) -> None:
    task = asyncio.create_task(run_command("echo $$ > pid; mv pid there; sleep 60", str(tmp_path), 60))
    deadline = time.monotonic() + 20
    while not (tmp_path / "there").exists():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await gone(int((tmp_path / "there").read_text()))


@pytest.mark.anyio
async def test_a_program_that_is_not_there_has_failed(tmp_path: Path) -> None:
    assert not (await run_program(("no-such-program-here",), str(tmp_path), 5)).ok
    ran = await run_command("no-such-program-here", str(tmp_path), 5)
    assert not ran.ok
    assert "not found" in ran.output


@pytest.mark.anyio
async def test_only_the_end_of_a_long_output_is_kept(tmp_path: Path) -> None:
    ran = await run_command("seq 1 200000; printf 'a\\0b\\377'; echo the end >&2; exit 4", str(tmp_path), 30)
    assert not ran.ok
    assert len(ran.output) == OUTPUT_CHARACTERS
    assert ran.output.endswith("ab\ufffdthe end")


@pytest.mark.anyio
async def test_a_command_sees_no_secret_of_the_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROOKERY_MNEMONIC", "hush hush")
    monkeypatch.setenv("GH_TOKEN", "hush too")
    monkeypatch.setenv("LC_TIME", "C")
    ran = await run_command("env", str(tmp_path), 5)
    assert ran.ok
    assert "hush" not in ran.output
    assert "CI=1" in ran.output
    assert "LC_TIME=C" in ran.output


async def gone(process: int) -> None:
    """Wait until a process has ended; one that nobody has reaped yet counts as ended."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            os.kill(process, 0)
            if Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return
        except (ProcessLookupError, FileNotFoundError):
            return
        await asyncio.sleep(0.01)
    raise AssertionError(f"process {process} is still there")
