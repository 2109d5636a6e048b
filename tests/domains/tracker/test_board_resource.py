"""project://{slug}/board, as callers read it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from rookery.core.actor import Actor
from rookery.core.errors import NotFound, PermissionDenied
from rookery.domains.tracker.board import COLUMN, FINISHED_SHOWN, finished_issues, open_issues
from rookery.domains.tracker.sections import headings
from rookery.lifecycle.issue_tables import issues
from rookery.lifecycle.states import FINISHED, OPEN
from tests.domains.tracker.desk import Desk
from tests.domains.tracker.test_issue_resource import completed, entries, read
from tests.platform_fixtures import Fleet


def columns(board: str) -> list[str]:
    return [text for level, text in headings(board) if level == 2]


def fill(desk: Desk, like: sa.Row[Any], count: int, start: int, **values: Any) -> None:
    """Many issues at once, as copies of one."""
    known = dict(zip(issues.c.keys(), like, strict=True))
    rows = [
        {
            **known,
            **values,
            "id": f"iss-{number}",
            "identifier": f"DEF-{number}",
            "number": number,
            "updated_ms": number,
        }
        for number in range(start, start + count)
    ]
    desk.fleet.platform.database.direct(lambda tx: tx.run(sa.insert(issues), rows), write=True)


async def test_an_agent_without_the_right_reads_no_board(desk: Desk) -> None:
    with pytest.raises(PermissionDenied):
        await read(desk, desk.fleet.actor(), "project://default/board")


async def test_a_project_of_another_tenant_or_without_a_role_is_as_absent_as_one_that_never_was(desk: Desk) -> None:
    made = await desk.project("secret")
    await desk.call(desk.owner, "set_project_members", project="secret", agents=[])

    async def told(actor: Actor) -> set[str]:
        found = set[str]()
        for name in ("secret", made.id, "SECRET", "nonsense"):
            with pytest.raises(NotFound) as caught:
                await read(desk, actor, f"project://{name}/board")
            found.add(str(caught.value).replace(name, "X"))
        return found

    for actor in (desk.actor("worker"), desk.stranger):
        assert len(await told(actor)) == 1
        assert [entry.uri for entry in await entries(desk, actor, "project://x/board")] == ["project://default/board"]
        assert await completed(desk, actor, "project://x/board", "slug", "sec") == []
    assert "No issues yet." in await read(desk, desk.owner, "project://secret/board")


async def test_a_board_shows_each_status_that_has_issues_in_the_order_of_the_work(desk: Desk) -> None:
    for status in ("done", "blocked", "in_progress", "todo", "cancelled", "review"):
        await desk.issue(f"a {status} one", status=status)
    board = await read(desk, desk.actor("scanner"), "project://default/board")
    assert headings(board)[0] == (1, "Board of default")
    last = f"(at most the last {FINISHED_SHOWN})"
    assert columns(board) == [
        "todo (1)", "in_progress (1)", "review (1)", "blocked (1)", f"done {last}", f"cancelled {last}",
    ]  # fmt: skip
    assert "- DEF-004 · P3 · phase:ready · a todo one\n" in board
    assert "- DEF-002 · P3 · phase:ready · a blocked one (waits for person)\n" in board
    assert await read(desk, desk.owner, "project://DEFAULT/board") == board


async def test_the_most_urgent_comes_first_and_who_holds_an_issue_is_told(desk: Desk) -> None:
    for priority in (3, 1, 2):
        await desk.issue(f"p{priority}", priority=priority, status="todo")
    worker = desk.actor("worker", session="s-1")
    await desk.call(worker, "claim_issue", issue_id="DEF-003")
    board = await read(desk, worker, "project://default/board")
    assert "## todo (2)\n\n- DEF-002 · P1 · phase:ready · p1\n- DEF-001 · P3 · phase:ready · p3\n" in board
    assert "- DEF-003 · P2 · phase:ready · p2 (held by default (worker))\n" in board
    desk.change(sa.update(issues).values(lease_until_ms=1))
    assert "held by" not in await read(desk, worker, "project://default/board")


async def test_a_title_cannot_break_the_board(desk: Desk) -> None:
    await desk.issue("x\n# heading\n\n```\n<!--", status="todo")
    await desk.issue("```", status="todo")
    board = await read(desk, desk.owner, "project://default/board")
    assert [text for _, text in headings(board)] == ["Board of default", "todo (2)"]
    assert "· x # heading ``` <!--\n" in board


async def test_of_many_issues_a_column_shows_the_first_and_counts_the_others(desk: Desk) -> None:
    first = await desk.issue(status="todo")
    fill(desk, first, COLUMN + 4, 100)
    board = await read(desk, desk.owner, "project://default/board")
    assert columns(board) == [f"todo ({COLUMN + 5})"]
    assert board.endswith("\n- and 5 more\n")
    assert board.count("\n- DEF-") == COLUMN


async def test_of_finished_issues_the_last_ones_are_shown(desk: Desk) -> None:
    first = await desk.issue(status="done")
    desk.change(sa.update(issues).values(updated_ms=1))
    fill(desk, desk.reload(first), 20, 100)
    board = await read(desk, desk.owner, "project://default/board")
    shown = [line.split(" ")[1] for line in board.splitlines() if line.startswith("- DEF-")]
    assert shown == [f"DEF-{number}" for number in range(119, 119 - FINISHED_SHOWN, -1)]


async def test_every_project_with_a_role_is_listed_and_completed(desk: Desk) -> None:
    for slug in ("beta", "Alpha"):
        await desk.project(slug)
    worker = desk.actor("worker")
    found = await entries(desk, worker, "project://x/board")
    assert {entry.uri for entry in found} == {f"project://{slug}/board" for slug in ("Alpha", "beta", "default")}
    assert await completed(desk, worker, "project://x/board", "slug", "al") == ["Alpha"]
    assert sorted(await completed(desk, worker, "project://x/board", "slug", "")) == ["Alpha", "beta", "default"]


@pytest.mark.parametrize("status", OPEN)
def test_an_open_column_costs_what_it_shows(status: str, make_fleet: Callable[..., Fleet], tmp_path: Path) -> None:
    fleet = make_fleet(f"sqlite:///{tmp_path / 'plan.db'}", extra={})
    searched = "SEARCH issues USING INDEX issues_status (project_id=? AND status=?)"
    assert plan(fleet, open_issues("prj", status)) == [searched]


@pytest.mark.parametrize("status", FINISHED)
def test_a_finished_column_costs_what_it_shows(status: str, make_fleet: Callable[..., Fleet], tmp_path: Path) -> None:
    fleet = make_fleet(f"sqlite:///{tmp_path / 'plan.db'}", extra={})
    searched = "SEARCH issues USING INDEX issues_finished (project_id=? AND status=?)"
    assert plan(fleet, finished_issues("prj", status)) == [searched]


def plan(fleet: Fleet, statement: sa.Select[Any]) -> list[str]:
    """How SQLite goes about it, with nothing known of what is in the tables."""
    compiled = str(statement.compile(compile_kwargs={"literal_binds": True}))
    explained = sa.text(f"EXPLAIN QUERY PLAN {compiled}")
    return [row.detail for row in fleet.platform.database.direct(lambda tx: tx.all(explained))]
