"""Open boards: who is told what, how often it is made, and what becomes of those who read slowly or leave."""

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

import pytest

from rookery.db.tx import Tx
from rookery.domains.tracker.show_board import show_board
from rookery.identity.people import People
from rookery.identity.signing_in import find_session, open_session
from rookery.identity.store import IdentityStore
from rookery.web import listener as listener_module
from rookery.web.listener import Listener
from rookery.web.live import Live
from tests.platform_fixtures import Fleet

LIMIT_S = 30
Event = tuple[str, Any]


class Tab:
    """An open page: it reads its stream when it is told to."""

    def __init__(self, listener: Listener, stream: AsyncGenerator[bytes]) -> None:
        self.listener = listener
        self.stream = stream
        self.events: list[Event] = []
        self.last = ""

    async def next(self, name: str = "board") -> Any:
        """The content of the next event of this name; for topics just a word."""
        async with asyncio.timeout(LIMIT_S):
            while True:
                for at, (found, content) in enumerate(self.events):
                    if found == name:
                        del self.events[: at + 1]
                        return content
                self._read(await anext(self.stream))

    async def settle(self) -> None:
        """Read until the stream has said where it is."""
        async with asyncio.timeout(LIMIT_S):
            while not self.last:
                self._read(await anext(self.stream))

    def _read(self, sent: bytes) -> None:
        for message in sent.decode().split("\n\n"):
            fields = dict(line.split(": ", 1) for line in message.splitlines() if not line.startswith(":"))
            self.last = fields.get("id", self.last)
            if "event" in fields:
                told = fields["data"]
                self.events.append((fields["event"], json.loads(told) if told.startswith("{") else told))


