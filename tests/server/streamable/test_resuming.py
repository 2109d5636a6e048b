"""Streams that were cut: a client comes back and has everything, once and in order."""

import asyncio
from typing import Any

import pytest

from rookery.core.context import Context
from rookery.server.streamable import exchange, streams
from tests.server.streamable.conftest import on_one_database
from tests.server.streamable.scripts import scripts
from tests.server.streamable.tap import Frame, Tap, asking, hearing
from tests.server.streamable.web import LEGACY, Web, call, until


class Steps:
    """A call that reports a number for each step that the test allows, and ends after the last."""

    def __init__(self, name: str, total: int) -> None:
        self.total = total
        self.reported = 0
        self._allowed = asyncio.Semaphore(0)
        scripts[name] = self._play
        self.message = call("play_script", name=name)
        self.message["params"]["_meta"] = {"progressToken": 1}

    def allow(self, steps: int) -> None:
        for _ in range(steps):
            self._allowed.release()

    async def _play(self, ctx: Context) -> str:
        for step in range(self.total):
            await self._allowed.acquire()
            ctx.progress(step + 1, self.total)
            self.reported = step + 1
        await self._allowed.acquire()
        return "done"


def numbers(frames: list[Frame]) -> list[int | str]:
    """What was reported, and the result."""
    said: list[dict[str, Any]] = [frame.message for frame in frames if frame.message is not None]
    return [
        each["params"]["progress"] if "params" in each else each["result"]["structuredContent"]["text"] for each in said
    ]


async def read(tap: Tap, messages: int) -> list[Frame]:
    """So many messages of a stream, and the frames between them."""
    frames: list[Frame] = []
    while sum(frame.message is not None for frame in frames) < messages:
        frame = await tap.frame()
        assert frame is not None
        frames.append(frame)
    return frames


def on(session: str, revision: str = LEGACY) -> dict[str, str]:
    return {"mcp_session_id": session, "mcp_protocol_version": revision}


@pytest.mark.parametrize("revision", ["2025-03-26", "2025-06-18", "2025-11-25"])
async def test_events_have_ids_and_a_frame_to_resume_from_where_the_revision_knows_it(
    trusting: Web, revision: str
) -> None:
    session = await trusting.initialize(revision=revision)
    steps = Steps(f"ids {revision}", 2)
    steps.allow(3)
    async with asking(trusting, steps.message, **on(session, revision)) as answer:
        first, *others = frames = await answer.rest()
    assert all(frame.event for frame in frames)
    assert len({frame.event for frame in frames}) == len(frames)
    if revision == "2025-11-25":
        assert first.message is None
        assert first.retry_ms
    assert all(frame.message for frame in (others if revision == "2025-11-25" else frames))
    assert numbers(frames) == [1, 2, "done"]


async def test_streams_that_nobody_can_resume_have_no_ids(trusting: Web) -> None:
    headers = {"mcp_protocol_version": "2026-07-28", "mcp_method": "tools/call", "mcp_name": "count_aloud"}
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "progressToken": 1,
    }
    message = call("count_aloud", times=2)
    message["params"]["_meta"] = meta
    async with asking(trusting, message, **headers) as answer:
        frames = await answer.rest()
    assert [frame.event for frame in frames] == [None, None, None]
    assert all(frame.message for frame in frames)


async def test_a_cut_stream_goes_on_exactly_where_it_was_cut(web: Web) -> None:
    token = await web.token()
    session = await web.initialize(token)
    steps = Steps("cut", 6)
    steps.allow(2)
    async with asking(web, steps.message, token, **on(session)) as answer:
        seen = await read(answer, 2)
    # What is said while nobody listens is kept.
    steps.allow(2)
    await until(lambda: steps.reported == 4, "the call goes on")
    async with hearing(web, session, token, after=seen[-1].event) as answer:
        seen += await read(answer, 1)
    async with hearing(web, session, token, after=seen[-1].event) as answer:
        seen += await read(answer, 1)
        steps.allow(3)
        seen += await answer.rest()
    assert numbers(seen) == [1, 2, 3, 4, 5, 6, "done"]


async def test_the_result_of_a_call_that_ended_meanwhile_is_kept(
    trusting: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exchange, "SILENCE_S", 0.1)
    session = await trusting.initialize()
    steps = Steps("ended", 1)
    async with asking(trusting, steps.message, **on(session)) as answer:
        # Nothing has been said yet, so there is only the frame to resume from.
        steps.allow(1)
        first = await answer.frame()
    assert first is not None
    assert first.message is None
    steps.allow(1)
    await until(lambda: not trusting.endpoint.exchanges, "the call ends")
    for _ in range(2):
        async with hearing(trusting, session, after=first.event) as answer:
            assert numbers(await answer.rest()) == [1, "done"], "however often it is asked for"


async def test_two_cut_streams_are_not_mixed_up(trusting: Web) -> None:
    session = await trusting.initialize()
    ours, theirs = Steps("ours", 2), Steps("theirs", 3)
    cut: list[Frame] = []
    for steps in (ours, theirs):
        steps.allow(1)
        async with asking(trusting, steps.message, **on(session)) as answer:
            cut.append((await read(answer, 1))[-1])
    ours.allow(2)
    theirs.allow(3)
    async with (
        hearing(trusting, session, after=cut[0].event) as one,
        hearing(trusting, session, after=cut[1].event) as other,
    ):
        assert numbers(await other.rest()) == [2, 3, "done"]
        assert numbers(await one.rest()) == [2, "done"]


