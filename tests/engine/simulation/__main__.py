"""Replays a history: `python -m tests.engine.simulation SEED [SEED …]`, with `--git` on real git repositories."""

import argparse
import sys
import time

from tests.engine.simulation.history import Crash, History
from tests.engine.simulation.template import template


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.engine.simulation", description=__doc__)
    parser.add_argument("seeds", nargs="*", type=int, help="what to replay, with every step")
    parser.add_argument("--git", action="store_true", help="with real git repositories")
    parser.add_argument(
        "--crash", metavar="PROCESS:COMMIT:before|after", help="one crash at a named point, and no other trouble"
    )
    parser.add_argument(
        "--many", nargs=2, type=int, metavar=("FIRST", "LAST"), help="run a range and tell how fast it was"
    )
    given = parser.parse_args()
    if given.many:
        return _many(*given.many, real_git=given.git)
    failed = 0
    for seed in given.seeds:
        ended = History(seed, keep_log=True, real_git=given.git, crash=_crash(given.crash)).run()
        print("\n".join(ended.log))
        print(f"\nseed {seed}: {ended.lasted_s:.0f} s, {ended.commits} commits, {ended.counts}")
        for sentence in ended.violations:
            print(f"WRONG: {sentence}")
        failed += bool(ended.violations)
    return min(failed, 1)


def _crash(text: str | None) -> Crash | None:
    if text is None:
        return None
    process, commit, moment = text.split(":")
    return Crash(int(process), int(commit), "before" if moment == "before" else "after")


def _many(first: int, last: int, *, real_git: bool) -> int:
    template()
    began, failed, lasted_s = time.process_time(), 0, 0.0
    for seed in range(first, last + 1):
        ended = History(seed, real_git=real_git).run()
        lasted_s += ended.lasted_s
        if ended.violations:
            failed += 1
            print(
                f"seed {seed}: {ended.violations[0]}"
                + (f" (and {len(ended.violations) - 1} more)" if len(ended.violations) > 1 else ""),
                flush=True,
            )
    took_s, count = time.process_time() - began, last - first + 1
    print(f"{count} histories, {failed} wrong, {lasted_s / 3600:.1f} simulated hours in {took_s:.1f} s of one core")
    print(f"{count / took_s * 60:.0f} histories a minute")
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main())
