"""A worker that dies before or after any of its commits: the attempt ends once, and its issue is not stuck.

The worker's process is cut off from the database, as if it were killed: nothing that it writes from then on arrives.
Another one takes over when the lease of the job is over.
"""

import asyncio
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Literal

import pytest
import sqlalchemy as sa

from rookery.app import Platform, make_platform
from rookery.core.errors import Conflict
from rookery.db.postgres import PostgresDatabase
from rookery.domains.tracker.tables import phase_claims
from rookery.engine.tables import dispatches
from rookery.jobs.worker import Worker
from rookery.lifecycle.run_tables import agent_runs
from rookery.sessions.tables import agent_sessions
from tests.engine.crew import Crew, Playing, Started, build
from tests.jobs.working import settled
from tests.platform_fixtures import share_compiled

LIMIT_S = 60.0
When = Literal["before", "after"]
LEASE_S = 0.4
MOST = 80
SOME = (7, 11, 18, 25, 33)
"""From the beginning of the attempt to its claim."""


class Killed(Exception):
    """The process is gone; nobody handles this."""


class Doomed:
    """Cuts a platform off from its database at its n-th commit, before it or right after it."""

    def __init__(self, platform: Platform, at: int, when: When) -> None:
        self.left = at
        self.when = when
        self.dead = asyncio.Event()
        self.database = platform.database
        for name, guard in (("change", self._writing), ("write", self._writing), ("read", self._reading)):
            setattr(self.database, name, guard(getattr(self.database, name)))

    def _writing(self, write: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def guarded(*given: Any, **how: Any) -> Any:
            self._check()
            self.left -= 1
            if self.left == 0 and self.when == "before":
                self.dead.set()
                self._check()
            done = await write(*given, **how)
            if self.left <= 0:
                self.dead.set()
                self._check()
            return done

        return guarded

    def _reading(self, read: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def guarded(*given: Any, **how: Any) -> Any:
            self._check()
            return await read(*given, **how)

        return guarded

    def _check(self) -> None:
        if self.dead.is_set():
            raise Killed


async def killed_at(platform: Platform, at: int, when: When) -> bool:
    """Let a worker work until its n-th commit; False if it was done before that."""
    doomed = Doomed(platform, at, when)
    worker = Worker(platform, concurrency=4, lease_s=LEASE_S, grace_s=0)
    working = asyncio.create_task(worker.run())
    idle = asyncio.create_task(_until_idle(platform, doomed))
    try:
        async with asyncio.timeout(LIMIT_S):
            await asyncio.wait([idle, asyncio.ensure_future(doomed.dead.wait())], return_when=asyncio.FIRST_COMPLETED)
    finally:
        worker.stop(at_once=True)
        idle.cancel()
        await asyncio.gather(working, idle, return_exceptions=True)
    return doomed.dead.is_set()


async def _until_idle(platform: Platform, doomed: Doomed) -> None:
    try:
        await settled(platform, within_s=LIMIT_S)
    except Killed:
        await doomed.dead.wait()


def check(crew: Crew, issue: sa.Row[Any], at: int) -> str:
    """What has to hold once another worker has taken over; how the attempt ended."""
    (row,) = crew.rows(sa.select(dispatches).where(dispatches.c.issue_id == issue.id))
    claims = len(crew.rows(sa.select(phase_claims).where(phase_claims.c.issue_id == issue.id)))
    assert (row.state, claims in (0, 1)) == ("ended", True), at
    assert row.outcome == ("succeeded" if claims else "lost"), (at, row.error)
    status, holder = crew.standing(issue)
    assert (status, holder) == (("in_progress", f"dispatch:{row.id}") if claims else ("todo", None)), at
    live = sa.select(agent_runs.c.id).where(agent_runs.c.status == "running")
    assert crew.rows(live) == [], at
    open_sessions = sa.select(agent_sessions.c.id).where(agent_sessions.c.state != "ended")
    assert crew.rows(open_sessions) == [], at
    return row.outcome


async def is_refused(crew: Crew, started: Started) -> bool:
    """Whether an agent that has outlived its worker can no longer claim anything."""
    actor = replace(started.actor, session=started.how["key"])
    claim = {"completed_phase": "ready", "summary": "late", "project_path": str(started.folder)}
    try:
        await crew.call(await crew.runtime.inner.renew(actor), "complete_phase", **claim)
    except Conflict:
        return True
    return False


@contextmanager
def victim(crew: Crew) -> Generator[Platform]:
    """Another process on the same database, of which nothing is left afterwards."""
    platform = make_platform(crew.platform.settings, extra={}, prepare=False)
    share_compiled(platform.database)
    try:
        yield platform
    finally:
        platform.close()
        if isinstance(platform.database, PostgresDatabase):
            platform.database.engine.dispose()


async def died_at(crew: Crew, at: int, when: When) -> str | None:
    """How an attempt ended whose worker died at its n-th commit; None if it had no more than that."""
    issue = await crew.todo(f"crash {at}")
    crew.queue(issue)
    with victim(crew) as platform:
        playing = Playing(platform, build)
        if not await killed_at(platform, at, when):
            return None
    await crew.work()
    outcome = check(crew, issue, at)
    if outcome == "lost":
        for started in playing.started:
            assert await is_refused(crew, started), at
        again = await crew.dispatched(issue, attempt=2)
        assert crew.came_to(again) == ("ended", "succeeded", None), at
    return outcome


@pytest.mark.anyio
@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_worker_may_die_at_some_commits(crew: Crew, when: When) -> None:
    await crew.open(build)
    for at in SOME:
        assert await died_at(crew, at, when) in ("lost", "succeeded")


@pytest.mark.slow
@pytest.mark.anyio
@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_worker_may_die_at_any_commit(crew: Crew, when: When) -> None:
    await crew.open(build)
    outcomes: list[str] = []
    for at in range(1, MOST):
        outcome = await died_at(crew, at, when)
        if outcome is None:
            break
        outcomes.append(outcome)
    # Some died before the claim and some after it.
    assert set(outcomes) == {"lost", "succeeded"}
    assert len(outcomes) < MOST - 1