@on_one_database
async def test_events_that_were_never_sent_are_refused(web: Web) -> None:
    ada, bob = await web.token(), await web.token(None)
    session, other = await web.initialize(ada), await web.initialize(bob)
    steps = Steps("foreign", 1)
    steps.allow(2)
    async with asking(web, steps.message, ada, **on(session)) as answer:
        last = (await answer.rest())[-1].event
    assert last is not None
    number = int(last.split("-")[0])
    strange = ["", "x", "1", "-1-1", f"{number}-1-1", "9" * 50 + "-1", f"{number}-\u00b2"]
    for event in [*strange, f"{number}-99", f"{number + 1}-1"]:
        async with hearing(web, session, ada, after=event) as refused:
            assert refused.status == 400, event
    async with hearing(web, other, bob, after=last) as foreign:
        assert foreign.status == 400, "of another session"
    async with hearing(web, session, bob, after=last) as foreign:
        assert foreign.status == 404, "with another's session"


async def test_what_is_no_longer_kept_is_refused_rather_than_left_out(
    trusting: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "KEPT_FRAMES", 4)
    session = await trusting.initialize()
    steps = Steps("forgotten", 8)
    steps.allow(1)
    async with asking(trusting, steps.message, **on(session)) as answer:
        seen = await read(answer, 1)
    steps.allow(8)
    await until(lambda: not trusting.endpoint.exchanges, "the call ends")
    async with hearing(trusting, session, after=seen[-1].event) as answer:
        assert answer.status == 400
        assert "not known any more" in (await answer.json())["error"]["message"]
    number, last = (int(part) for part in str(seen[-1].event).split("-"))
    async with hearing(trusting, session, after=f"{number}-{last + 4}") as answer:
        assert numbers(await answer.rest()) == [6, 7, 8, "done"]


async def test_a_call_can_let_its_connection_go_and_the_client_fetches_the_rest(trusting: Web) -> None:
    released = asyncio.Event()
    go_on, ask_back = asyncio.Event(), asyncio.Event()

    async def let_go(ctx: Context) -> str:
        ctx.progress(1)
        await ctx.release()
        released.set()
        ctx.progress(2)
        await go_on.wait()
        await ctx.release()
        ctx.progress(3)
        await ask_back.wait()
        return "done"

    scripts["let_go"] = let_go
    message = call("play_script", name="let_go")
    message["params"]["_meta"] = {"progressToken": 1}
    session = await trusting.initialize()
    async with asking(trusting, message, **on(session)) as answer:
        seen = await answer.rest()
        assert numbers(seen) == [1], "the stream ends properly, without the result"
        assert released.is_set()
        # The connection itself is as good as before.
        await answer.ask(call("say_again", name="again"), **on(session))
        assert (await answer.json())["result"]["structuredContent"]["text"] == "again"
    async with hearing(trusting, session, after=seen[-1].event) as answer:
        seen += await read(answer, 1)
        go_on.set()
        # It can be let go again, and once more nothing is lost.
        assert await answer.rest() == []
    async with hearing(trusting, session, after=seen[-1].event) as answer:
        ask_back.set()
        seen += await answer.rest()
    assert numbers(seen) == [1, 2, 3, "done"]


async def test_letting_go_does_nothing_where_nobody_could_come_back(trusting: Web) -> None:
    async def cling(ctx: Context) -> str:
        await ctx.release()
        ctx.progress(1)
        return "done"

    scripts["cling"] = cling
    answer = await trusting.modern("tools/call", name="play_script", arguments={"name": "cling"})
    assert answer.json()["result"]["structuredContent"]["text"] == "done"
    session = await trusting.initialize()
    answer = await trusting.post(call("play_script", name="cling"), **on(session), accept="application/json")
    assert answer.json()["result"]["structuredContent"]["text"] == "done"


async def test_a_newer_listener_takes_over_from_an_older_one(trusting: Web) -> None:
    session = await trusting.initialize()
    async with hearing(trusting, session) as older:
        first = await older.frame()
        async with hearing(trusting, session) as newer:
            assert await older.rest() == [], "the older one ends properly"
            prime = await newer.frame()
            [ours] = trusting.endpoint.table._open.values()
            await ours.notify("notifications/message", {"level": "info", "data": "hello"})
            said = await newer.next()
    assert first is not None
    assert first.event
    assert prime is not None
    assert prime.event
    assert said is not None
    assert said["params"]["data"] == "hello"


async def test_news_told_while_nobody_listened_is_told_to_the_next_listener_once(trusting: Web) -> None:
    session = await trusting.initialize()
    [ours] = trusting.endpoint.table._open.values()
    await ours.notify("notifications/message", {"level": "info", "data": "one"})
    async with hearing(trusting, session) as listener:
        heard = (await read(listener, 1))[-1]
        assert heard.message is not None
        assert heard.message["params"]["data"] == "one"
    await until(lambda: not ours.busy, "the listener is missed")
    await ours.notify("notifications/message", {"level": "info", "data": "two"})
    async with hearing(trusting, session) as listener:
        said = await listener.next()
        assert said is not None
        assert said["params"]["data"] == "two"
    # Whoever says what it has heard is told everything since.
    async with hearing(trusting, session, after=heard.event) as listener:
        said = await listener.next()
        assert said is not None
        assert said["params"]["data"] == "two"
