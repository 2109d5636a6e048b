"""Processes that are killed while they make calls: `python -m tests.db.victim URL HOME`.

For each line on standard input a child is forked, which says `pid N`, makes calls until it is killed and says of each,
once it is answered, `pair KEY` or `ping REQUEST`. When the child is gone, `gone` is said. Forking a process that has
everything imported makes a victim in a hundredth of the time.
"""

import asyncio
import os
import sys

from rookery.app import Platform, make_platform
from rookery.identity.resolve import Binding
from rookery.settings import Settings
from tests.around import workload

IN_FLIGHT = 20


def say(line: str) -> None:
    os.write(1, f"{line}\n".encode())


async def call_for_ever(platform: Platform) -> None:
    actor = platform.database.direct(lambda tx: platform.resolver.resolve(tx, Binding())).actor

    async def one(name: int) -> None:
        number = 0
        while True:
            key = f"{os.getpid()}-{name}-{number}"
            if (name + number) % 3:
                await platform.calls.call(actor, "add_pair", {"key": key}, request_id=key)
                say(f"pair {key}")
            else:
                await platform.calls.call(actor, "ping", {}, request_id=key)
                say(f"ping {key}")
            number += 1

    await asyncio.gather(*(one(name) for name in range(IN_FLIGHT)))


def main(url: str, home: str) -> None:
    settings = Settings(home=home, database=url, plugins=False)
    for _ in sys.stdin:
        child = os.fork()
        if child == 0:
            say(f"pid {os.getpid()}")
            asyncio.run(call_for_ever(make_platform(settings, extra={"workload": workload})))
        os.waitpid(child, 0)
        say("gone")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
