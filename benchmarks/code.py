"""The code index next to universal-ctags, on a large package of PyPI and one of npm.

The timing itself is done by `code_probe.py` in processes of our own virtual environment. Ctags is run on exactly the
files that we index, in the same round, with all of its languages on, as ours are. It writes definitions; we keep every
reference too. A tree that cannot be had is left out, with the reason.
"""

import json
import os
import shutil
import statistics
import subprocess
from pathlib import Path
from typing import Any

from benchmarks.code_corpora import antd, django
from benchmarks.launch import ROOT, Rookery, clean_env, temporary_home
from benchmarks.peer_install import UnavailableError
from benchmarks.raw_client import MeasureError, last_words
from benchmarks.report import Group, Row

PROBE_LIMIT_S = 900
SPEED = 0.25
"""Of ctags' files a second, with every reference in the index."""
UNCHANGED_MS, CHANGED_MS, CALL_MS = 100.0, 50.0, 10.0
RECALL = 0.99
HELD = ("class", "function", "member")
"""The kinds of tags of Python that have to be found."""
TREES = {"Django": django, "antd": antd}


def run(rookery: Rookery, quick: bool) -> Group:
    """Speed, freshness, answers and completeness, for each tree."""
    group = Group("code")
    if shutil.which("ctags") is None:
        group.skipped.append("everything: there is no universal-ctags on this machine (Debian: universal-ctags)")
        return group
    for name, fetch in TREES.items():
        try:
            root = fetch()
        except (UnavailableError, OSError) as error:
            group.skipped.append(f"{name}: it cannot be had here: {error}")
            continue
        try:
            found = probe(rookery, root, *((2, 20) if quick else (7, 60)))
        except (MeasureError, subprocess.TimeoutExpired) as error:
            group.problems.append(f"{name}: {error}")
            continue
        group.samples[name] = found
        show(group, name, found)
    return group


def probe(rookery: Rookery, root: Path, *numbers: int) -> dict[str, Any]:
    """What the probe found on homes of its own."""
    with temporary_home() as home:
        command = [rookery.python, "-m", "benchmarks.code_probe", str(home), str(root), *map(str, numbers)]
        env = clean_env(rookery.env(home, {}))
        done = subprocess.run(command, env=env, cwd=ROOT, capture_output=True, text=True, timeout=PROBE_LIMIT_S)
    if done.returncode:
        raise MeasureError(last_words(done.stderr))
    return json.loads(done.stdout)


def show(group: Group, name: str, found: dict[str, Any]) -> None:
    rounds: list[dict[str, float]] = found["rounds"]
    count = found["files"]

    def rate(what: str) -> str:
        return f"{count / statistics.median(each[what] for each in rounds):.0f} files/s"

    about = f"{name}, {count:,} files, {found['bytes'] / 1e6:.0f} MB"
    group.rows.append(Row(f"{about}: ctags", rate("ctags")))
    group.rows.append(Row(f"{about}: ctags, with its reference tags", rate("ctags +r")))
    ratios = [(each["ctags"] + each["ctags again"]) / 2 / each["index"] for each in rounds]
    group.at_least(f"{about}: index from nothing", rate("index"), statistics.median(ratios), "ctags", SPEED)
    ratio = statistics.median(each["ctags +r"] / each["index"] for each in rounds)
    group.rows.append(Row(f"{about}: the same", rate("index"), ratio, "ctags with its references"))
    cores = len(os.sched_getaffinity(0))
    ratio = statistics.median(cores * each["ctags cpu"] / each["index cpu"] for each in rounds)
    used = f"{statistics.median(each['index cpu'] for each in rounds):.2f} s on {cores} cores"
    group.rows.append(Row(f"{about}: the same by CPU time, whatever else ran", used, ratio, "ctags"))
    group.limit(f"{name}: call that walks the tree, nothing changed", middle(found["unchanged"]), "ms", UNCHANGED_MS)
    group.rows.append(
        Row(f"{name}: first call of a new server, nothing changed", f"{middle(found['restarted']):.0f} ms")
    )
    group.limit(f"{name}: one changed file in the answer", middle(found["changed"]), "ms", CHANGED_MS)
    for kind, took in found["calls"].items():
        value, ok = middle(took), middle(took) <= CALL_MS
        held = ("", None) if kind.startswith("ping") else (f"<= {CALL_MS:g} ms", ok)
        group.rows.append(Row(f"{name}: {kind}", f"p50 {value:.2f} ms  p95 {late(took):.2f} ms", None, "", *held))
    recalled(group, name, found["recall"])
    group.rows.append(Row(f"{name}: the index in the database", f"{found['stored'] / 1e6:.1f} MB"))
    group.rows.append(Row(f"{name}: other processes meanwhile", f"{100 * found['others']:.0f} % of all cores"))


def recalled(group: Group, name: str, found: dict[str, dict[str, list[int]]]) -> None:
    """Which share of ctags' tags is a symbol of ours, at the same line."""
    for language, kinds in sorted(found.items()):
        if language == "Python":
            held = [sum(kinds.get(kind, [0, 0])[at] for kind in HELD) for at in (0, 1)]
            share = held[0] / max(held[1], 1)
            ok = (f">= {RECALL}", share >= RECALL)
            group.rows.append(
                Row(f"{name}: recall of Python's {held[1]:,} {', '.join(HELD)}", f"{share:.4f}", None, "", *ok)
            )
        parts = [f"{kind} {hit / of:.2f} of {of:,}" for kind, (hit, of) in sorted(kinds.items())]
        group.rows.append(Row(f"{name}: recall, {language}", ", ".join(parts)))


def middle(took: list[float]) -> float:
    return statistics.median(took)


def late(took: list[float]) -> float:
    return sorted(took)[len(took) * 95 // 100]
