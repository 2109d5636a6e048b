"""The project's gates, run by a worker on the claimed commit: whatever they do, each ends with a result, once."""

import asyncio
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from rookery.domains.tracker.advance import Advanced, advance
from rookery.domains.tracker.tables import pr_gates
from rookery.engine.gates import KIND, stored_gates
from rookery.engine.project_settings import OrchestratorProjects
from rookery.engine.tables import gate_runs
from rookery.jobs.store import Jobs
from rookery.jobs.tables import jobs
from tests.domains.tracker.claimant import Claimant, claimant
from tests.domains.tracker.desk import Desk, git
from tests.jobs.working import running_worker, settled
from tests.platform_fixtures import Fleet


@dataclass
class Line:
    """A project whose gates are run by a worker of its own."""

    desk: Desk

    async def claimed(self, *gates: tuple[str, bool], limit_s: int = 30, **binding: Any) -> Claimant:
        """Work that is committed and claimed, in a project that asks for these commands, each required or not."""
        at = await claimant(self.desk, "ready", **binding)
        set_up = [{"command": line, "label": f"gate {n}", "required": needed} for n, (line, needed) in enumerate(gates)]
        await self.desk.call(self.desk.person("repo"), "configure_project", gates=set_up)
        self.desk.fleet.platform.database.direct(
            lambda tx: OrchestratorProjects(tx, "default").update(at.issue.project_id, gate_limit_s=limit_s), write=True
        )
        (at.folder / "login.py").write_text("def login() -> bool:\n    return True\n", encoding="utf-8")
        git(at.folder, "add", "-A")
        git(at.folder, "commit", "-q", "-m", "log in")
        await at.claim()
        return at

    async def tick(self) -> list[Advanced]:
        platform = self.desk.fleet.platform
        return await advance(platform.calls, "default", "repo", run_gates=stored_gates(platform))

    async def work(self, within_s: float = 60.0) -> None:
        """Let a worker do what is due."""
        async with running_worker(self.desk.fleet.platform, queues=("runs",)):
            await settled(self.desk.fleet.platform, within_s=within_s)

    async def through(self) -> list[Advanced]:
        """From the claim to the pull request."""
        assert await self.tick() == []
        await self.work()
        return await self.tick()

    def results(self) -> Sequence[Any]:
        return self.desk.rows(sa.select(pr_gates).order_by(pr_gates.c.position))

    def runs(self) -> Sequence[Any]:
        return self.desk.rows(sa.select(gate_runs))

    def jobs(self) -> Sequence[Any]:
        return self.desk.rows(sa.select(jobs).where(jobs.c.kind == KIND))


@pytest.fixture
def line(database_url: str, make_fleet: Callable[..., Fleet], tmp_path: Path) -> Line:
    return Line(Desk(make_fleet(database_url, extra={}), tmp_path))


async def pr(line: Line, at: Claimant) -> dict[str, Any]:
    return (await line.desk.call(line.desk.owner, "get_issue", issue_id=at.issue.id)).pr


async def test_without_gates_nothing_is_run(line: Line) -> None:
    at = await line.claimed()
    assert [each.outcome for each in await line.tick()] == ["pr_opened"]
    assert (line.runs(), line.jobs()) == ([], [])
    assert (await pr(line, at))["risk_level"] == "low"


async def test_until_they_have_run_the_issue_stays_where_it_is(line: Line) -> None:
    at = await line.claimed(("true", True))
    for _ in range(3):
        assert await line.tick() == []
    assert line.desk.reload(at.issue).status == "in_progress"
    assert (len(line.jobs()), len(line.runs())) == (1, 1)
    assert line.runs()[0].head == git(at.folder, "rev-parse", "HEAD").strip()


async def test_many_who_ask_at_once_have_them_run_once(line: Line) -> None:
    ran = line.desk.folder / "ran"
    await line.claimed((f"echo once >> {ran}", True))
    await asyncio.gather(*(line.tick() for _ in range(6)))
    first, second = (running_worker(line.desk.fleet.platform, queues=("runs",)) for _ in range(2))
    async with first, second:
        await settled(line.desk.fleet.platform)
    assert [each.outcome for each in await line.tick()] == ["pr_opened"]
    await line.work()
    assert (ran.read_text(encoding="utf-8"), len(line.jobs())) == ("once\n", 1)


