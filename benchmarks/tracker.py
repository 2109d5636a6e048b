"""The tracker's tools on 10,000 issues, 50,000 findings and 20,000 learnings in SQLite.

The timing itself is done by `tracker_probe.py` in a process of our own virtual environment. Every row has the p50 and
p95 of calls one at a time, the CPU of one and, as a ratio, what the database alone would have needed: the same
statements on a bare connection for a read, as many bare commits to the same disk for a write. The last rows are the
same calls with more and more closed issues: what they cost must not grow.
"""

import json
import statistics
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.launch import ROOT, Rookery, clean_env, temporary_home
from benchmarks.machine import sync_us
from benchmarks.raw_client import MeasureError, last_words
from benchmarks.report import Group, Row

PROBE_LIMIT_S = 900
FEW, USUAL, MANY = "1000", "9000", "27000"
TARGETS_MS = {"list_ready_issues": 30.0, "create_issue": 2.5, "get_issue": 10.0}
SEARCH, SEARCH_TARGET_MS = "search_learnings", 10.0
GROWTH = 1.3
STATEMENTS, COMMITS = "its statements alone", "{} bare commit{}"
COMMITS_OF = {"create_issue": 1, "claim_issue + release_issue": 2, "add_comment": 1}
COLUMNS = "p50 {p50:6.2f}  p95 {p95:6.2f}  cpu {cpu:6.2f} ms"
Rounds = list[list[float]]


def run(rookery: Rookery, quick: bool) -> Group:
    """p50 and p95 of each tool, and how the p50 grows with the number of closed issues."""
    group = Group("tracker")
    rounds, calls, closed = (6, 8, [FEW, USUAL]) if quick else (15, 20, [FEW, USUAL, MANY])
    with temporary_home() as home:
        found = probe(rookery, home, [str(rounds), str(calls), *closed])
    sites: dict[str, dict[str, Any]] = found.pop("sites")
    group.samples = found | {"rounds": rounds, "calls_a_round": calls, "sync_us": sync_us()}
    group.samples["ms"] = {
        number: {name: summary(case) for name, case in cases.items()} for number, cases in sites.items()
    }
    judge(group, sites[USUAL])
    kinds = dict.fromkeys(SEARCH if name.startswith(SEARCH) else name for name in sites[USUAL])
    for kind in kinds:
        growth(group, kind, [(number, rounds_of(sites[number], kind)) for number in closed])
    share = f"{100 * found['strangers']:.0f} % of all cores"
    group.rows.append(Row("other processes of the machine meanwhile", share))
    group.rows.append(Row("one page to disk, the floor of a durable call", f"{group.samples['sync_us']:.0f} us"))
    return group


def probe(rookery: Rookery, home: Path, arguments: Sequence[str]) -> dict[str, Any]:
    """What the probe found on homes of its own below `home`."""
    command = [rookery.python, "-m", "benchmarks.tracker_probe", str(home), *arguments]
    env = clean_env(rookery.env(home, {}))
    try:
        done = subprocess.run(command, env=env, cwd=ROOT, capture_output=True, text=True, timeout=PROBE_LIMIT_S)
    except subprocess.TimeoutExpired as error:
        raise MeasureError(str(error)) from error
    if done.returncode:
        raise MeasureError(f"the probe failed: {last_words(done.stderr)}")
    return json.loads(done.stdout)


def judge(group: Group, cases: dict[str, Any]) -> None:
    """A row for each case with its floor, one for all searches together, and one for the slowest kind of them."""
    medians: dict[str, float] = {}
    for name, case in cases.items():
        found = summary(case)
        medians[name] = found["p50"]
        target = TARGETS_MS.get(name)
        commits = COMMITS_OF.get(name)
        against = STATEMENTS if commits is None else COMMITS.format(commits, "s"[: commits - 1])
        ratio = over(case["took"], case["floor"]) if case["floor"][0] else None
        value = COLUMNS.format(**found)
        group.rows.append(Row(name, value, ratio, against, *held_to(found["p50"], target)))
    every = [took for name, case in cases.items() if name.startswith(SEARCH) for took in flat(case["took"])]
    middle = statistics.median(every)
    value = f"p50 {middle:6.2f} ms"
    group.rows.append(Row(f"{SEARCH}: all kinds", value, None, "", *held_to(middle, SEARCH_TARGET_MS)))
    worst = max((median, name) for name, median in medians.items() if name.startswith(SEARCH))
    value = f"p50 {worst[0]:6.2f} ms"
    group.rows.append(Row(f"{SEARCH}: the slowest kind", value, None, worst[1]))


def growth(group: Group, name: str, by_closed: Sequence[tuple[str, Rounds]]) -> None:
    """A row that fails if the most closed issues make a call dearer than the fewest."""
    (fewest, first), (_, last) = by_closed[0], by_closed[-1]
    medians = " / ".join(f"{statistics.median(flat(took)):.2f}" for _, took in by_closed)
    numbers = " / ".join(number for number, _ in by_closed)
    title = f"{name}: {numbers} closed"
    group.at_most(title, f"p50 {medians} ms", over(last, first), f"{fewest} closed", GROWTH)


def rounds_of(cases: dict[str, Any], kind: str) -> Rounds:
    """The rounds of a case; of the searches those of every kind of query, one after the other."""
    if kind != SEARCH:
        return cases[kind]["took"]
    return [each for name, case in cases.items() if name.startswith(SEARCH) for each in case["took"]]


def held_to(amount: float, target: float | None) -> tuple[str, bool | None]:
    return ("", None) if target is None else (f"<= {target:g} ms", amount <= target)


def over(took: Rounds, others: Rounds) -> float:
    """The median of the ratios within each round, so that drift cancels out."""
    return statistics.median(
        statistics.median(mine) / statistics.median(theirs) for mine, theirs in zip(took, others, strict=True)
    )


def summary(case: dict[str, Any]) -> dict[str, float]:
    """In milliseconds. The CPU is what tells on a machine that is busy with other things."""
    took, floor = sorted(flat(case["took"])), sorted(flat(case["floor"]))
    found = {"p50": took[len(took) // 2], "p95": took[len(took) * 95 // 100], "least": took[0], "calls": len(took)}
    found["cpu"] = statistics.median(case["cpu"])
    return found | ({"floor_p50": floor[len(floor) // 2], "floor_least": floor[0]} if floor else {})


def flat(rounds: Rounds) -> list[float]:
    return [sample for each in rounds for sample in each]
