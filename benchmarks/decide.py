"""The decision: microseconds each, over every tool and several kinds of actor.

The timing itself is done by `decide_probe.py` in a process of our own virtual environment.
"""

import json
import subprocess

from benchmarks.launch import HERE, Rookery, clean_env
from benchmarks.raw_client import MeasureError
from benchmarks.report import Group, Row

PROBE_LIMIT_S = 60
TARGET_US = 100.0


def run(rookery: Rookery, quick: bool) -> Group:
    """p50 and p99 of one decision against the target."""
    group = Group("decide")
    env = clean_env(rookery.env(HERE, {}))
    command = [rookery.python, str(HERE / "decide_probe.py"), "300" if quick else "2000"]
    try:
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=PROBE_LIMIT_S)
    except subprocess.TimeoutExpired as error:
        raise MeasureError(str(error)) from error
    if done.returncode:
        raise MeasureError(f"the probe failed: {done.stderr.strip()[-400:]}")
    found = json.loads(done.stdout)
    group.samples = found
    over = f"{found['decisions']} decisions, {found['tools']} tools x {found['actors']} actors"
    group.rows.append(Row("one decision, p50", f"{found['p50_us']:.1f} us", target=over))
    group.limit("one decision, p99", found["p99_us"], "us", TARGET_US)
    group.rows.append(Row("a whole listing, median", f"{found['listing_us']:.1f} us"))
    return group
