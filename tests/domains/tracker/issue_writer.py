"""One of several processes that use one tracker: `python -m tests.domains.tracker.issue_writer create|claim URL HOME`.

Says `ready`, waits for a line, makes its calls at once, and prints what came of each as JSON.
"""

import asyncio
import json
import os
import sys
from typing import Any

from rookery.app import Platform, make_platform
from rookery.core.errors import RookeryError
from rookery.identity.resolve import Binding
from rookery.settings import Settings

CALLS = 12


async def one_call(platform: Platform, kind: str, at: int) -> dict[str, Any]:
    """The result of one call by a session of its own, or the code of the refusal. Every third creation is refused."""
    binding = Binding(profile="worker", session=f"{os.getpid()}-{at}")
    actor = (await platform.database.read(lambda tx: platform.resolver.resolve(tx, binding))).actor
    needed = ["SYM-99999"] if at % 3 == 2 else []
    arguments = {"title": f"{os.getpid()} {at}", "depends_on": needed} if kind == "create" else {}
    try:
        return (await platform.calls.call(actor, f"{kind}_issue", arguments)).structured
    except RookeryError as error:
        return {"code": error.code, "message": error.message}


async def main(kind: str, url: str, home: str) -> None:
    platform = make_platform(Settings(home=home, database=url, plugins=False), prepare=False, extra={})
    print("ready", flush=True)
    sys.stdin.readline()
    done = await asyncio.gather(*(one_call(platform, kind, at) for at in range(CALLS)))
    platform.close()
    print(json.dumps(done))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
