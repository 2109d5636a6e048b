"""show_board, which people call in the console."""

from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy import event

from rookery.core.actor import Actor
from rookery.core.errors import InvalidParams, PermissionDenied
from rookery.core.pages import encode_cursor
from rookery.domains.tracker.board_cards import BoardCards, Wanted
from rookery.domains.tracker.show_board import show_board
from rookery.lifecycle.issue_tables import issues
from rookery.lifecycle.states import ISSUE
from tests.domains.tracker.desk import Desk
from tests.domains.tracker.reviewing import author
from tests.domains.tracker.test_board_resource import fill


async def look(desk: Desk, actor: Actor | None = None, **wanted: Any) -> dict[str, Any]:
    return (await desk.fleet.platform.calls.run(actor or desk.owner, show_board, wanted)).structured


def shown(board: dict[str, Any]) -> dict[str, list[str]]:
    """The titles in each column that has any."""
    found = {column["status"]: [card["title"] for card in column["cards"]] for column in board["columns"]}
    return {status: titles for status, titles in found.items() if titles}


async def card_of(desk: Desk, issue: Any, actor: Actor | None = None) -> dict[str, Any]:
    board = await look(desk, actor, only=[issue.id])
    (card,) = (card for column in board["columns"] for card in column["cards"])
    return card


async def test_no_agent_has_it(desk: Desk) -> None:
    with pytest.raises(PermissionDenied):
        await look(desk, desk.actor("worker"))


async def test_only_the_projects_own_issues_are_on_its_board(desk: Desk) -> None:
    await desk.project("other")
    ours, theirs = await desk.issue("ours"), await desk.issue("theirs", project="other")
    assert shown(await look(desk)) == {"in_progress": ["ours"]}
    assert shown(await look(desk, desk.person("other"))) == {"in_progress": ["theirs"]}
    assert shown(await look(desk, only=[ours.id, theirs.id])) == {"in_progress": ["ours"]}
    assert shown(await look(desk, desk.stranger)) == {}


async def test_columns_come_in_the_order_in_which_issues_pass_them_with_counts_and_ways_on(desk: Desk) -> None:
    for status in ("todo", "in_progress", "review", "blocked", "done", "cancelled"):
        await desk.issue(f"is {status}", status=status)
    columns = (await look(desk))["columns"]
    assert [column["status"] for column in columns] == list(ISSUE.states)
    assert [column["count"] for column in columns] == [0, 1, 1, 1, 1, 1, 1]
    assert columns[3]["targets"] == ["todo", "done", "cancelled"]
    assert columns[-1]["targets"] == []


async def test_filters_narrow_cards_and_counts_alike(desk: Desk) -> None:
    await desk.issue("Login fails", status="todo", labels=["backend"], priority=1)
    await desk.issue("100 % of charts overflow", status="todo", labels=["frontend"], phase="research")
    second = await desk.issue("Logout fails", status="review", priority=2)
    cases: list[tuple[dict[str, Any], list[str]]] = [
        ({"text": "LOG"}, ["Login fails", "Logout fails"]),
        ({"text": "100 %"}, ["100 % of charts overflow"]),
        ({"text": "0_%"}, []),
        ({"text": second.identifier.lower()}, ["Logout fails"]),
        ({"label": "backend"}, ["Login fails"]),
        ({"phase": "research"}, ["100 % of charts overflow"]),
        ({"priority": 2}, ["Logout fails"]),
        ({"agent": "nobody"}, []),
        ({"text": "log", "priority": 1}, ["Login fails"]),
    ]
    for wanted, titles in cases:
        board = await look(desk, **wanted)
        assert sorted(title for each in shown(board).values() for title in each) == sorted(titles), wanted
        assert sum(column["count"] for column in board["columns"]) == len(titles), wanted


