"""Times the tracker's tools and prints the samples as JSON: `-m benchmarks.tracker_probe HOME ROUNDS CALLS CLOSED…`.

One home for each number of closed issues, all of them called in turn, so that whatever else the machine does hits all
alike. Calls go one at a time through the call path that every door ends in, with the audit log on.
"""

import asyncio
import contextlib
import json
import sqlite3
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy import event

from benchmarks import machine
from benchmarks.tracker_data import Filled, Texts, fill, make_texts
from rookery.app import Platform, make_platform
from rookery.core.actor import Actor
from rookery.identity.binding import Binding
from rookery.settings import Settings

WARM_UP = 3
BOUND_SESSIONS = 10
Arguments = dict[str, Any]
Statement = tuple[str, Any]


@dataclass
class Case:
    """Something to time. `step(n)` is its n-th call, `floor(n)` what the database alone needs for as much."""

    name: str
    step: Callable[[int], Awaitable[Any]]
    floor: Callable[[int], None] | None = None
    took: list[list[float]] = field(default_factory=list[list[float]])
    floor_took: list[list[float]] = field(default_factory=list[list[float]])
    cpu: list[float] = field(default_factory=list[float])
    calls: int = 0

    async def round(self, calls: int, *, counts: bool = True) -> None:
        """Some calls, and as often the floor, in milliseconds each; of the CPU of all threads the mean."""
        took: list[float] = []
        floor: list[float] = []
        used = 0
        for _ in range(calls):
            before = time.process_time_ns()
            started = time.perf_counter_ns()
            await self.step(self.calls)
            took.append((time.perf_counter_ns() - started) / 1e6)
            used += time.process_time_ns() - before
            if self.floor is not None:
                started = time.perf_counter_ns()
                self.floor(self.calls)
                floor.append((time.perf_counter_ns() - started) / 1e6)
            self.calls += 1
        if counts:
            self.took.append(took)
            self.floor_took.append(floor)
            self.cpu.append(used / calls / 1e6)

    def found(self) -> dict[str, Any]:
        return {"took": self.took, "floor": self.floor_took, "cpu": self.cpu}


class Bare:
    """The same file without us: the driver's own connection, at the durability that calls have."""

    def __init__(self, home: Path) -> None:
        self._reads = sqlite3.connect(home / "rookery.db", isolation_level=None)
        self._writes = sqlite3.connect(home / "floor.db", isolation_level=None)
        for pragma in ("journal_mode=WAL", "synchronous=FULL"):
            self._writes.execute(f"PRAGMA {pragma}")
        self._writes.execute("CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT NOT NULL)")

    def read(self, statements: Sequence[Statement]) -> None:
        """The statements in one transaction, every row fetched."""
        self._reads.execute("BEGIN")
        for text, values in statements:
            self._reads.execute(text, values).fetchall()
        self._reads.execute("ROLLBACK")

    def commits(self, count: int) -> None:
        """So many rows, each safe on the disk before the next."""
        for _ in range(count):
            self._writes.execute("BEGIN IMMEDIATE")
            self._writes.execute("INSERT INTO notes (text) VALUES (?)", ("x" * 200,))
            self._writes.execute("COMMIT")

    def close(self) -> None:
        self._reads.close()
        self._writes.close()


