"""Opens boards of a running server and prints the samples as JSON.

`-m benchmarks.console_viewers HOME DATABASE PORT PID ISSUES VIEWERS SECONDS`. Every viewer is a connection of its own
that reads the stream as a browser does. Once a second a card is moved, by a form of the server or, every fifth time, by
another process; what is timed is from the start of the move to the arrival of its card at each viewer. Meanwhile pages
are asked for one at a time.
"""

import asyncio
import contextlib
import json
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2

from benchmarks.console_data import fill
from benchmarks.machine import cpu_seconds, memory_kb
from rookery.app import Platform, make_platform
from rookery.db.tx import Tx
from rookery.identity.binding import Binding
from rookery.identity.signing_in import open_session
from rookery.identity.store import DEFAULT_TENANT, IdentityStore
from rookery.settings import Settings
from rookery.web.signed_in import form_token

ARRIVAL_LIMIT_S = 10.0
PAGE_EVERY_S = 0.25
PAGES_ALONE = 20
ELSEWHERE_EVERY = 5


@dataclass
class Move:
    """A card that is moved, and when each viewer had it."""

    issue: bytes
    started: float
    elsewhere: bool
    arrived: list[float] = field(default_factory=list[float])
    all_there: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass
class Crowd:
    """All open boards."""

    port: int
    cookie: str
    number: int
    move: Move | None = None
    open: int = 0
    ready: asyncio.Event = field(default_factory=asyncio.Event)

    async def watch(self, mark: str) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, limit=1 << 22)
        asked = (
            f"GET /live?on=waiting&feed=board&since={mark} HTTP/1.1\r\nHost: 127.0.0.1\r\nCookie: {self.cookie}\r\n\r\n"
        )
        writer.write(asked.encode())
        seen: Move | None = None
        began = False
        while sent := await reader.read(1 << 20):
            now = time.perf_counter()
            # The first id says that the board is followed from here on.
            if not began and b"id: " in sent:
                began = True
                self.open += 1
                if self.open == self.number:
                    self.ready.set()
            if self.move is not None and seen is not self.move and self.move.issue in sent:
                seen = self.move
                seen.arrived.append(now - seen.started)
                if len(seen.arrived) == self.number:
                    seen.all_there.set()
        writer.close()


class Hand:
    """Moves cards, in the server or beside it."""

    def __init__(self, platform: Platform, client: httpx2.AsyncClient, csrf: str) -> None:
        self._platform = platform
        self._client = client
        self._csrf = csrf
        bound = Binding(as_owner=True)
        self._owner = platform.database.direct(lambda tx: platform.resolver.resolve(tx, bound)).actor

    async def move(self, issue: str, *, elsewhere: bool) -> None:
        if elsewhere:
            given = {"issue_id": issue, "status": "in_progress"}
            await self._platform.calls.call(self._owner, "set_issue_status", given)
            return
        fields = {"csrf": self._csrf, "move": f"{issue} in_progress"}
        answer = await self._client.post("/board/move", data=fields)
        assert answer.status_code == 303, answer.status_code


async def page_ms(client: httpx2.AsyncClient) -> float:
    started = time.perf_counter()
    answer = await client.get("/board")
    assert answer.status_code == 200, answer.status_code
    return (time.perf_counter() - started) * 1000


async def pages(client: httpx2.AsyncClient, took: list[float], stop: asyncio.Event) -> None:
    """A page from time to time, until there are no more moves."""
    while not stop.is_set():
        took.append(await page_ms(client))
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), PAGE_EVERY_S)


async def moves(crowd: Crowd, hand: Hand, todo: list[str], seconds: int) -> list[Move]:
    made: list[Move] = []
    for number in range(seconds):
        begun = time.perf_counter()
        elsewhere = number % ELSEWHERE_EVERY == ELSEWHERE_EVERY - 1
        crowd.move = Move(todo[number].encode(), begun, elsewhere)
        await hand.move(todo[number], elsewhere=elsewhere)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(crowd.move.all_there.wait(), ARRIVAL_LIMIT_S)
        made.append(crowd.move)
        await asyncio.sleep(max(0.0, 1.0 - (time.perf_counter() - begun)))
    return made


async def measure(
    platform: Platform, port: int, pid: int, todo: list[str], number: int, seconds: int
) -> dict[str, Any]:
    def enter(tx: Tx) -> str:
        return open_session(tx, DEFAULT_TENANT, IdentityStore(tx, DEFAULT_TENANT).owner().id, "bench")

    token = platform.database.direct(enter, write=True)
    cookie = f"rookery_{port}={token}"
    async with httpx2.AsyncClient(
        base_url=f"http://127.0.0.1:{port}", headers={"cookie": cookie}, timeout=60
    ) as client, asyncio.TaskGroup() as group:  # fmt: skip
        alone = [await page_ms(client) for _ in range(PAGES_ALONE)]
        board = (await client.get("/board")).text
        mark = board.partition("since=")[2].partition("&")[0].partition('"')[0]
        empty_kb = memory_kb(pid)["rss"]
        crowd = Crowd(port, cookie, number)
        tabs = [group.create_task(crowd.watch(mark)) for _ in range(number)]
        await asyncio.wait_for(crowd.ready.wait(), 120)
        joined_kb = memory_kb(pid)["rss"]
        used, begun, meanwhile, stop = cpu_seconds(pid), time.monotonic(), list[float](), asyncio.Event()
        asking = group.create_task(pages(client, meanwhile, stop))
        made = await moves(crowd, Hand(platform, client, form_token(token)), todo, seconds)
        stop.set()
        await asking
        share = (cpu_seconds(pid) - used) / (time.monotonic() - begun)
        ended_kb = memory_kb(pid)["rss"]
        for tab in tabs:
            tab.cancel()
    return {
        "moves": [{"elsewhere": each.elsewhere, "arrived_ms": [1000 * at for at in each.arrived]} for each in made],
        "pages_ms": meanwhile,
        "pages_alone_ms": alone,
        "cpu_share": share,
        "rss_kb": {"alone": empty_kb, "joined": joined_kb, "ended": ended_kb},
    }


def main(home: Path, database: str, port: int, pid: int, count: int, number: int, seconds: int) -> None:
    settings = Settings(home=str(home), database=database, plugins=False, port=port)
    with contextlib.closing(make_platform(settings, prepare=False)) as platform:
        todo = platform.database.direct(lambda tx: fill(tx, count), write=True)
        print(json.dumps(asyncio.run(measure(platform, port, pid, todo, number, seconds))))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], *(int(word) for word in sys.argv[3:8]))