class Room:
    """All open boards of one server."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self.live = Live(fleet.platform)
        self._open = contextlib.AsyncExitStack()

    async def tab(self, person: str | None = None, *, last: str = "", topics: str = "", **query: str) -> Tab:
        """Another tab of the owner or somebody else, as it is when its stream has begun."""

        def enter(tx: Tx) -> Any:
            store = IdentityStore(tx, "default")
            whose = store.owner() if person is None else store.person(person)
            return find_session(tx, open_session(tx, "default", whose.id, "a test"))

        signed_in = self.fleet.platform.database.direct(enter, write=True)
        if "since" not in query and not last:
            query["since"] = await self.mark()
        listener = Listener(signed_in, frozenset(topics.split()), last=last, feed="board", query=query)
        stream = await self._open.enter_async_context(contextlib.aclosing(self.live.follow(listener)))
        return Tab(listener, stream)

    async def mark(self) -> str:
        return (await self.fleet.platform.calls.run(self.fleet.owner, show_board, {})).structured["mark"]

    async def issue(self, title: str = "login fails", **fields: Any) -> Any:
        return await self.fleet.call(self.fleet.owner, "create_issue", title=title, **fields)

    async def move(self, issue: Any, status: str) -> None:
        await self.fleet.call(self.fleet.owner, "set_issue_status", issue_id=issue.id, status=status)

    async def close(self) -> None:
        await self._open.aclose()
        await self.live.close()


@pytest.fixture
async def room(fleet: Fleet) -> AsyncIterator[Room]:
    room = Room(fleet)
    yield room
    await room.close()


def add_viewer(fleet: Fleet) -> str:
    fleet.platform.database.direct(lambda tx: People(tx, "default").add("Vera", "viewer", None), write=True)
    return "Vera"


async def test_whoever_may_not_move_is_sent_a_card_without_a_way_to(room: Room) -> None:
    owner, viewer = await room.tab(), await room.tab(add_viewer(room.fleet))
    waiting = [asyncio.create_task(tab.next()) for tab in (owner, viewer)]
    await room.issue("look at me")
    sent, seen = await asyncio.gather(*waiting)
    assert "data-targets" in sent["cards"][0]["html"]
    assert "look at me" in seen["cards"][0]["html"]
    assert "data-targets" not in seen["cards"][0]["html"]


async def test_whoever_has_lost_the_right_is_sent_nothing_more(room: Room) -> None:
    tab, other = await room.tab(), await room.tab(add_viewer(room.fleet))
    waiting = [asyncio.create_task(each.next()) for each in (tab, other)]
    await room.issue("for both")
    await asyncio.gather(*waiting)
    room.fleet.platform.database.direct(lambda tx: People(tx, "default").remove("Vera"), write=True)
    heard = asyncio.create_task(tab.next())
    await room.issue("for the owner")
    await heard
    assert b"event:" not in other.listener.take()


async def test_whoever_loses_the_right_while_a_card_is_drawn_is_not_sent_it(room: Room) -> None:
    tab, other = await room.tab(), await room.tab(add_viewer(room.fleet))
    waiting = [asyncio.create_task(each.next()) for each in (tab, other)]
    await room.issue("for both")
    await asyncio.gather(*waiting)
    run, drawn = room.fleet.platform.calls.run, 0

    async def overtaken(actor: Any, tool: Any, arguments: Any, **how: Any) -> Any:
        nonlocal drawn
        found = await run(actor, tool, arguments, **how)
        drawn += tool.name == "show_board"
        if drawn == 1:
            room.fleet.platform.database.direct(lambda tx: People(tx, "default").remove("Vera"), write=True)
        return found

    heard = asyncio.create_task(tab.next())
    room.fleet.platform.calls.run = overtaken  # type: ignore[method-assign]
    await room.issue("for the owner")
    await heard
    assert drawn > 1
    assert b"event:" not in other.listener.take()


async def test_the_changes_of_another_tenant_and_project_are_not_sent(room: Room) -> None:
    fleet = room.fleet
    fleet.platform.database.direct(lambda tx: IdentityStore(tx, "other").set_up(), write=True)
    await fleet.call(fleet.owner, "create_project", slug="second")
    tab = await room.tab()
    heard = asyncio.create_task(tab.next())
    await fleet.call(fleet.actor(tenant="other", as_owner=True), "create_issue", title="theirs")
    await fleet.call(fleet.actor(as_owner=True, project="second"), "create_issue", title="elsewhere")
    await room.issue("ours")
    sent = await heard
    assert [card["html"].count("ours") > 0 for card in sent["cards"]] == [True]
    assert sent["gone"] == []


async def test_a_card_that_was_moved_is_sent_with_the_counts(room: Room) -> None:
    issue = await room.issue()
    tab = await room.tab()
    heard = asyncio.create_task(tab.next())
    await room.move(issue, "in_progress")
    sent = await heard
    assert [(card["id"], card["status"]) for card in sent["cards"]] == [(issue.id, "in_progress")]
    assert (sent["counts"]["todo"], sent["counts"]["in_progress"]) == (0, 1)


async def test_what_no_longer_matches_is_gone_and_what_begins_to_is_there(room: Room) -> None:
    issue = await room.issue(labels=["flaky"])
    tab = await room.tab(label="flaky")
    for labels, cards, gone in (([], 0, [issue.id]), (["flaky"], 1, [])):
        heard = asyncio.create_task(tab.next())
        await room.fleet.call(room.fleet.owner, "edit_issue", issue_id=issue.id, labels=labels)
        sent = await heard
        assert (len(sent["cards"]), sent["gone"]) == (cards, gone)


async def test_many_boards_are_sent_one_and_the_same_drawing(room: Room) -> None:
    tabs = [await room.tab() for _ in range(20)]
    streams = [asyncio.create_task(tab.next()) for tab in tabs]
    calls: list[str] = []
    run = room.fleet.platform.calls.run

    async def counting(actor: Any, tool: Any, arguments: Any, **how: Any) -> Any:
        calls.append(tool.name)
        return await run(actor, tool, arguments, **how)

    room.fleet.platform.calls.run = counting  # type: ignore[method-assign]
    await room.issue("seen by all")
    sent = await asyncio.gather(*streams)
    assert all(each == sent[0] for each in sent)
    assert calls.count("show_board") == 1


async def test_what_changed_between_the_page_and_its_stream_is_not_lost(room: Room) -> None:
    before = await room.mark()
    issue = await room.issue("quick one")
    tab = await room.tab(since=before)
    sent = await tab.next()
    assert [card["id"] for card in sent["cards"]] == [issue.id]


async def test_a_page_that_comes_back_is_told_what_it_has_missed(room: Room) -> None:
    issue = await room.issue()
    tab = await room.tab(topics="issues")
    heard = asyncio.create_task(tab.next())
    await room.move(issue, "in_progress")
    await heard
    await tab.stream.aclose()
    await room.move(issue, "review")
    back = await room.tab(last=tab.last, topics="issues")
    assert (await back.next())["cards"][0]["status"] == "review"
    again = await room.tab(last=tab.last, topics="issues")
    assert await again.next("issues") == "changed"


async def test_a_mark_that_is_none_of_ours_makes_the_page_fetch_everything(room: Room) -> None:
    for since in ("nonsense", "999999.1"):
        assert await (await room.tab(since=since)).next("board-stale") == "changed"


async def test_whoever_reads_too_slowly_is_told_to_fetch_everything_and_holds_nobody_up(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener_module, "MOST_FRAMES", 2)
    slow, quick = await room.tab(), await room.tab()
    first = asyncio.create_task(slow.next())
    await room.issue("read by both")
    await quick.next()
    await first
    for number in range(4):
        heard = asyncio.create_task(quick.next())
        await room.issue(f"issue {number}")
        await heard
    assert await slow.next("board-stale") == "changed"
    assert slow.events == []


async def test_a_closed_tab_is_forgotten(room: Room) -> None:
    tab = await room.tab()
    await tab.settle()
    assert tab.listener in room.live.listeners
    await tab.stream.aclose()
    assert room.live.listeners == set()
