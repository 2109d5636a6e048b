"""Processes that move credits until they are killed: `python -m tests.ledger.till_process URL HOME CLIENTS`.

Orders come on standard input: `start` forks a process and says `started PID`; `kill PID` kills it and says `gone PID`.
The processes say `did KEY` of each change that was answered. When the input ends, they are killed.
"""

import asyncio
import os
import signal
import sys

from rookery.app import make_platform
from rookery.settings import Settings
from tests.ledger import till


def say(line: str) -> None:
    os.write(1, f"{line}\n".encode())


def start(settings: Settings, clients: int) -> int:
    child = os.fork()
    if child:
        return child
    try:
        # The orders are the parent's.
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        platform = make_platform(settings, extra={"till": till})
        asyncio.run(till.use(platform, clients, str(os.getpid()), lambda key: say(f"did {key}")))
    finally:
        os._exit(1)


def end(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def main(url: str, home: str, clients: int) -> None:
    settings = Settings(home=home, database=url, plugins=False)
    children: set[int] = set()
    for line in sys.stdin:
        order, _, pid = line.strip().partition(" ")
        if order == "start":
            children.add(child := start(settings, clients))
            say(f"started {child}")
        else:
            children.remove(int(pid))
            end(int(pid))
            say(f"gone {pid}")
    for child in children:
        end(child)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
