"""Cold start: from spawning the process to the answer of `tools/list`."""

import statistics
import subprocess
import time
from contextlib import ExitStack

from benchmarks.launch import FALLBACK_TOOLS, HERE, Program, Rookery, clean_env, our_programs, peer, warmed
from benchmarks.peer_install import others
from benchmarks.raw_client import deadline
from benchmarks.report import Group, Row

SAMPLE_LIMIT_S = 30
RELAY_TARGET = 3.0
EMPTY = "python -c pass"


def until_listed(program: Program) -> float:
    """Milliseconds from spawn to the tool list; the process is gone when this returns."""
    with deadline(SAMPLE_LIMIT_S, f"starting {program.name}"):
        started = time.perf_counter()
        with program.start() as server:
            server.initialize()
            server.list_tools()
            return (time.perf_counter() - started) * 1000


def empty_python(python: str) -> float:
    """Milliseconds of `python -c pass`, from spawn to exit."""
    started = time.perf_counter()
    subprocess.run([python, "-c", "pass"], env=clean_env({}), check=True)
    return (time.perf_counter() - started) * 1000


def run(rookery: Rookery, quick: bool) -> Group:
    """Interleaved cold starts of ours and of the peers, medians, ratios to an empty Python."""
    group = Group("startup")
    rounds = 2 if quick else 15
    with ExitStack() as stack:
        ours = warmed(our_programs(rookery, group.problems, stack, {"": {}}), group.problems)
        tools = max(ours.values(), default=FALLBACK_TOOLS)
        extra, group.skipped = others(tools)
        bare = peer("bare SDK", rookery.python, HERE / "peers" / "bare_sdk.py", str(tools))
        floor = peer("stdlib loop", rookery.python, HERE / "peers" / "floor.py", str(tools))
        programs = [*ours, *warmed([bare, floor, *extra], group.problems)]
        empty_python(rookery.python)
        samples: dict[str, list[float]] = {EMPTY: []} | {program.name: [] for program in programs}
        relays = [program for program in programs if program.shared_pid is not None]
        slower = [program for program in programs if program.shared_pid is None]
        for number in range(rounds):
            # What the target compares is short: more samples against the noise, side by side.
            for _ in range(3):
                samples[EMPTY].append(empty_python(rookery.python))
                for program in relays:
                    samples[program.name].append(until_listed(program))
            # Each round starts elsewhere, so that no program is always the one after the slowest.
            turn = number % len(slower)
            for program in slower[turn:] + slower[:turn]:
                samples[program.name].append(until_listed(program))
    group.samples = {"tools": tools, "ms": samples}
    judge(group, samples)
    return group


def judge(group: Group, samples: dict[str, list[float]]) -> None:
    medians = {name: statistics.median(values) for name, values in samples.items()}
    floor = medians[EMPTY]
    for name, median in medians.items():
        value = f"{median:.1f} ms"
        if name == "relay":
            group.at_most(name, value, median / floor, EMPTY, RELAY_TARGET)
        else:
            group.rows.append(Row(name, value, median / floor, EMPTY))