async def test_what_passes_is_kept_with_its_output(line: Line) -> None:
    at = await line.claimed(("python3 -c 'import login; print(login.login())'", True), ("echo two >&2", False))
    assert [each.outcome for each in await line.through()] == ["pr_opened"]
    first, second = line.results()
    assert (first.exit_code, first.output, first.required) == (0, "True", True)
    assert (second.exit_code, second.output, second.required) == (0, "two", False)
    assert (await pr(line, at))["risk_level"] == "low"
    assert at.desk.rows(sa.text("SELECT content FROM comments")) == []


BAD: dict[str, tuple[str, int | None, str]] = {
    "a command that does not exist": ("no-such-command --now", 127, "not found"),
    "a command that fails": ("echo wrong; exit 3", 3, "wrong"),
    "a command that never ends": ("echo begun; sleep 1000", -1, "stopped after 1 s"),
    "a command that kills its process group": ("echo begun; kill -9 0", -9, "begun"),
    "a command that is ended by itself": ("kill -TERM $$", -15, "exit code -15"),
    "a command that prints 10 MB": ("head -c 10000000 /dev/zero | tr '\\0' x; echo the end; exit 1", 1, "the end"),
    "a command that prints no text": ("printf 'a\\377\\000b'; exit 1", 1, "a\ufffdb"),
    "a command that leaves the folder": ("cd / && rm -rf ./no-such-file && exit 4", 4, ""),
}


@pytest.mark.parametrize("required", [True, False])
@pytest.mark.parametrize("kind", BAD)
async def test_a_gate_fails_with_its_words(line: Line, kind: str, required: bool) -> None:
    command, code, said = BAD[kind]
    at = await line.claimed((command, required), ("true", True), limit_s=1 if "never" in kind else 30)
    assert [each.outcome for each in await line.through()] == ["pr_opened"]
    failed, passed = line.results()
    assert (failed.exit_code, failed.required, passed.exit_code) == (code, required, 0)
    assert failed.output.endswith(said)
    assert len(failed.output) <= 100_000
    assert ((await pr(line, at))["risk_level"] == "high") is required
    (comment,) = line.desk.rows(sa.text("SELECT content FROM comments"))
    assert f"gate 0 (`{command}`" in comment.content
    assert line.desk.reload(at.issue).status == "review"


async def test_what_an_agent_left_in_its_worktree_does_not_count(line: Line) -> None:
    at = await line.claimed(("test ! -e leftover && test -e login.py && touch made-by-the-gate", True))
    (at.folder / "leftover").write_text("x", encoding="utf-8")
    await line.through()
    assert line.results()[0].exit_code == 0
    assert not (at.folder / "made-by-the-gate").exists()
    assert git(at.repository, "worktree", "list").count("\n") == 2


