"""A process that makes calls when told to: `python -m tests.around.caller URL HOME`, commands on standard input.

`calls NAME` makes a round of calls and prints what became of each, as JSON. `become_nobody` gives up root's rights and
opens the database anew. `limit BYTES` caps the size of files that the process may write, `limit none` lifts that.
"""

import asyncio
import json
import os
import resource
import sys
from typing import Any

from rookery.app import Platform, make_platform
from rookery.core.actor import Actor
from rookery.core.errors import RookeryError
from rookery.identity.resolve import Binding
from rookery.settings import Settings
from tests.around import workload

NOBODY = 65534
BURST = 12


async def call(platform: Platform, actor: Actor, tool: str, key: str) -> dict[str, Any]:
    arguments = {} if tool in ("ping", "count_pairs") else {"key": key}
    told: dict[str, Any] = {"tool": tool, "key": key}
    try:
        await asyncio.wait_for(platform.calls.call(actor, tool, arguments, request_id=key), 60)
    except RookeryError as error:
        return {**told, "code": error.code, "message": error.message}
    return {**told, "code": "ok", "message": ""}


async def calls(platform: Platform, actor: Actor, name: str) -> None:
    """One after the other, and then all at once."""
    tools = ("ping", "add_pair", "count_pairs", "reach_out")
    told = [await call(platform, actor, tool, f"{name}-{tool}") for tool in tools]
    burst = [call(platform, actor, tools[at % 4], f"{name}-{at}") for at in range(BURST)]
    told += await asyncio.gather(*burst)
    print(json.dumps({"calls": told, "reached": workload.REACHED}), flush=True)


async def main(url: str, home: str) -> None:
    settings = Settings(home=home, database=url, plugins=False)
    platform = make_platform(settings, extra={"workload": workload})
    actor = platform.database.direct(lambda tx: platform.resolver.resolve(tx, Binding())).actor
    print("ready", flush=True)
    while line := sys.stdin.readline().split():
        if line[0] == "calls":
            await calls(platform, actor, line[1])
        elif line[0] == "become_nobody":
            platform.close()
            print("closed", flush=True)
            sys.stdin.readline()
            if os.geteuid() == 0:
                os.setgroups([])
                os.setgid(NOBODY)
                os.setuid(NOBODY)
            platform = make_platform(settings, prepare=False, extra={"workload": workload})
        elif line[0] == "limit":
            hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
            resource.setrlimit(resource.RLIMIT_FSIZE, (hard if line[1] == "none" else int(line[1]), hard))
    platform.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2]))
