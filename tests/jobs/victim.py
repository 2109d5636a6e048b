"""Worker processes that are killed: `python -m tests.jobs.victim URL HOME`.

Orders come on standard input: `start {"lease_s": 1, …}` forks a worker and says `worker PID`, which itself says
`up PID` when it begins; `signal PID NUMBER` sends it a signal and says `sent PID`, after its end if that is its end.
When the input ends, so do all workers.
"""

import asyncio
import json
import os
import signal
import sys
from typing import Any

from rookery.app import make_platform
from rookery.jobs.worker import Worker
from rookery.settings import Settings
from tests.jobs import errands, errands_next
from tests.jobs.errands import say


async def work(settings: Settings, *, novel: bool = False, **how: Any) -> None:
    platform = make_platform(settings, extra={"errands": errands, **({"errands_next": errands_next} if novel else {})})
    worker = Worker(platform, **{"concurrency": 4, "lease_s": 1.0, "grace_s": 0.2, **how})
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, worker.stop)
    say("up", os.getpid())
    await worker.run()
    platform.close()


def start(settings: Settings, how: dict[str, Any]) -> int:
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        # The orders are the parent's.
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        asyncio.run(work(settings, **how))
        status = 0
    finally:
        os._exit(status)


def end(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def main(url: str, home: str) -> None:
    settings = Settings(home=home, database=url, plugins=False)
    children: set[int] = set()
    for line in sys.stdin:
        order, _, rest = line.partition(" ")
        if order == "start":
            child = start(settings, json.loads(rest))
            children.add(child)
            say("worker", child)
            continue
        pid, number = map(int, rest.split())
        if number == signal.SIGKILL:
            children.remove(pid)
            end(pid)
        else:
            os.kill(pid, number)
        say("sent", pid)
    for child in children:
        end(child)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
