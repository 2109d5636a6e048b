"""Deferred work on both databases, next to procrastinate on the same PostgreSQL.

Three things: how many jobs a second one worker does with 16 handlers that do nothing, each job marked done in a
transaction of its own; how long after its due time a job begins; and what a server costs that has nothing to do. The
measuring is done by `jobs_probe.py` and `peers/procrastinate_jobs.py` in processes of their own, in turn, so that
whatever else the machine does hits both alike. procrastinate looks for jobs whose time has come every five seconds, as
is its default; what is deferred for now both begin when they are told.
"""

import json
import statistics
import subprocess
import time
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from benchmarks import machine
from benchmarks.launch import HERE, ROOT, Rookery, clean_env, temporary_home
from benchmarks.peer_install import UnavailableError, procrastinate
from benchmarks.postgres import PostgresDatabases, PostgresUnavailable, databases
from benchmarks.raw_client import MeasureError, last_words
from benchmarks.report import Group, Row

PROBE_LIMIT_S = 600
TARGET_PER_S = 500.0
TARGET_P95_MS = 50.0
TARGET_IDLE = 2.0
SETTLE_S = 2.0
SQLITE, POSTGRES, PEER = "SQLite", "PostgreSQL", "procrastinate, PostgreSQL"
Found = dict[str, Any]


@dataclass(frozen=True)
class Size:
    """How much is measured."""

    rounds: int
    jobs: int
    late: int
    seconds: float
    idle_s: float

    def words(self) -> list[str]:
        return [str(self.jobs), str(self.late), str(self.seconds)]


FULL = Size(rounds=3, jobs=5000, late=200, seconds=10, idle_s=20)
QUICK = Size(rounds=1, jobs=1500, late=60, seconds=3, idle_s=5)


@dataclass
class Bench:
    """The rounds that were measured of each engine, and how to measure another."""

    rookery: Rookery
    size: Size
    group: Group
    found: dict[str, list[Found]] = field(default_factory=dict[str, list[Found]])

    def ours(self, name: str, url: str) -> None:
        with temporary_home() as home:
            # Empty: the file in the home.
            command = [self.rookery.python, "-m", "benchmarks.jobs_probe", str(home), url, *self.size.words()]
            self._measure(name, command, clean_env(self.rookery.env(home, {})))

    def peer(self, name: str, url: str, start: Sequence[str]) -> None:
        address = sa.make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
        self._measure(name, [*start, address, *self.size.words()], clean_env({}))

    def _measure(self, name: str, command: Sequence[str], env: dict[str, str]) -> None:
        try:
            done = subprocess.run(command, env=env, cwd=ROOT, capture_output=True, text=True, timeout=PROBE_LIMIT_S)
        except subprocess.TimeoutExpired as error:
            raise MeasureError(f"{name}: {error}") from error
        if done.returncode:
            raise MeasureError(f"{name}: the probe failed: {last_words(done.stderr)}")
        self.found.setdefault(name, []).append(json.loads(done.stdout))

    def idle(self, name: str, url: str) -> None:
        """CPU of a server that nobody calls, as a share of one core."""
        with self.rookery.up({"ROOKERY_DATABASE": url} if url else {}) as server:
            time.sleep(SETTLE_S)
            before, started = machine.cpu_seconds(server.pid), time.monotonic()
            time.sleep(self.size.idle_s)
            used = 100 * (machine.cpu_seconds(server.pid) - before) / (time.monotonic() - started)
        self.group.samples.setdefault("idle_percent", {})[name] = used
        self.group.limit(f"idle `rookery up`, {name}", used, "% of a core", TARGET_IDLE)


def run(rookery: Rookery, quick: bool) -> Group:
    """Rates against the target and the peer, times from due to start, and the CPU of an idle server."""
    group = Group("jobs")
    bench = Bench(rookery, QUICK if quick else FULL, group)
    watch = machine.CpuWatch.of(())
    with ExitStack() as stack:
        made = postgres(group, stack)
        peer = peer_command(group) if made is not None else None
        for _ in range(bench.size.rounds):
            one_round(bench, made, peer)
        for name in (SQLITE, POSTGRES, PEER):
            if name in bench.found:
                judge(group, name, bench.found)
        bench.idle(SQLITE, "")
        if made is not None:
            bench.idle(POSTGRES, made())
    group.samples["rounds"] = {name: [brief(each) for each in rounds] for name, rounds in bench.found.items()}
    group.rows.append(Row("all processes of the machine meanwhile", f"{100 * watch.stop()[1]:.0f} % of all cores"))
    group.rows.append(Row("one page to disk, the floor of a durable end", f"{machine.sync_us():.0f} us"))
    return group


def postgres(group: Group, stack: ExitStack) -> PostgresDatabases | None:
    try:
        return stack.enter_context(databases())
    except PostgresUnavailable as reason:
        group.problems.append(f"{POSTGRES}: {reason}")
        return None


def peer_command(group: Group) -> tuple[str, ...] | None:
    try:
        return (*procrastinate(), str(HERE / "peers" / "procrastinate_jobs.py"))
    except UnavailableError as reason:
        group.skipped.append(f"{PEER}: {reason}")
        return None


def one_round(bench: Bench, made: PostgresDatabases | None, peer: tuple[str, ...] | None) -> None:
    bench.ours(SQLITE, "")
    if made is None:
        return
    bench.ours(POSTGRES, made())
    if peer is not None:
        bench.peer(PEER, made(), peer)


def judge(group: Group, name: str, found: dict[str, list[Found]]) -> None:
    """The rows of one engine; targets are ours alone."""
    rounds = found[name]
    ours = name != PEER
    rate, cpu = (
        statistics.median(map(per_s, rounds)),
        statistics.median(each["throughput"]["cpu_ms"] for each in rounds),
    )
    value = f"{rate:.0f} jobs/s, {cpu:.2f} ms of CPU each"
    ratio = None
    if name == POSTGRES and PEER in found:
        ratio = statistics.median(per_s(mine) / per_s(theirs) for mine, theirs in zip(rounds, found[PEER], strict=True))
    target = (f">= {TARGET_PER_S:g} jobs/s", rate >= TARGET_PER_S) if ours else ("", None)
    group.rows.append(Row(f"16 handlers: {name}", value, ratio, "procrastinate" if ratio else "", *target))
    for key, title in (("due", "due time to start"), ("now", "deferred for now to start")):
        p50, p95 = percentiles(took for each in rounds for took in each[key])
        held = ours and key == "due"
        target = (f"p95 <= {TARGET_P95_MS:g} ms", p95 <= TARGET_P95_MS) if held else ("", None)
        group.rows.append(Row(f"{title}: {name}", f"p50 {p50:6.1f}  p95 {p95:6.1f} ms", None, "", *target))


def per_s(found: Found) -> float:
    return found["throughput"]["jobs"] / found["throughput"]["s"]


def brief(found: Found) -> Found:
    times = {key: percentiles(found[key]) for key in ("due", "now")}
    return found["throughput"] | {"per_s": per_s(found)} | {f"{key}_p50_p95_ms": each for key, each in times.items()}


def percentiles(samples: Iterable[float]) -> tuple[float, float]:
    """The p50 and the p95."""
    found = sorted(samples)
    return found[len(found) // 2], found[len(found) * 95 // 100]
