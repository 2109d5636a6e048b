"""`python -m benchmarks [GROUP ...] [--quick] [--venv DIR]`; the groups are in `GROUPS`, all of them by default.

Exit code 0 whatever the figures say; 1 when something could not be measured, and then it says what.
"""

import argparse
import sys
import time
from pathlib import Path

from benchmarks import (
    code,
    console,
    decide,
    http_calls,
    http_load,
    http_memory,
    jobs,
    machine,
    memory,
    orchestrator,
    remember,
    report,
    retrieval,
    sessions,
    startup,
    stdio_calls,
    tracker,
)
from benchmarks.launch import ROOT, Rookery
from benchmarks.raw_client import MeasureError
from benchmarks.report import Group

GROUPS = {
    "startup": startup.run,
    "stdio": stdio_calls.run,
    "http": http_calls.run,
    "http_load": http_load.run,
    "http_memory": http_memory.run,
    "memory": memory.run,
    "decide": decide.run,
    "tracker": tracker.run,
    "remember": remember.run,
    "retrieval": retrieval.run,
    "jobs": jobs.run,
    "code": code.run,
    "sessions": sessions.run,
    "orchestrator": orchestrator.run,
    "console": console.run,
}
OUTPUT = ROOT / "build" / "bench"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks")
    parser.add_argument("groups", nargs="*", metavar="GROUP", help=f"any of: {' '.join(GROUPS)} (default: all)")
    parser.add_argument("--quick", action="store_true", help="fewer and shorter samples, within a minute a group")
    parser.add_argument("--venv", type=Path, default=default_venv(), help="where Rookery and its dependencies are")
    chosen = parser.parse_args()
    for name in chosen.groups:
        if name not in GROUPS:
            parser.error(f"there is no group {name!r}; there are {', '.join(GROUPS)}")
    return chosen


def default_venv() -> Path:
    """`.venv` of the project, or the environment that runs this."""
    own = ROOT / ".venv"
    return own if own.exists() else Path(sys.prefix)


def measured(name: str, rookery: Rookery, quick: bool) -> Group:
    """One group; whatever stops it as a whole is its problem, not the run's."""
    try:
        return GROUPS[name](rookery, quick)
    except (MeasureError, OSError) as error:
        return Group(name, problems=[str(error)])


def main() -> int:
    chosen = arguments()
    started = time.monotonic()
    about = machine.describe()
    print(f"{about['cores']} cores, load {about['load_average'][0]}, Python {about['python']}")
    failed = False
    for name in chosen.groups or GROUPS:
        group = measured(name, Rookery(chosen.venv.absolute()), chosen.quick)
        report.show(group)
        print(f"written  {report.write(group, OUTPUT).relative_to(ROOT)}")
        failed = failed or bool(group.problems)
    print(f"\n{time.monotonic() - started:.0f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
