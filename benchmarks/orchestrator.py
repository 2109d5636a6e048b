"""The orchestrator: how soon an agent is at work once its issue is ready, and 50 agents at work at once.

Agents are scripted, so that what is measured is ours. The floor of the first is the same session, started directly by a
person in the same run: what it takes longer is what the orchestrator does before, which is to plan, to make a worktree
with its branch, and to gather what the agent is told. The load is a mix of reading and writing by agents that never
think, so it is the most that the machine can give; every call is checked, recorded and, if it writes, committed.
"""

import json
import statistics
import subprocess
from contextlib import ExitStack
from typing import Any

from benchmarks.launch import ROOT, Rookery, clean_env, temporary_home
from benchmarks.postgres import PostgresUnavailable, databases
from benchmarks.raw_client import MeasureError, last_words
from benchmarks.report import Group, Row

AGENTS = 50
LIMIT_S = 900
DIRECT = "started directly"


def run(rookery: Rookery, quick: bool) -> Group:
    """Both databases."""
    group, samples, seconds = Group("orchestrator"), 10 if quick else 100, 5.0 if quick else 60.0
    with ExitStack() as stack:
        urls = {"SQLite": ""}
        try:
            urls["PostgreSQL"] = stack.enter_context(databases())()
        except PostgresUnavailable as error:
            group.skipped.append(str(error))
        for name, url in urls.items():
            found = probed(rookery, url, samples, seconds)
            started(group, name, found)
            loaded(group, name, found["load"])
            group.samples[name] = found
    return group


def probed(rookery: Rookery, url: str, samples: int, seconds: float) -> dict[str, Any]:
    with temporary_home() as home:
        words = [str(home), url, str(samples), str(AGENTS), str(seconds)]
        command = [rookery.python, "-m", "benchmarks.orchestrator_probe", *words]
        env = clean_env(rookery.env(home, {}))
        try:
            done = subprocess.run(command, env=env, cwd=ROOT, capture_output=True, text=True, timeout=LIMIT_S)
        except subprocess.TimeoutExpired as error:
            raise MeasureError(str(error)) from error
        if done.returncode:
            raise MeasureError(f"the probe failed: {last_words(done.stderr)}")
        found: dict[str, Any] = json.loads(done.stdout)
        return found


def started(group: Group, name: str, found: dict[str, Any]) -> None:
    """From ready to the first call of a tool, next to the same session without the orchestrator."""
    ready, direct = (statistics.quantiles(found[key], n=20) for key in ("ready_ms", "direct_ms"))
    for shown, at in (("p50", 9), ("p95", 18)):
        group.rows.append(Row(f"{name}: {DIRECT} to first tool call, {shown}", f"{direct[at]:.0f} ms"))
        what = f"{name}: issue ready to first tool call, {shown}"
        group.rows.append(Row(what, f"{ready[at]:.0f} ms", ready[at] / direct[at], DIRECT))
    for step, took in found["steps_ms"].items():
        group.rows.append(Row(f"{name}: of that, {step}, p50", f"{statistics.median(took):.0f} ms"))


def loaded(group: Group, name: str, load: dict[str, Any]) -> None:
    """What the agents did together."""
    took = statistics.quantiles(load["took_ms"], n=100)
    errors: list[str] = load["errors"]
    of = f"{name}: {AGENTS} agents at once"
    group.rows.append(Row(f"{of}, calls", f"{load['calls'] / load['seconds']:.0f} calls/s"))
    group.rows.append(Row(f"{of}, a call takes, p50 / p99", f"{took[49]:.1f} / {took[98]:.1f} ms"))
    group.rows.append(Row(f"{of}, errors", str(len(errors)), target="0", ok=not errors))
    group.rows.append(Row(f"{of}, CPU", f"{100 * load['cpu_s'] / load['seconds']:.0f} % of a core"))
    grown = load["mb"] - load["mb_before"]
    group.rows.append(Row(f"{of}, memory", f"{load['mb']:.0f} MB, {grown / AGENTS:.2f} MB an agent"))
