"""Workers that are killed: `python -m tests.domains.workflows.victim URL HOME`.

For each line `N WHEN` on standard input a child is forked that works on the jobs of workflows. It is killed (signal 9)
at its Nth write, just `before` or just `after` the commit; without such a write it ends when every run has ended. When
the child is gone, `gone` is said, with the signal that ended it.
"""

import asyncio
import os
import random
import signal
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

import sqlalchemy as sa

from rookery.app import Platform, make_platform
from rookery.core.actor import Actor
from rookery.db.tx import Tx
from rookery.domains.workflows.tables import workflow_runs
from rookery.jobs.kinds import Kind
from rookery.jobs.store import Jobs
from rookery.jobs.worker import Worker
from rookery.lifecycle.sessions import Outcome
from rookery.plugins import load_domains
from rookery.settings import Settings

POLL_S = 0.02
LIFE_S = 120.0


def agent_says(prompt: str, failures: int) -> Outcome:
    """How a session ends: it breaks as often as its prompt begins with `!`, and then says a word of its own."""
    if failures < len(prompt) - len(prompt.lstrip("!")):
        return Outcome("failed", error=f"broke {failures + 1} times")
    return Outcome("done", output=random.Random(prompt).choice(["a", "bab", "none"]))


@dataclass
class Agent:
    """A session whose end depends on its prompt and on how often it was tried."""

    platform: Platform
    prompt: str
    key: str
    tenant: str

    @property
    def id(self) -> str:
        return f"session:{self.key}"

    async def wait(self) -> Outcome:
        job = await self.platform.database.read(lambda tx: Jobs(tx, self.tenant).by_key(self.key))
        assert job is not None
        return agent_says(self.prompt, job.failures)

    async def stop(self) -> None:
        return None


@dataclass
class Agents:
    """A runtime of such sessions."""

    platform: Platform

    async def start_session(self, actor: Actor, prompt: str, *, key: str, **_: Any) -> Agent:
        return Agent(self.platform, prompt, key, actor.tenant)


@dataclass
class Ground:
    """A platform whose worker does what workflows ask for, and leaves all other work lying."""

    platform: Platform

    @property
    def kinds(self) -> Mapping[str, Kind]:
        return {name: kind for name, kind in self.platform.kinds.items() if name.startswith("workflows.")}

    def __getattr__(self, name: str) -> Any:
        return getattr(self.platform, name)


def doom(platform: Platform, writes: int, when: str) -> None:
    """Let this process die at its Nth write."""
    left = writes
    write = platform.database.write

    async def deadly(work: Callable[[Tx], Any], **how: Any) -> Any:
        nonlocal left
        left -= 1
        dying = left == 0

        def whole(tx: Tx) -> Any:
            value = work(tx)
            if dying and when == "before":
                os.kill(os.getpid(), signal.SIGKILL)
            return value

        value = await write(whole, **how)
        if dying:
            os.kill(os.getpid(), signal.SIGKILL)
        return value

    platform.database.write = deadly


def any_open(tx: Tx) -> bool:
    wanted = sa.select(workflow_runs.c.id).where(workflow_runs.c.status == "running").limit(1)
    return tx.one(wanted) is not None


async def work(platform: Platform) -> None:
    """Work until every run has ended. One that never does ends the process with an error."""
    worker = Worker(cast(Any, Ground(platform)), concurrency=4, lease_s=60)
    task = asyncio.create_task(worker.run())
    async with asyncio.timeout(LIFE_S):
        while await platform.database.read(any_open):
            await asyncio.wait([task], timeout=POLL_S)
    worker.stop()
    await task


def live(settings: Settings, writes: int, when: str) -> None:
    platform = make_platform(settings)
    cast("dict[str, Any]", platform.calls.facts)["runtime"] = Agents(platform)
    doom(platform, writes, when)
    asyncio.run(work(platform))
    platform.close()


def main(url: str, home: str) -> None:
    settings = Settings(home=home, database=url, plugins=False, work_task_max_per_day=100_000)
    # What is imported here need not be by every child.
    load_domains(plugins=False)
    for line in sys.stdin:
        writes, when = line.split()
        child = os.fork()
        if child == 0:
            live(settings, int(writes), when)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        os.write(1, f"gone {os.WTERMSIG(status) if os.WIFSIGNALED(status) else -os.WEXITSTATUS(status)}\n".encode())


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
