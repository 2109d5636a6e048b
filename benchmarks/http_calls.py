"""Calls over HTTP: both protocol eras, JSON and SSE, with and without sessions, 1 and 50 clients."""

import asyncio
import statistics
import time
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import asdict, dataclass

import uvloop

from benchmarks.http_client import Caller, ClosedLoop, close_callers, open_callers, start_session
from benchmarks.http_servers import BARE, FASTMCP, FLOOR, OURS, Mode, peer_commands, start_ours, start_peers
from benchmarks.http_wire import HANDSHAKE, MODERN, Endpoint, Pings
from benchmarks.launch import Rookery
from benchmarks.machine import CpuWatch
from benchmarks.raw_client import MeasureError
from benchmarks.report import Group, Row
from benchmarks.stdio_calls import CALM, FULL, FULL_AUDIT, Effort

WARM_UP_S = 0.2
CLIENTS = (1, 50)
LEAST = {1: 0.5, 50: 0.75}
FULLY = OURS + FULL
JUDGED = (OURS, FULLY, BARE, FASTMCP)
STATEFUL_JSON = Mode("json", "stateful")
MODES = (STATEFUL_JSON, Mode("sse", "stateful"), Mode("json", "stateless"), Mode("sse", "stateless"))
COLUMNS = "{calls_per_s:6.0f}/s  p50 {p50_ms:6.2f}  p99 {p99_ms:7.2f} ms  cpu {cpu_us_per_call:5.0f} us"


@dataclass(frozen=True)
class Job:
    """One thing to measure. `kind` names the row that all programs share."""

    kind: str
    program: str
    answers: str
    era: str
    clients: int


class Bench:
    """The live servers of one mode and the clients' sessions with them. Measures one job at a time."""

    def __init__(self, servers: dict[str, Endpoint], runner: asyncio.Runner, patience_s: float) -> None:
        self._servers = servers
        self._runner = runner
        self._patience_s = patience_s
        self._pings: dict[tuple[str, str], list[Pings]] = {}
        self.kinds: dict[Job, str] = {}

    def slice(self, job: Job, seconds: float) -> dict[str, float]:
        """The least disturbed of up to three slices. How fast they were plays no part in the choice."""
        try:
            best = self._runner.run(self._slice(job, seconds))
            for _ in range(2):
                if best["strangers"] <= CALM or self._patience_s < seconds:
                    break
                self._patience_s -= seconds
                again = self._runner.run(self._slice(job, seconds))
                best = min(best, again, key=lambda found: found["strangers"])
        except (MeasureError, OSError) as error:
            raise MeasureError(f"{job.kind}: {job.program}: {error}") from error
        return best

    async def _slice(self, job: Job, seconds: float) -> dict[str, float]:
        server = self._servers[job.program]
        # Anew for every slice: a connection that is idle for some seconds is closed by the server.
        callers = await open_callers(server, await self._requests(server, job))
        try:
            self.kinds[job] = await self._answered_as(callers[0], job)
            watch, client = CpuWatch.of([server.pid]), time.process_time()
            result = await ClosedLoop(callers, seconds).run()
            used, strangers = watch.stop()
            own = time.process_time() - client
        finally:
            close_callers(callers)
        costs = {"cpu_us_per_call": used * 1e6 / result.calls, "client_us_per_call": own * 1e6 / result.calls}
        return asdict(result) | costs | {"strangers": strangers}

    async def _answered_as(self, caller: Caller, job: Job) -> str:
        kind = await caller.check()
        # With the newer revision the SDK streams only what has something to say before its result.
        if kind != job.answers and job.era == HANDSHAKE:
            raise MeasureError(f"it answers with {kind}")
        return kind

    async def _requests(self, server: Endpoint, job: Job) -> list[Pings]:
        """Those of as many clients as the job has, each in a session of its own that lasts as long as the server."""
        known = self._pings.setdefault((server.name, job.era), [])
        while len(known) < job.clients:
            known.append(Pings(server, job.era, await start_session(server, job.era)))
        return known[: job.clients]


async def answering(servers: dict[str, Endpoint], problems: list[str]) -> dict[str, Endpoint]:
    """Those that take calls in both eras; what is wrong with the others is said once and not at every job."""
    found: dict[str, Endpoint] = {}
    for name, server in servers.items():
        try:
            for era in (HANDSHAKE, MODERN):
                close_callers(await open_callers(server, [Pings(server, era, await start_session(server, era))]))
            found[name] = server
        except (MeasureError, OSError) as error:
            problems.append(f"{name}: {error}")
    return found


