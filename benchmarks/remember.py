"""Memories and documents in SQLite: how long they take to be recalled, to be searched, and to be read in.

The timing itself is done by `remember_probe.py` in processes of our own virtual environment. Every row has the p50 and
p95 of calls one at a time, the CPU of one and, as a ratio, what could not be saved: the same statements on a bare
connection, for a search by meaning the vector of the query and one product with all others too. Sealed memories are
compared with plain ones, call by call in the same rounds. The million is left out of a quick run.
"""

import json
import statistics
import subprocess
from typing import Any

from benchmarks.launch import ROOT, Rookery, clean_env, temporary_home
from benchmarks.machine import sync_us
from benchmarks.raw_client import MeasureError, last_words
from benchmarks.report import Group, Row
from benchmarks.tracker import COLUMNS, STATEMENTS, flat, held_to, over, summary

PROBE_LIMIT_S = 1800
SIZES = ((100_000, 1, 5.0), (1_000_000, 100, 30.0))
"""How many memories, of how many agents, and how many milliseconds a recall may take."""
SEALED_OVER_PLAIN = 2.0
CHUNKS, SEARCH_TARGET_MS = 100_000, 50.0
FILES, QUICK_FILES = 1_000, 100
MOST_MB = 1024.0
RECALLS = ("by key", "newest", "one word", "two words", "three words")
PARTS_ALONE = "its parts alone"
Cases = dict[str, dict[str, Any]]


def run(rookery: Rookery, quick: bool) -> Group:
    """Recalls at each number of memories, searches with and without vectors, and the reading in of files."""
    group = Group("remember")
    rounds, calls = (6, 10) if quick else (15, 20)
    group.samples = {"rounds": rounds, "calls_a_round": calls, "sync_us": sync_us()}
    for count, agents, target in SIZES[:1] if quick else SIZES:
        found = attempt(group, rookery, "recall", rounds, calls, count, agents)
        if found is not None:
            recalls(group, found, count, agents, target)
    if quick:
        group.skipped.append(f"{SIZES[1][0]:,} memories of {SIZES[1][1]} agents: only in a whole run")
    # Its calls are long: of a quick run fewer will do.
    found = attempt(group, rookery, "search", *((4, 8) if quick else (rounds, calls)), CHUNKS)
    if found is not None:
        searches(group, found, CHUNKS)
    count = QUICK_FILES if quick else FILES
    for embed in (0, 1):
        found = attempt(group, rookery, "index", count, embed)
        if found is not None:
            reading(group, found, count)
    group.rows.append(Row("one page to disk, the floor of a durable call", f"{group.samples['sync_us']:.0f} us"))
    return group


def attempt(group: Group, rookery: Rookery, part: str, *numbers: int) -> dict[str, Any] | None:
    """What the probe found on a home of its own; None with a problem or a reason noted: the other parts go on."""
    with temporary_home() as home:
        command = [rookery.python, "-m", "benchmarks.remember_probe", part, str(home), *map(str, numbers)]
        env = clean_env(rookery.env(home, {}))
        try:
            done = subprocess.run(command, env=env, cwd=ROOT, capture_output=True, text=True, timeout=PROBE_LIMIT_S)
            if done.returncode:
                raise MeasureError(last_words(done.stderr))
        except (subprocess.TimeoutExpired, MeasureError) as error:
            group.problems.append(f"{part} {' '.join(map(str, numbers))}: {error}")
            return None
    found: dict[str, Any] = json.loads(done.stdout)
    if "skipped" in found:
        group.skipped.append(found["skipped"])
        return None
    kept = {name: value for name, value in found.items() if name not in ("cases", "took", "floors")}
    cases: dict[str, Cases] = found.get("cases", {})
    kept["ms"] = {kind: {name: summary(case) for name, case in some.items()} for kind, some in cases.items()}
    group.samples[" ".join([part, *map(str, numbers)])] = kept
    return found


def recalls(group: Group, found: dict[str, Any], count: int, agents: int, target: float) -> None:
    """A row for each kind of recall, one for each sealed, and for information what saving and a ping cost."""
    of = f"{count:,} of {agents} agent{'s'[: agents - 1]}"
    plain, sealed = found["cases"]["plain"], found["cases"]["sealed"]
    for kind in RECALLS:
        timed(group, f"recall_memory, {of}: {kind}", plain[kind], STATEMENTS, target)
    for kind in RECALLS:
        ratio = over(sealed[kind]["took"], plain[kind]["took"])
        value = COLUMNS.format(**summary(sealed[kind]))
        group.at_most(f"recall_memory, {of}, sealed: {kind}", value, ratio, "plain", SEALED_OVER_PLAIN)
    timed(group, f"save_memory, {of}", plain["save_memory"], "1 bare commit")
    timed(group, f"save_memory, {of}, sealed", sealed["save_memory"], "1 bare commit")
    timed(group, "ping", plain["ping"], STATEMENTS)
    strangers(group, f"{of}, filled in {max(found['filled_s'].values()):.0f} s", found)


def searches(group: Group, found: dict[str, Any], count: int) -> None:
    """A row for each kind of query by words and meaning, one for all of them, and the same by words alone."""
    for method, against in (("hybrid", PARTS_ALONE), ("keyword", STATEMENTS)):
        cases: Cases = found["cases"][method]
        for kind, case in cases.items():
            timed(group, f"search_knowledge, {count:,} chunks, {method}: {kind}", case, against)
        middle = statistics.median(took for case in cases.values() for took in flat(case["took"]))
        held = held_to(middle, SEARCH_TARGET_MS if method == "hybrid" else None)
        group.rows.append(Row(f"search_knowledge, {method}: all kinds", f"p50 {middle:6.2f} ms", None, "", *held))
    for part, name in (("embedding", "the vector of a query"), ("product", "the product with all vectors")):
        group.rows.append(Row(f"search_knowledge, hybrid, alone: {name}", f"p50 {found['alone_ms'][part]:6.2f} ms"))
    group.rows.append(Row("search_knowledge: the first, which reads all vectors", f"{found['first_s']:.2f} s"))
    strangers(group, f"{count:,} chunks, filled in {found['filled_s']:.0f} s, vectors of {found['embedder']}", found)


def reading(group: Group, found: dict[str, Any], count: int) -> None:
    """How many files a second, and the most memory that the process had."""
    seconds = sum(found["took"]) / 1000
    how = found["embedder"] or "no vectors"
    against = "one bare commit each" if found["embedder"] is None else "the embedding alone"
    ratio = statistics.median(took / floor for took, floor in found["floors"])
    value = f"{count / seconds:.1f} files/s  {found['chunks'] / seconds:.1f} chunks/s  cpu {found['cpu_s']:.1f} s"
    group.rows.append(Row(f"{count:,} Markdown files read in, {how}", value, ratio, against))
    group.limit(f"peak memory of that, {how}", found["peak_kb"] / 1024, "MB", MOST_MB)
    strangers(group, f"{count:,} files, {how}", found)


def timed(group: Group, name: str, case: dict[str, Any], against: str, target: float | None = None) -> None:
    found = summary(case)
    ratio = over(case["took"], case["floor"]) if case["floor"][0] else None
    group.rows.append(Row(name, COLUMNS.format(**found), ratio, against, *held_to(found["p50"], target)))


def strangers(group: Group, name: str, found: dict[str, Any]) -> None:
    group.rows.append(Row(f"{name}: other processes", f"{100 * found['strangers']:.0f} % of all cores"))
