"""A steady stream of requests that does not wait for the answers: 1,000 a second for a minute."""

import asyncio
import statistics
import time
from collections import deque
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from functools import partial

import uvloop

from benchmarks.http_calls import STATEFUL_JSON
from benchmarks.http_client import ANSWER_LIMIT_S, Caller, check_answer, close_callers, open_callers, start_session
from benchmarks.http_servers import BARE, OURS, python_peer, start_ours, start_peers
from benchmarks.http_wire import HANDSHAKE, MODERN, Endpoint, Pings
from benchmarks.launch import Rookery
from benchmarks.machine import CpuWatch
from benchmarks.raw_client import MeasureError
from benchmarks.report import Group, Row

RATE = 1000
CONNECTIONS = 100
TICK_S = 0.001
SAMPLED = 101
COLUMNS = "{calls_per_s:6.0f}/s  p50 {p50_ms:6.2f}  p99 {p99_ms:7.2f}  max {max_ms:7.1f} ms  {errors} errors"
COLUMNS += "  cpu {cpu_us_per_call:4.0f} us  others {strangers:.0%}"
NEARLY = 0.99  # of the wanted rate: the last answers come after the end


@dataclass(frozen=True)
class Flow:
    """What came of a stream of requests. A time counts from the moment at which the request was due."""

    calls_per_s: float
    p50_ms: float
    p99_ms: float
    max_ms: float
    calls: int
    errors: int
    first_error: str
    client_late_ms: float


class OpenLoop:
    """Sends a request at each of its due times, over whichever connection is free, and counts what fails."""

    def __init__(self, callers: Sequence[Caller], rate: int, seconds: float) -> None:
        self._idle = deque(callers)
        self._rate = rate
        self._total = int(rate * seconds)
        self._due: deque[float] = deque()
        self._took: list[float] = []
        self._late: list[float] = []
        self._errors: list[str] = []
        for caller in callers:
            caller.connection.answered = partial(self._answered, caller)

    async def run(self) -> Flow:
        start = time.perf_counter()
        made = 0
        while made < self._total:
            now = time.perf_counter()
            wanted = min(self._total, int((now - start) * self._rate) + 1)
            self._late.append(now - start - made / self._rate)
            self._due.extend(start + number / self._rate for number in range(made, wanted))
            made = wanted
            self._send()
            await asyncio.sleep(TICK_S)
        end = time.perf_counter() + ANSWER_LIMIT_S
        while len(self._took) + len(self._errors) < self._total and time.perf_counter() < end:
            await asyncio.sleep(TICK_S)
        return self._flow(time.perf_counter() - start)

    def _send(self) -> None:
        while self._due and self._idle:
            caller = self._idle.popleft()
            caller.sent = self._due.popleft()
            try:
                caller.connection.send(caller.pings.next())
            except MeasureError as error:
                self._errors.append(str(error))

    def _answered(self, caller: Caller, answer: bytes | None) -> None:
        try:
            check_answer(caller, answer, thoroughly=len(self._took) % SAMPLED == 0)
        except MeasureError as error:
            self._errors.append(str(error))
        else:
            self._took.append(time.perf_counter() - caller.sent)
        if answer is not None:
            self._idle.append(caller)
        self._send()

    def _flow(self, seconds: float) -> Flow:
        unanswered = self._total - len(self._took) - len(self._errors)
        errors = [*self._errors, *["no answer"] * unanswered]
        if not self._took:
            raise MeasureError(f"no call succeeded: {errors[0]}")
        took = sorted(self._took)
        return Flow(
            calls_per_s=len(took) / seconds,
            p50_ms=took[len(took) // 2] * 1000,
            p99_ms=took[len(took) * 99 // 100] * 1000,
            max_ms=took[-1] * 1000,
            calls=len(took),
            errors=len(errors),
            first_error=errors[0] if errors else "",
            client_late_ms=statistics.median(self._late) * 1000,
        )


async def measure(server: Endpoint, era: str, seconds: float) -> dict[str, float | str]:
    pings = [Pings(server, era, await start_session(server, era)) for _ in range(CONNECTIONS)]
    callers = await open_callers(server, pings)
    watch = CpuWatch.of([server.pid])
    try:
        flow = await OpenLoop(callers, RATE, seconds).run()
    finally:
        close_callers(callers)
    used, strangers = watch.stop()
    return asdict(flow) | {"cpu_us_per_call": used * 1e6 / flow.calls, "strangers": strangers}


def run(rookery: Rookery, quick: bool) -> Group:
    """What the machine gave, and whether every call succeeded. The bare SDK server shows what it can give."""
    group = Group("http_load")
    seconds = {BARE: 1, OURS: 3} if quick else {BARE: 10, OURS: 60}
    with ExitStack() as stack, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        servers = start_peers({BARE: python_peer(rookery, "bare_sdk.py")}, STATEFUL_JSON, stack, group.problems)
        servers |= start_ours(rookery, STATEFUL_JSON, {OURS: {}}, stack, group.problems)
        for era in (HANDSHAKE, MODERN):
            given = float(RATE)
            for name, server in servers.items():
                title = f"{era}, {RATE} requests/s for {seconds[name]} s: {name}"
                try:
                    found = runner.run(measure(server, era, seconds[name]))
                except (MeasureError, OSError) as error:
                    group.problems.append(f"{title}: {error}")
                    continue
                group.samples[title] = found
                if name == BARE:
                    given = min(given, float(found["calls_per_s"]))
                    group.rows.append(Row(title, COLUMNS.format(**found)))
                else:
                    group.rows.append(judged(title, found, given))
    return group


def judged(title: str, found: dict[str, float | str], given: float) -> Row:
    """Passes without an error and at the rate, or at that of the bare SDK server where it did not reach the rate."""
    ok = found["errors"] == 0 and float(found["calls_per_s"]) >= NEARLY * given
    return Row(title, COLUMNS.format(**found), target=f"{given:.0f}/s, 0 errors", ok=ok)
