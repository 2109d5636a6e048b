"""Prepares and removes workspaces in processes that may be killed, one for each line; says how each ended."""

import asyncio
import json
import os
import sys
from typing import Any

from rookery.engine.workspaces import Site, prepare, remove
from tests.engine.yard import row_of


async def do(wanted: dict[str, Any]) -> None:
    site = Site(**wanted["site"])
    if wanted["what"] == "prepare":
        await prepare(site, wanted["issue_id"], wanted["identifier"])
    else:
        await remove(site, row_of(**wanted["row"]))


def main() -> None:
    for line in sys.stdin:
        wanted = json.loads(line)
        child = os.fork()
        if child == 0:
            os.environ["PATH"] = wanted["path"]
            asyncio.run(do(wanted))
            os._exit(0)
        print(child, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


main()