class Site:
    """One home and the calls that are timed on it."""

    def __init__(self, home: Path, closed: int, texts: Texts) -> None:
        self.closed = closed
        self.home = home
        self.platform: Platform = make_platform(Settings(home=str(home), plugins=False))
        self.filled: Filled = self.platform.database.direct(lambda tx: fill(tx, closed, texts), write=True)
        with contextlib.closing(sqlite3.connect(home / "rookery.db")) as connection:
            # What the filling left in the log of pages would be paid for by the first calls.
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self.bare = Bare(home)
        self.worker = self.actor(session="bench")
        self.cases: list[Case] = []

    def actor(self, **binding: Any) -> Actor:
        bound = Binding(profile="worker", **binding)
        return self.platform.database.direct(lambda tx: self.platform.resolver.resolve(tx, bound)).actor

    async def prepare(self, texts: Texts) -> None:
        """Every case, warmed up."""
        await self.read("ping", "ping", [{}])
        await self.read("list_ready_issues", "list_ready_issues", [{}])
        await self.read("list_ready_issues, 100", "list_ready_issues", [{"limit": 100}])
        await self.read("get_issue", "get_issue", [{"issue_id": name} for name in self.filled.heavy])
        for kind, queries in texts.queries.items():
            name = f"search_learnings, {kind}"
            await self.read(name, "search_learnings", [{"query": query} for query in queries])
        others = [{"query": query, "cross_project": True} for query in texts.queries["a common word"]]
        await self.read("search_learnings, other projects", "search_learnings", others)
        await self.read("list_issues", "list_issues", [{}])
        await self.read("list_issues, todo", "list_issues", [{"status": "todo"}])
        await self.read("list_issues, one label", "list_issues", [{"labels": "flaky"}])
        self.write("create_issue", self.create, commits=1)
        self.write("claim_issue + release_issue", self.claim_and_release, commits=2)
        bound = [self.actor(issue=name, session=name) for name in self.filled.todo[:BOUND_SESSIONS]]
        self.write("add_comment", lambda number: self.comment(bound[number % len(bound)], number), commits=1)
        for case in self.cases:
            await case.round(WARM_UP, counts=False)

    async def read(self, name: str, tool: str, variants: Sequence[Arguments]) -> None:
        """A case of a read, with the statements of each variant as its floor."""
        recorded: list[list[Statement]] = []
        for arguments in variants:
            with statements() as seen:
                await self.call(tool, arguments)
            recorded.append(seen)
        step = lambda number: self.call(tool, variants[number % len(variants)])  # noqa: E731
        floor = (lambda number: self.bare.read(recorded[number % len(recorded)])) if any(recorded) else None
        self.cases.append(Case(name, step, floor))

    def write(self, name: str, step: Callable[[int], Awaitable[Any]], *, commits: int) -> None:
        self.cases.append(Case(name, step, lambda number: self.bare.commits(commits)))

    async def call(self, tool: str, arguments: Arguments, actor: Actor | None = None) -> Any:
        return await self.platform.calls.call(actor or self.worker, tool, arguments)

    async def create(self, number: int) -> None:
        arguments = {
            "title": f"a new issue, the {number}th",
            "description": "what is to be done " * 20,
            "priority": 1 + number % 3,
            "labels": ["backend", "flaky"],
            "depends_on": [self.filled.todo[number % len(self.filled.todo)]],
        }
        await self.call("create_issue", arguments)

    async def claim_and_release(self, number: int) -> None:
        await self.call("claim_issue", {})
        await self.call("release_issue", {})

    async def comment(self, actor: Actor, number: int) -> None:
        await self.call("add_comment", {"content": f"the {number}th remark " * 10}, actor)

    def close(self) -> None:
        self.bare.close()
        self.platform.close()


@contextlib.contextmanager
def statements() -> Iterator[list[Statement]]:
    """What SQLAlchemy asks of the driver meanwhile, in whatever thread."""
    seen: list[Statement] = []

    def note(_c: Any, _cursor: Any, text: str, values: Any, _context: Any, _many: bool) -> None:
        seen.append((text, values))

    event.listen(sa.Engine, "before_cursor_execute", note)
    try:
        yield seen
    finally:
        event.remove(sa.Engine, "before_cursor_execute", note)


async def measure(sites: Sequence[Site], texts: Texts, rounds: int, calls: int) -> float:
    """Every case of every site once a round, the sites in another order each time. Says what share others took."""
    for site in sites:
        await site.prepare(texts)
    watch = machine.CpuWatch.of(())
    for number in range(rounds):
        turn = number % len(sites)
        for at in range(len(sites[0].cases)):
            for site in (*sites[turn:], *sites[:turn]):
                await site.cases[at].round(calls)
    return watch.stop()[1]


def main(home: Path, rounds: int, calls: int, closed: Sequence[int]) -> None:
    started = time.monotonic()
    texts = make_texts()
    with contextlib.ExitStack() as stack:
        sites: list[Site] = []
        for number in closed:
            site = Site(home / str(number), number, texts)
            stack.callback(site.close)
            sites.append(site)
        filled_s = time.monotonic() - started
        strangers = asyncio.run(measure(sites, texts, rounds, calls))
        found = {str(site.closed): {case.name: case.found() for case in site.cases} for site in sites}
    sizes = {str(site.closed): (site.home / "rookery.db").stat().st_size for site in sites}
    print(json.dumps({"sites": found, "bytes": sizes, "filled_s": filled_s, "strangers": strangers}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), [int(number) for number in sys.argv[4:]])
