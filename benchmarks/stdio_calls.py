"""Calls over stdio: one at a time, 50 in flight, with every read audited in full, and writes."""

import json
import os
import statistics
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from typing import Any

from benchmarks.launch import FALLBACK_TOOLS, HERE, Program, Rookery, our_programs, peer, warmed
from benchmarks.machine import CpuWatch, sync_us
from benchmarks.peer_install import others
from benchmarks.raw_client import MeasureError, StdioServer, deadline
from benchmarks.report import Group, Row

SLICE_LIMIT_S = 30
WARM_UP_S = 0.2
CALM = 0.08  # share of all cores that other processes may take before a slice counts as disturbed
IN_FLIGHT = 50
SINGLE, MANY, WRITE = "one at a time", f"{IN_FLIGHT} in flight", f"write, {IN_FLIGHT} in flight"
PLUGIN = HERE / "plugin"
BARE = "bare SDK"
COLUMNS = "{calls_per_s:6.0f}/s  p50 {p50_ms:6.2f}  p99 {p99_ms:6.2f} ms  cpu {cpu_us_per_call:5.0f} us"
FULL = ", full audit"
FULL_AUDIT = {"ROOKERY_AUDIT_READS": "full"}


@dataclass(frozen=True)
class Job:
    """One thing to measure. `target` is the least ratio to the bare SDK's job of the same `kind`."""

    kind: str
    program: str
    tool: str
    in_flight: int
    target: float | None = None
    arguments: dict[str, Any] = field(default_factory=dict[str, Any], hash=False)


@dataclass(frozen=True)
class Effort:
    """How many slices of how many seconds, and how much longer it may take on a machine that is busy."""

    rounds: int
    slice_s: float
    patience_s: float


@dataclass
class Live:
    """A started program and the processes that work for it."""

    server: StdioServer
    pids: tuple[int, ...]


def write_tool() -> tuple[str, dict[str, Any], bool]:
    """Our write tool, its arguments, and whether the plugin of the benchmarks provides it."""
    named = os.environ.get("BENCH_WRITE_TOOL")
    arguments = json.loads(os.environ.get("BENCH_WRITE_ARGS", '{"text": "measured"}'))
    return named or "save_note", arguments, named is None


def jobs_for(ours: Iterable[str], informative: Iterable[str]) -> list[Job]:
    tool, arguments, _ = write_tool()
    jobs = [
        Job(SINGLE, BARE, "ping", 1),
        Job(MANY, BARE, "ping", IN_FLIGHT),
        Job(WRITE, BARE, "note", IN_FLIGHT, arguments={"text": "measured"}),
    ]
    for name in ours:
        if name.endswith(FULL):
            jobs.append(Job(SINGLE, name, "ping", 1, 0.7))
        else:
            jobs.append(Job(SINGLE, name, "ping", 1, 1.0))
            jobs.append(Job(MANY, name, "ping", IN_FLIGHT, 2.0))
            jobs.append(Job(WRITE, name, tool, IN_FLIGHT, 1.5, arguments))
    for name in informative:
        jobs += [Job(SINGLE, name, "ping", 1), Job(MANY, name, "ping", IN_FLIGHT)]
    return jobs


class Bench:
    """The live servers. Measures one job at a time on the one that the job names."""

    def __init__(self, programs: dict[str, Program], patience_s: float, stack: ExitStack) -> None:
        self._programs = programs
        self._patience_s = patience_s
        self._stack = stack
        self._live = {name: self._start(program) for name, program in programs.items()}

    def slice(self, job: Job, seconds: float) -> dict[str, float]:
        """The least disturbed of up to three slices. How fast they were plays no part in the choice."""
        best = self._slice(job, seconds)
        for _ in range(2):
            if best["strangers"] <= CALM or self._patience_s < seconds:
                break
            self._patience_s -= seconds
            best = min(best, self._slice(job, seconds), key=lambda found: found["strangers"])
        return best

    def _slice(self, job: Job, seconds: float) -> dict[str, float]:
        live = self._live[job.program]
        watch = CpuWatch.of(live.pids)
        try:
            with deadline(SLICE_LIMIT_S, "a slice"):
                result = live.server.measure(job.tool, job.arguments, job.in_flight, seconds)
        except (MeasureError, OSError) as error:
            # Answers that are still on their way would be taken for those of the next job.
            self._live[job.program] = self._start(self._programs[job.program])
            raise MeasureError(f"{job.program}, {job.kind}: {error}") from error
        used, strangers = watch.stop()
        return asdict(result) | {"cpu_us_per_call": used * 1e6 / result.calls, "strangers": strangers}

    def _start(self, program: Program) -> Live:
        server = self._stack.enter_context(program.start())
        with deadline(SLICE_LIMIT_S, f"the handshake of {program.name}"):
            server.initialize()
        behind = () if program.shared_pid is None else (program.shared_pid,)
        return Live(server, (server.process.pid, *behind))


