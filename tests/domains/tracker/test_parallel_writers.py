"""Many who write to one tracker at once: numbers without gaps, and never two holders of one issue."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from rookery.core.actor import Actor
from rookery.core.errors import Conflict, NotFound
from rookery.domains.tracker.tables import issue_changes
from rookery.lifecycle.issue_tables import issues
from tests.domains.tracker.desk import Desk
from tests.domains.tracker.issue_writer import CALLS
from tests.domains.tracker.leasing import claimed, run_out
from tests.warm import start

ROOT = Path(__file__).parents[3]
WRITERS = 16
PROCESSES = 4
LIMIT_S = 100


async def at_once(desk: Desk, actors: list[Actor], tool: str, *arguments: dict[str, Any]) -> list[Any]:
    """What each of the calls came to, results and refusals."""
    given = arguments * len(actors) if len(arguments) == 1 else arguments
    calls = [desk.call(actor, tool, **each) for actor, each in zip(actors, given, strict=True)]
    return await asyncio.gather(*calls, return_exceptions=True)


def sessions(desk: Desk, number: int = WRITERS) -> list[Actor]:
    return [desk.actor("worker", session=f"ses-{at}") for at in range(number)]


def numbers(desk: Desk) -> list[int]:
    return [row.number for row in desk.rows(sa.select(issues.c.number).order_by(issues.c.number))]


def in_processes(desk: Desk, kind: str, folder: Path) -> list[dict[str, Any]]:
    """What came of the calls of several processes that start at once on the desk's database."""
    command = [sys.executable, "-m", "tests.domains.tracker.issue_writer", kind, desk.fleet.platform.database.url]
    processes = [
        start(
            [*command, str(folder / f"home-{at}")], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for at in range(PROCESSES)
    ]
    try:
        for process in processes:
            assert process.stdout
            assert process.stdout.readline() == "ready\n"
        for process in processes:
            assert process.stdin
            process.stdin.write("go\n")
            process.stdin.flush()
        return [each for process in processes for each in json.loads(process.communicate(timeout=LIMIT_S)[0])]
    finally:
        for process in processes:
            process.kill()
            process.communicate()


async def test_identifiers_of_sixteen_writers_are_unique_and_without_gaps(desk: Desk) -> None:
    calls = [{"title": f"number {at}", "depends_on": ["SYM-99999"] if at % 3 == 2 else []} for at in range(3 * WRITERS)]
    made = await at_once(desk, sessions(desk) * 3, "create_issue", *calls)
    refused = [each for each in made if isinstance(each, NotFound)]
    wanted = [f"DEF-{number:03d}" for number in range(1, 2 * WRITERS + 1)]
    assert (len(refused), sorted(each.identifier for each in made if each not in refused)) == (WRITERS, wanted)
    assert numbers(desk) == list(range(1, 2 * WRITERS + 1))


def test_identifiers_of_four_processes_are_unique_and_without_gaps(desk: Desk, tmp_path: Path) -> None:
    made = in_processes(desk, "create", tmp_path)
    refused = [each for each in made if each.get("code") == "NOT_FOUND"]
    total = PROCESSES * CALLS * 2 // 3
    assert (len(made), len(refused)) == (PROCESSES * CALLS, PROCESSES * CALLS // 3)
    assert sorted(each["identifier"] for each in made if each not in refused) == [
        f"DEF-{number:03d}" for number in range(1, total + 1)
    ]
    assert numbers(desk) == list(range(1, total + 1))


@pytest.mark.parametrize("abandoned", [False, True])
async def test_of_sixteen_who_claim_one_issue_exactly_one_gets_it(desk: Desk, abandoned: bool) -> None:
    issue = await desk.issue(status="todo")
    if abandoned:
        await claimed(desk, issue, "before")
        run_out(desk, issue)
    done = await at_once(desk, sessions(desk), "claim_issue", {"issue_id": issue.identifier})
    won = [at for at, each in enumerate(done) if not isinstance(each, Exception)]
    assert len(won) == 1
    assert sum(isinstance(each, Conflict) for each in done) == WRITERS - 1
    row = desk.reload(issue)
    assert (row.lease_session, row.fence, done[won[0]].fence) == (f"ses-{won[0]}", 1 + abandoned, 1 + abandoned)
    assert len(changes(desk, issue)) == 1 + abandoned


def changes(desk: Desk, issue: Any, **wanted: Any) -> list[Any]:
    rows = desk.rows(sa.select(issue_changes).where(issue_changes.c.issue_id == issue.id))
    return [row for row in rows if all(getattr(row, name) == value for name, value in wanted.items())]


async def test_sixteen_who_claim_whatever_is_ready_get_one_each(desk: Desk) -> None:
    made = {(await desk.issue(status="todo")).identifier for _ in range(WRITERS)}
    done = await at_once(desk, sessions(desk), "claim_issue", {})
    assert {each.identifier for each in done} == made
    assert [each.fence for each in done] == [1] * WRITERS
    with pytest.raises(NotFound):
        await desk.call(desk.actor("worker", session="one more"), "claim_issue")


async def test_processes_that_claim_whatever_is_ready_never_share_an_issue(desk: Desk, tmp_path: Path) -> None:
    ready = PROCESSES * CALLS // 2
    made = {(await desk.issue(status="todo")).identifier for _ in range(ready)}
    done = await asyncio.to_thread(in_processes, desk, "claim", tmp_path)
    got = [each["identifier"] for each in done if "identifier" in each]
    assert (len(got), set(got)) == (ready, made)
    assert {each["code"] for each in done if "identifier" not in each} == {"NOT_FOUND"}


async def test_one_session_that_asks_for_many_at_once_gets_one(desk: Desk) -> None:
    made = [await desk.issue(status="todo") for _ in range(WRITERS)]
    actors = [desk.actor("worker", session="greedy")] * WRITERS
    done = await at_once(desk, actors, "claim_issue", *({"issue_id": issue.id} for issue in made))
    won = [each.identifier for each in done if not isinstance(each, Exception)]
    assert len(won) == 1
    assert {str(each).split(" until")[0] for each in done if isinstance(each, Conflict)} == {
        f"this session holds {won[0]}"
    }
    assert [issue.identifier for issue in made if desk.reload(issue).status == "in_progress"] == won


async def test_a_holder_that_renews_while_others_claim_keeps_it(desk: Desk) -> None:
    issue = await desk.issue(status="todo")
    holder = await claimed(desk, issue, "holder")
    done = await at_once(desk, [*sessions(desk), holder], "claim_issue", {"issue_id": issue.id})
    assert [at for at, each in enumerate(done) if not isinstance(each, Exception)] == [WRITERS]
    assert (done[-1].fence, done[-1].renewed) == (1, True)


async def test_an_issue_that_is_released_and_claimed_at_once_has_one_holder(desk: Desk) -> None:
    issue = await desk.issue(status="todo")
    holder = await claimed(desk, issue, "holder")
    claims = at_once(desk, sessions(desk), "claim_issue", {"issue_id": issue.id})
    released, done = await asyncio.gather(desk.call(holder, "release_issue"), claims)
    assert released.status == "todo"
    won = [each for each in done if not isinstance(each, Exception)]
    row = desk.reload(issue)
    assert (len(won), row.fence, row.status) in [(0, 1, "todo"), (1, 2, "in_progress")]


async def test_two_last_subtasks_that_finish_at_once_unblock_the_parent_once(desk: Desk) -> None:
    parent = await desk.issue(status="in_progress")
    worker = desk.actor("worker", parent)
    made = [await desk.call(worker, "create_subtask", title=f"part {at}") for at in range(2)]
    for step in ("in_progress", "review"):
        await at_once(desk, [desk.owner] * 2, "set_issue_status", *({"issue_id": m.id, "status": step} for m in made))
    assert desk.reload(parent).status == "blocked"
    done = await at_once(
        desk, [desk.owner] * 2, "set_issue_status", *({"issue_id": m.id, "status": "done"} for m in made)
    )
    assert [each.status for each in done] == ["done", "done"]
    row = desk.reload(parent)
    assert (row.status, row.blocked_on) == ("todo", None)
    assert len(changes(desk, parent, field="status", old="blocked", new="todo")) == 1