async def test_a_card_says_who_works_on_it_and_what_to_filter_by(desk: Desk) -> None:
    await desk.issue("claimed", status="todo", labels=["flaky"])
    claimed = await desk.call(desk.actor("worker", session="ses-1"), "claim_issue")
    board = await look(desk)
    (card,) = board["columns"][2]["cards"]
    assert (card["identifier"], card["agent"], card["labels"]) == (claimed.identifier, "default (worker)", ["flaky"])
    assert (board["labels"], board["agents"]) == (["flaky"], ["default (worker)"])
    assert shown(await look(desk, agent="default (worker)")) == {"in_progress": ["claimed"]}
    desk.change(sa.update(issues).values(lease_until_ms=1))
    assert (await look(desk))["columns"][2]["cards"][0]["agent"] is None
    assert shown(await look(desk, agent="default (worker)")) == {}


async def test_a_card_says_what_it_waits_for_and_why_it_is_blocked(desk: Desk) -> None:
    first = await desk.issue("first", status="todo")
    second = await desk.issue("second", depends_on=[first.id])
    assert (await card_of(desk, second))["waits_for"] == [first.identifier]
    await desk.call(desk.owner, "set_issue_status", issue_id=second.id, status="blocked", reason="which key?")
    card = await card_of(desk, second)
    assert (card["blocked_on"], card["reason"]) == ("person", "which key?")


async def test_a_card_shows_the_newest_revision_of_its_pull_request(desk: Desk, tmp_path: Path) -> None:
    worker = await author(desk)
    await worker.open()
    person = desk.person("repo")
    card = await card_of(desk, worker.issue, person)
    assert (card["status"], card["pr"]["revision"], card["pr"]["status"]) == ("review", 1, "open")
    assert card["pr"]["risk_level"] in ("low", "medium", "high", "critical")


async def test_a_long_column_is_read_in_pages_in_every_order(desk: Desk) -> None:
    like = await desk.issue("one of many", status="todo")
    fill(desk, like, 30, 1000)
    fill(desk, like, 30, 2000, status="done")
    for status in ("todo", "done"):
        for sort in ("urgent", "newest", "oldest", "updated"):
            seen: list[str] = []
            orders: list[str] = []
            cursor, column = None, dict[str, Any]()
            for _ in range(5):
                board = await look(desk, status=status, sort=sort, limit=8, finished=8, cursor=cursor)
                (column,) = board["columns"]
                seen += [card["identifier"] for card in column["cards"]]
                orders += [card["order"] for card in column["cards"]]
                cursor = column["next_cursor"]
                if cursor is None:
                    break
            assert len(seen) == len(set(seen)) == column["count"] == (31 if status == "todo" else 30)
            assert orders == sorted(orders)


async def test_a_cursor_that_is_none_of_ours_is_refused(desk: Desk) -> None:
    await desk.issue(status="todo")
    for cursor in ("nonsense", encode_cursor("1"), encode_cursor("a b c"), encode_cursor("9" * 30 + " 1 x")):
        with pytest.raises(InvalidParams):
            await look(desk, status="todo", cursor=cursor)
    with pytest.raises(InvalidParams):
        await look(desk, cursor=encode_cursor("1 2 x"))


async def test_the_number_of_statements_does_not_grow_with_the_cards(desk: Desk) -> None:
    like = await desk.issue("one of many", status="todo")
    first = _statements(desk, like.project_id)
    fill(desk, like, 40, 1000)
    assert _statements(desk, like.project_id) == first


def _statements(desk: Desk, project: str) -> int:
    """How many statements it takes to read a column with all that its cards show."""
    seen: list[str] = []

    def read(tx: Any) -> None:
        note = lambda _c, _k, text, *_: seen.append(text)  # noqa: E731
        event.listen(tx.connection, "before_cursor_execute", note)
        try:
            cards = BoardCards(tx, Wanted(project_id=project))
            cards.cards(cards.column("todo", 50)[0])
        finally:
            event.remove(tx.connection, "before_cursor_execute", note)

    desk.fleet.platform.database.direct(read)
    return len(seen)