def jobs_for(mode: Mode, programs: Iterable[str]) -> list[list[Job]]:
    """The jobs of one kind stand together, so that what is compared is measured side by side."""
    found: list[list[Job]] = []
    # The newer revision has no sessions: one pass over it, with the default setting, is enough.
    for era in (HANDSHAKE, MODERN) if mode.sessions == "stateful" else (HANDSHAKE,):
        sessions = "no sessions" if era == MODERN else mode.sessions
        for clients in CLIENTS:
            kind = f"{era}, {mode.answers}, {sessions}, {clients} client{'s' * (clients > 1)}"
            found.append([Job(kind, name, mode.answers, era, clients) for name in programs])
    return found


def interleave(bench: Bench, kinds: list[list[Job]], effort: Effort, group: Group) -> dict[Job, list[dict[str, float]]]:
    """Every job once a round, each round in another order. A job that fails is a problem and is left out."""
    results: dict[Job, list[dict[str, float]]] = {job: [] for jobs in kinds for job in jobs}
    for number in range(-1, effort.rounds):
        for jobs in kinds:
            turn = number % len(jobs)
            for job in jobs[turn:] + jobs[:turn]:
                if job not in results:
                    continue
                # Those that nothing is judged by are there for orientation: half the time is enough for them.
                length = effort.slice_s if job.program in JUDGED else effort.slice_s / 2
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
    group = Group("http")
    effort = Effort(2, 0.2, 0) if quick else Effort(5, 1.0, 20)
    peers, group.skipped = peer_commands(rookery)
    slices: dict[Job, list[dict[str, float]]] = {}
    answered: dict[Job, str] = {}
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        for mode in MODES:
            with ExitStack() as stack:
                variants = {OURS: {}} | ({FULLY: FULL_AUDIT} if mode == STATEFUL_JSON else {})
                # Ours next to the one that they are compared with.
                servers = start_ours(rookery, mode, variants, stack, group.problems)
                servers |= start_peers(peers, mode, stack, group.problems)
                servers = runner.run(answering(servers, group.problems))
                bench = Bench(servers, runner, effort.patience_s)
                slices |= interleave(bench, jobs_for(mode, servers), effort, group)
                answered |= bench.kinds
    group.samples["slices"] = {f"{job.kind}: {job.program}": found for job, found in slices.items()}
    group.samples["answered"] = {f"{job.kind}: {job.program}": kind for job, kind in answered.items()}
    judge(group, slices, answered)
    return group


def judge(group: Group, results: dict[Job, list[dict[str, float]]], answered: dict[Job, str]) -> None:
    """One row a job, and one for each of ours against fastmcp."""
    for job, slices in results.items():
        others = {other.program: found for other, found in results.items() if other.kind == job.kind}
        median = {key: statistics.median(found[key] for found in slices) for key in slices[0]}
        differs = "" if answered[job] == job.answers else f" (as {answered[job]})"
        name, value = f"{job.kind}: {job.program}{differs}", COLUMNS.format(**median)
        ratio = ratio_of(slices, others.get(BARE))
        if job.program not in (OURS, FULLY) or ratio is None:
            group.rows.append(Row(name, value, None if job.program == BARE else ratio, BARE))
            continue
        group.at_least(name, value, ratio, BARE, LEAST[job.clients])
        ahead = ratio_of(slices, others.get(FASTMCP))
        # Where one client waits for the disk at every call, the disk is what is measured.
        if ahead is not None and not (job.program == FULLY and job.clients == 1):
            group.at_least(f"{name}, ahead of fastmcp", "", ahead, FASTMCP, 1.0)
    describe_run(group, results)


def ratio_of(mine: list[dict[str, float]], theirs: list[dict[str, float]] | None) -> float | None:
    """The median of the ratios within each round, so that drift cancels out."""
    if theirs is None:
        return None
    pairs = zip(mine, theirs, strict=True)
    return statistics.median(one["calls_per_s"] / other["calls_per_s"] for one, other in pairs)


def describe_run(group: Group, results: dict[Job, list[dict[str, float]]]) -> None:
    """What the client itself cost, and who else was there."""
    every = [found for slices in results.values() for found in slices]
    if not every:
        return
    fast = [found for job, slices in results.items() if job.program == FLOOR for found in slices]
    cost = statistics.median(found["client_us_per_call"] for found in fast or every)
    group.rows.append(Row("the client's own cost of a call", f"{cost:.0f} us"))
    strangers = statistics.mean(found["strangers"] for found in every)
    group.rows.append(Row("other processes of the machine meanwhile", f"{100 * strangers:.0f} % of all cores"))
