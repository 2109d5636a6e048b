"""What happens between the queue and the start, or under an agent's hands: the attempt ends without harm to anybody."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
import sqlalchemy as sa

from rookery.core.actor import Actor
from rookery.engine import running
from rookery.engine.dispatches import Dispatches
from rookery.lifecycle.issue_tables import issues
from rookery.lifecycle.pauses import Pauses
from rookery.lifecycle.sessions import Outcome
from tests.engine.crew import Crew, build
from tests.jobs.working import running_worker, settled

LIMIT_S = 30.0


async def claimed_by_another(crew: Crew, issue: sa.Row[Any]) -> None:
    other = crew.fleet.actor(profile="worker", project="shop", session="outside")
    await crew.call(other, "claim_issue", issue_id=issue.id)


async def cancelled(crew: Crew, issue: sa.Row[Any]) -> None:
    await crew.call(crew.person("shop"), "set_issue_status", issue_id=issue.id, status="cancelled")


async def moved(crew: Crew, issue: sa.Row[Any]) -> None:
    await crew.project("elsewhere")
    person = crew.fleet.actor(as_owner=True, project="shop", issue=issue.id)
    await crew.call(person, "move_issue", target_project_id="elsewhere", reason="it belongs there")


async def put_into_another_phase(crew: Crew, issue: sa.Row[Any]) -> None:
    crew.change(sa.update(issues).where(issues.c.id == issue.id).values(phase="research"))


async def made_to_wait(crew: Crew, issue: sa.Row[Any]) -> None:
    needed = await crew.todo("first this")
    await crew.call(crew.person("shop"), "edit_issue", issue_id=issue.id, depends_on=[needed.id])


async def switched_off(crew: Crew, issue: sa.Row[Any]) -> None:
    crew.set(enabled=False)


async def paused(crew: Crew, issue: sa.Row[Any]) -> None:
    crew.write(lambda tx: Pauses(tx, "default").pause("all", reason="audit", by=crew.owner.subject))


async def shut_out(crew: Crew, issue: sa.Row[Any]) -> None:
    await crew.call(crew.owner, "set_project_members", project="shop", agents=[])


OVERTAKEN = [
    claimed_by_another,
    cancelled,
    moved,
    put_into_another_phase,
    made_to_wait,
    switched_off,
    paused,
    shut_out,
]


@pytest.mark.anyio
@pytest.mark.parametrize("meanwhile", OVERTAKEN, ids=lambda way: way.__name__)
async def test_what_changed_before_the_start_is_left_as_it_is(
    crew: Crew, meanwhile: Callable[[Crew, sa.Row[Any]], Awaitable[None]]
) -> None:
    await crew.open()
    issue = await crew.todo()
    queued = crew.queue(issue)
    await meanwhile(crew, issue)
    before = crew.reload(issue)
    await crew.work()
    state, outcome, error = crew.came_to(queued)
    assert (state, outcome, bool(error)) == ("ended", "cancelled", True)
    assert crew.reload(issue) == before
    assert (crew.runtime.started, crew.said(issue), len(crew.runs())) == ([], [], 0)


@dataclass
class Patient:
    """A runtime whose one session ends when it is told to, or when it is stopped."""

    started: list[Actor] = field(default_factory=list[Actor])
    stopped: bool = False

    def __post_init__(self) -> None:
        self.id = "ses-patient"
        self.go = asyncio.Event()

    async def start_session(self, actor: Actor, prompt: str, **how: Any) -> "Patient":
        self.started.append(actor)
        return self

    async def wait(self) -> Outcome:
        await self.go.wait()
        return Outcome("done", output="bye")

    async def stop(self) -> None:
        self.stopped = True
        self.go.set()


async def until(reached: Callable[[], Any]) -> Any:
    async with asyncio.timeout(LIMIT_S):
        while not (found := reached()):
            await asyncio.sleep(0.01)
    return found


async def under_way(crew: Crew, meanwhile: Callable[[sa.Row[Any], sa.Row[Any]], Awaitable[None]]) -> Sequence[Any]:
    """An attempt during which something happens; its dispatch, its issue and its runtime afterwards."""
    runtime = Patient()
    crew.platform.calls.facts["runtime"] = runtime  # pyright: ignore[reportIndexIssue]
    issue = await crew.todo()
    queued = crew.queue(issue)
    async with running_worker(crew.platform):
        await until(lambda: runtime.started and crew.row(queued).run_id)
        await meanwhile(crew.row(queued), issue)
        await settled(crew.platform, within_s=LIMIT_S)
    return crew.row(queued), crew.reload(issue), runtime


@pytest.mark.anyio
async def test_an_issue_that_is_taken_from_the_agent_stops_it(crew: Crew, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "BEAT_S", 0.02)
    await crew.open()
    row, issue, runtime = await under_way(crew, lambda row, issue: cancelled(crew, issue))
    assert (row.outcome, row.error, runtime.stopped) == ("cancelled", "the issue was taken from the agent", True)
    assert (issue.status, issue.lease_session) == ("cancelled", None)
    assert crew.runs()[0].status == "cancelled"


@pytest.mark.anyio
async def test_a_person_who_gives_the_issue_to_another_is_not_overruled(
    crew: Crew, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "BEAT_S", 0.02)
    await crew.open()

    async def handed_over(row: sa.Row[Any], issue: sa.Row[Any]) -> None:
        await crew.call(crew.person("shop"), "release_issue", issue_id=issue.id, reason="mine")
        await claimed_by_another(crew, issue)

    row, issue, runtime = await under_way(crew, handed_over)
    assert (row.outcome, runtime.stopped) == ("cancelled", True)
    assert (issue.status, issue.lease_session, issue.fence) == ("in_progress", "outside", 2)


@pytest.mark.anyio
async def test_the_lease_lasts_as_long_as_the_agent(crew: Crew, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "BEAT_S", 0.02)
    await crew.open()
    seen: list[int] = []

    async def looked_at(row: sa.Row[Any], issue: sa.Row[Any]) -> None:
        over = sa.update(issues).where(issues.c.id == issue.id).values(lease_until_ms=1)
        crew.change(over)
        seen.append(await until(lambda: (now := crew.lease_until(issue)) > 1 and now))
        crew.platform.calls.facts["runtime"].go.set()

    row, issue, _ = await under_way(crew, looked_at)
    assert seen[0] > row.started_ms
    assert (row.outcome, issue.status, issue.lease_until_ms) == ("idle", "todo", None)


@pytest.mark.anyio
async def test_a_dispatch_that_is_stopped_ends_for_the_reason_that_was_given(crew: Crew) -> None:
    await crew.open()

    async def stopped(row: sa.Row[Any], issue: sa.Row[Any]) -> None:
        crew.write(lambda tx: Dispatches(tx, "default").stop(row, "nobody needs it"))

    row, issue, runtime = await under_way(crew, stopped)
    assert (row.outcome, row.error, runtime.stopped) == ("cancelled", "nobody needs it", True)
    assert (issue.status, issue.lease_session) == ("todo", None)
    assert crew.reasons(issue)[-1] == "cancelled: nobody needs it"


@pytest.mark.anyio
async def test_a_worker_that_is_stopped_stops_its_agent_and_the_next_one_ends_the_attempt_as_lost(crew: Crew) -> None:
    await crew.open()
    runtime = Patient()
    crew.platform.calls.facts["runtime"] = runtime  # pyright: ignore[reportIndexIssue]
    issue = await crew.todo()
    queued = crew.queue(issue)
    async with running_worker(crew.platform, grace_s=0.01):
        await until(lambda: crew.row(queued).session == runtime.id)
    assert (runtime.stopped, crew.row(queued).state, crew.reload(issue).status) == (True, "running", "in_progress")
    await crew.work()
    assert crew.came_to(queued) == ("ended", "lost", running.LOST)
    assert (crew.standing(issue), len(runtime.started)) == (("todo", None), 1)
    assert [run.status for run in crew.runs()] == ["cancelled"]


@pytest.mark.anyio
async def test_a_pause_ends_the_attempt_without_counting_it(crew: Crew) -> None:
    await crew.open()

    async def held(row: sa.Row[Any], issue: sa.Row[Any]) -> None:
        await paused(crew, issue)
        crew.platform.calls.facts["runtime"].go.set()

    row, issue, _ = await under_way(crew, held)
    assert (row.outcome, row.error) == ("cancelled", "everything was paused by owner: audit")
    assert (issue.status, issue.lease_session) == ("todo", None)


@pytest.mark.anyio
async def test_an_agent_that_goes_on_after_its_claim_was_acted_on_is_stopped_and_has_succeeded(
    crew: Crew, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "BEAT_S", 0.02)
    monkeypatch.setattr(running, "GRACE_S", 0.02)
    await crew.open(lambda started: [*build(started), "!wait 60"])
    issue = await crew.todo()
    queued = crew.queue(issue)
    async with running_worker(crew.platform):
        acted = []
        async with asyncio.timeout(LIMIT_S):
            while not acted:
                acted = await crew.advance()
        await settled(crew.platform, within_s=LIMIT_S)
    assert acted[0].outcome == "pr_opened"
    assert crew.came_to(queued) == ("ended", "succeeded", None)
    assert crew.standing(issue) == ("review", None)