def interleave(bench: Bench, jobs: list[Job], effort: Effort, group: Group) -> dict[Job, list[dict[str, float]]]:
    """Every job once a round, each round in another order. A job that fails is a problem and is left out."""
    results: dict[Job, list[dict[str, float]]] = {job: [] for job in jobs}
    for number in range(-1, effort.rounds):
        turn = number % len(jobs)
        for job in jobs[turn:] + jobs[:turn]:
            if job not in results:
                continue
            # Peers without a target are there for orientation: half the time is enough for them.
            judged = job.target is not None or job.program == BARE
            length = effort.slice_s if judged else effort.slice_s / 2
            try:
                measured = bench.slice(job, WARM_UP_S if number < 0 else length)
            except MeasureError as error:
                group.problems.append(str(error))
                del results[job]
                continue
            if number >= 0:
                results[job].append(measured)
    return results


def run(rookery: Rookery, quick: bool) -> Group:
    """Throughput and latency of ours and of the peers, as ratios to the bare SDK server."""
    group = Group("stdio")
    effort = Effort(3, 0.3, 3) if quick else Effort(5, 1.5, 60)
    with ExitStack() as stack:
        plugins = (PLUGIN,) if write_tool()[2] else ()
        variants = {"": {}, FULL: FULL_AUDIT}
        ours = warmed(our_programs(rookery, group.problems, stack, variants, plugins), group.problems)
        tools = max(ours.values(), default=FALLBACK_TOOLS)
        bare = peer(BARE, rookery.python, HERE / "peers" / "bare_sdk.py", str(tools))
        floor = peer("stdlib loop", rookery.python, HERE / "peers" / "floor.py", str(tools))
        extra, group.skipped = others(tools)
        informative = warmed([*extra, floor], group.problems)
        programs = {program.name: program for program in [bare, *ours, *informative]}
        jobs = jobs_for([p.name for p in ours], [p.name for p in informative])
        bench = Bench(programs, effort.patience_s, stack)
        results = interleave(bench, jobs, effort, group)
    group.samples = {
        "tools": tools,
        "slices": {f"{job.program}, {job.kind}": found for job, found in results.items()},
    }
    judge(group, results)
    return group


def judge(group: Group, results: dict[Job, list[dict[str, float]]]) -> None:
    """One row a job. The ratio is the median of the ratios within each round, so that drift cancels out."""
    bare = {job.kind: slices for job, slices in results.items() if job.program == BARE}
    for job, slices in sorted(results.items(), key=lambda item: item[0].kind):
        median = {key: statistics.median(found[key] for found in slices) for key in slices[0]}
        value = COLUMNS.format(**median)
        name = f"{job.kind}: {job.program}"
        peers = bare.get(job.kind)
        if peers is None or job.program == BARE:
            group.rows.append(Row(name, value))
            continue
        pairs = zip(slices, peers, strict=True)
        ratio = statistics.median(mine["calls_per_s"] / theirs["calls_per_s"] for mine, theirs in pairs)
        if job.target is None:
            group.rows.append(Row(name, value, ratio, BARE))
        else:
            group.at_least(name, value, ratio, BARE, job.target)
    strangers = [found["strangers"] for slices in results.values() for found in slices]
    if strangers:
        share = f"{100 * statistics.mean(strangers):.0f} % of all cores"
        group.rows.append(Row("other processes of the machine meanwhile", share))
    group.samples["sync_us"] = sync_us()
    group.rows.append(Row("one page to disk, the floor of a durable call", f"{group.samples['sync_us']:.0f} us"))
