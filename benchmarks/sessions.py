"""Many people watching agents: 500 open event streams, each of a session of its own that says five things a second.

Every event is recorded before it is shown. Next to it, in the same run, the floor: uvicorn handing the same frames from
memory to as many streams, with nobody asked who they are and nothing kept.
"""

import asyncio
import json
import re
import statistics
import subprocess
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import uvloop

from benchmarks.launch import HERE, ROOT, Rookery, clean_env, temporary_home
from benchmarks.machine import memory_kb
from benchmarks.postgres import PostgresUnavailable, databases
from benchmarks.raw_client import MeasureError
from benchmarks.report import Group, Row

STREAMS = 500
RATE = 5.0
LIMIT_S = 120
SETTLE_S = 3.0
FLOOR = "uvicorn from memory"
_FRAME = re.compile(rb'"number":\s*(\d+).*?"at_ms":\s*(\d+)|"at_ms":\s*(\d+).*?"number":\s*(\d+)')


@dataclass
class Watcher:
    """One open stream: the numbers that came, and how late."""

    numbers: list[int] = field(default_factory=list[int])
    late_ms: list[float] = field(default_factory=list[float])
    opened: asyncio.Event = field(default_factory=asyncio.Event)

    async def watch(self, port: int, path: str, token: str) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 20)
        head = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\n\r\n"
        writer.write(head.encode())
        status = await reader.readline()
        if b" 200 " not in status:
            raise MeasureError(f"a stream was refused: {status!r}")
        try:
            async for line in reader:
                if line.startswith(b"event: snapshot"):
                    self.opened.set()
                elif line.startswith(b"data: ") and (found := _FRAME.search(line)) is not None:
                    number, at_ms = found[1] or found[4], found[2] or found[3]
                    self.numbers.append(int(number))
                    self.late_ms.append(time.time_ns() / 1e6 - int(at_ms))
        finally:
            writer.close()


@dataclass(frozen=True)
class Seen:
    """What one server did."""

    said: int
    once: int
    late_ms: list[float]
    cpu_s: float
    kb_per_stream: float
    mb: float


class Server:
    """A process that prints where it is and talks when it is told to."""

    def __init__(self, command: Sequence[str], env: dict[str, str]) -> None:
        self.process = subprocess.Popen(
            command, env=env, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.where = self._line()

    def _line(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise MeasureError("the server of the streams has ended")
        found: dict[str, Any] = json.loads(line)
        return found

    async def talk(self, rate: float, seconds: float) -> dict[str, Any]:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{rate} {seconds}\n")
        self.process.stdin.flush()
        return await asyncio.to_thread(self._line)

    def rss_kb(self) -> float:
        return float(memory_kb(self.process.pid)["rss"])

    def close(self) -> None:
        self.process.communicate(timeout=LIMIT_S)


async def watched(server: Server, path: str, seconds: float) -> Seen:
    """Open a stream for each session, let them talk, and count."""
    where = server.where
    # The first requests load what later ones use.
    warm = Watcher()
    warming = asyncio.create_task(warm.watch(where["port"], path.format(where["sessions"][0]), where["token"]))
    await asyncio.wait_for(warm.opened.wait(), LIMIT_S)
    warming.cancel()
    await asyncio.gather(warming, return_exceptions=True)
    before = server.rss_kb()
    watchers = [Watcher() for _ in where["sessions"]]
    tasks: list[asyncio.Task[None]] = []
    for watcher, session in zip(watchers, where["sessions"], strict=True):
        tasks.append(asyncio.create_task(watcher.watch(where["port"], path.format(session), where["token"])))
        await asyncio.wait_for(watcher.opened.wait(), LIMIT_S)
    idle = server.rss_kb()
    started = (await server.talk(1, 0.001))["cpu_s"]
    told = await asyncio.wait_for(server.talk(RATE, seconds), LIMIT_S + seconds)
    wanted = told["said"] // len(watchers)
    deadline = time.monotonic() + SETTLE_S
    while any(len(watcher.numbers) < wanted for watcher in watchers) and time.monotonic() < deadline:
        await asyncio.sleep(0.05)
    busy = server.rss_kb()
    for task in tasks:
        task.cancel()
    for error in await asyncio.gather(*tasks, return_exceptions=True):
        if isinstance(error, MeasureError):
            raise error
    once = sum(
        len(set(watcher.numbers)) if len(set(watcher.numbers)) == len(watcher.numbers) else 0 for watcher in watchers
    )
    late = [late for watcher in watchers for late in watcher.late_ms]
    return Seen(told["said"], once, late, told["cpu_s"] - started, (idle - before) / len(watchers), busy / 1024)


def run(rookery: Rookery, quick: bool) -> Group:
    """Both databases, and the floor."""
    group, seconds = Group("sessions"), 4.0 if quick else 20.0
    found: dict[str, Seen] = {}
    with ExitStack() as stack, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        urls = {"SQLite": ""}
        try:
            urls["PostgreSQL"] = stack.enter_context(databases())()
        except PostgresUnavailable as error:
            group.skipped.append(str(error))
        floor = [rookery.python, str(HERE / "peers" / "sse_floor.py"), str(STREAMS)]
        found[FLOOR] = measured(runner, floor, clean_env({}), "/{}", seconds)
        for name, url in urls.items():
            home = stack.enter_context(temporary_home())
            command = [rookery.python, "-m", "benchmarks.sessions_probe", str(home), url, str(STREAMS)]
            env = clean_env(rookery.env(home, {}))
            found[name] = measured(runner, command, env, "/api/sessions/{}/events", seconds)
    for name, seen in found.items():
        rows(group, name, seen, found[FLOOR], seconds)
    return group


def measured(runner: asyncio.Runner, command: Sequence[str], env: dict[str, str], path: str, seconds: float) -> Seen:
    server = Server(command, env)
    try:
        return runner.run(watched(server, path, seconds))
    finally:
        server.close()


def rows(group: Group, name: str, seen: Seen, floor: Seen, seconds: float) -> None:
    """What is printed of one server."""
    group.samples[name] = {"late_ms": seen.late_ms, "cpu_s": seen.cpu_s}
    late = statistics.quantiles(seen.late_ms, n=100)
    complete = seen.once / seen.said
    what = f"{name}: events seen exactly once by {STREAMS} streams"
    group.rows.append(Row(what, f"{seen.once} of {seen.said}", target="all", ok=complete == 1.0))
    group.rows.append(Row(f"{name}: shown after, p50 / p99", f"{late[49]:.0f} / {late[98]:.0f} ms"))
    used = f"{100 * seen.cpu_s / seconds:.0f} % of a core"
    ratio = None if seen is floor else seen.cpu_s / floor.cpu_s
    group.rows.append(Row(f"{name}: CPU at {STREAMS * RATE:.0f} events/s", used, ratio, FLOOR if ratio else ""))
    group.rows.append(Row(f"{name}: memory of an idle stream", f"{seen.kb_per_stream:.1f} KB", None, ""))
    group.rows.append(Row(f"{name}: memory while they talk", f"{seen.mb:.0f} MB", None, ""))
