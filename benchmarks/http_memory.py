"""Memory of the server over 100,000 requests: it must be flat once the caches are full."""

import asyncio
from contextlib import ExitStack

import uvloop

from benchmarks.http_client import ClosedLoop, close_callers, open_callers, start_session
from benchmarks.http_servers import BARE, OURS, Mode, python_peer, start_ours, start_peers
from benchmarks.http_wire import HANDSHAKE, MODERN, Endpoint, Pings
from benchmarks.launch import Rookery
from benchmarks.machine import memory_kb
from benchmarks.raw_client import MeasureError
from benchmarks.report import Group, Row

CLIENTS = 50
STEPS = 10
STEP_LIMIT_S = 120
FLAT = 1.03  # last size over that at half time
# What each way through the server might keep: streams to resume, sessions made for one request, nothing at all.
WAYS = (
    (Mode("sse", "stateful"), HANDSHAKE),
    (Mode("json", "stateless"), HANDSHAKE),
    (Mode("json", "stateful"), MODERN),
)


async def sizes_mb(server: Endpoint, era: str, calls: int) -> list[float]:
    """Resident size before the first of ten equal parts and after each of them."""
    found: list[float] = []
    pings = [Pings(server, era, await start_session(server, era)) for _ in range(CLIENTS)]
    for _ in range(STEPS):
        # Anew for each part, so that connections which come and go are part of it.
        callers = await open_callers(server, pings)
        found = found or [resident(server)]
        try:
            await ClosedLoop(callers, STEP_LIMIT_S, calls // STEPS).run()
        finally:
            close_callers(callers)
        found.append(resident(server))
    return found


def resident(server: Endpoint) -> float:
    return round(memory_kb(server.pid)["rss"] / 1024, 1)


def run(rookery: Rookery, quick: bool) -> Group:
    """Sizes along the way, and growth in the second half against the target."""
    group = Group("http_memory")
    calls = 5_000 if quick else 100_000
    peers = {BARE: python_peer(rookery, "bare_sdk.py")}
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        for mode, era in WAYS:
            with ExitStack() as stack:
                servers = start_ours(rookery, mode, {OURS: {}}, stack, group.problems)
                # For orientation; a fifth of the calls shows what its own caches take.
                servers |= start_peers(peers, mode, stack, group.problems)
                for name, server in servers.items():
                    number = calls if name == OURS else calls // 5
                    title = f"{era}, {mode.answers}, {mode.sessions}, {number} requests: {name}"
                    try:
                        sizes = runner.run(sizes_mb(server, era, number))
                    except (MeasureError, OSError) as error:
                        group.problems.append(f"{title}: {error}")
                        continue
                    group.samples[title] = sizes
                    # A short run ends before the caches are full, so its growth says nothing.
                    judge(group, title, sizes, judged=name == OURS and not quick)
    return group


def judge(group: Group, title: str, sizes: list[float], *, judged: bool) -> None:
    value = " ".join(f"{size:.0f}" for size in sizes) + " MB"
    growth = sizes[-1] / sizes[STEPS // 2]
    if judged:
        group.at_most(title, value, growth, "at half time", FLAT)
    else:
        group.rows.append(Row(title, value, growth, "at half time"))