async def test_the_owners_secrets_are_not_in_the_environment(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROOKERY_KEY", "a-secret")
    monkeypatch.setenv("SSH_AUTH_SOCK", "/srv/agent")
    await line.claimed(("env", True))
    await line.through()
    assert "a-secret" not in line.results()[0].output
    assert "SSH_AUTH_SOCK" not in line.results()[0].output


async def test_a_repository_that_is_gone_fails_every_gate_with_the_reason(line: Line) -> None:
    at = await line.claimed(("true", True), ("exit 0", False))
    assert await line.tick() == []
    hidden = at.repository.with_name("away")
    at.repository.rename(hidden)
    at.repository.mkdir()
    await line.work()
    at.repository.rmdir()
    hidden.rename(at.repository)
    assert [each.outcome for each in await line.tick()] == ["pr_opened"]
    assert [gate.exit_code for gate in line.results()] == [-1, -1]
    assert all("could not be run" in gate.output for gate in line.results())
    assert (await pr(line, at))["risk_level"] == "high"


async def test_a_gate_that_the_project_requires_since_has_not_passed(line: Line) -> None:
    at = await line.claimed(("true", False))
    assert await line.tick() == []
    await line.work()
    gates = [{"command": command, "label": command, "required": True} for command in ("true", "make test")]
    await line.desk.call(line.desk.person("repo"), "configure_project", gates=gates)
    await line.tick()
    assert [(gate.command, gate.exit_code, gate.required) for gate in line.results()] == [
        ("true", 0, True),
        ("make test", -1, True),
    ]
    assert (await pr(line, at))["risk_level"] == "high"


async def test_results_are_those_of_the_claim_and_a_new_claim_has_its_own(line: Line) -> None:
    at = await line.claimed(("cat login.py", True))
    assert await line.tick() == []
    await line.work()
    (at.folder / "login.py").write_text("changed\n", encoding="utf-8")
    git(at.folder, "commit", "-q", "-am", "again")
    await at.claim()
    assert [each.outcome for each in await line.tick()] == ["superseded"]
    await line.work()
    assert [each.outcome for each in await line.tick()] == ["pr_opened"]
    assert line.results()[0].output == "changed"
    heads = {row.head for row in line.runs()}
    assert (len(line.jobs()), len(heads)) == (2, 2)


async def test_a_claim_that_nobody_waits_for_any_more_runs_nothing(line: Line) -> None:
    ran = line.desk.folder / "ran"
    at = await line.claimed((f"touch {ran}", True))
    assert await line.tick() == []
    await line.desk.call(line.desk.person("repo"), "set_issue_status", issue_id=at.issue.id, status="cancelled")
    assert [each.outcome for each in await line.tick()] == ["ignored"]
    await line.work()
    assert not ran.exists()
    assert line.runs()[0].error


async def test_gates_whose_job_was_cancelled_have_failed(line: Line) -> None:
    await line.claimed(("true", True))
    assert await line.tick() == []
    (job,) = line.jobs()
    line.desk.fleet.platform.database.direct(lambda tx: Jobs(tx, "default").cancel(job.id), write=True)
    assert await line.tick() == []
    assert [each.outcome for each in await line.tick()] == ["pr_opened"]
    assert line.results()[0].output == "It could not be run. Its job was cancelled."


WORKER = """
import asyncio, sys
from rookery.app import make_platform
from rookery.jobs.worker import Worker
from rookery.settings import load_settings

settings = load_settings(sys.argv[1], database=sys.argv[2])
platform = make_platform(settings, prepare=False)
asyncio.run(Worker(platform, concurrency=2, queues=("runs",), lease_s=2.0, grace_s=0.5).run())
"""


async def test_a_worker_that_is_killed_while_a_gate_runs_leaves_it_to_the_next(line: Line) -> None:
    """Killed with SIGKILL in the middle of the gate: nothing of the gate is left, and the next worker runs it."""
    begun, ran = line.desk.folder / "begun", line.desk.folder / "ran"
    os.mkfifo(begun)
    await line.claimed((f"if [ ! -e {ran} ]; then touch {ran}; echo $$ > {begun}; sleep 1000; fi; echo done", True))
    assert await line.tick() == []
    home = line.desk.fleet.platform.settings.home
    url = line.desk.fleet.platform.database.url
    worker = await asyncio.create_subprocess_exec(sys.executable, "-c", WORKER, home, url, stderr=subprocess.DEVNULL)
    gate = int(await asyncio.wait_for(asyncio.to_thread(begun.read_text), 60))
    watched = os.pidfd_open(gate)
    worker.send_signal(signal.SIGKILL)
    await worker.wait()
    ended, _, _ = await asyncio.to_thread(select.select, [watched], [], [], 60)
    os.close(watched)
    assert ended
    assert line.runs()[0].ended_ms is None
    assert await line.tick() == []
    line.desk.change(sa.update(jobs).values(lease_ms=0))
    await line.work()
    assert [each.outcome for each in await line.tick()] == ["pr_opened"]
    (result,) = line.results()
    assert (result.exit_code, result.output) == (0, "done")
    assert len(line.jobs()) == 1
