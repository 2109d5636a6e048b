"""A worker with scripted agents in a process of its own, in which nobody pauses anything."""

import asyncio
import sys

from rookery.app import make_platform
from rookery.jobs.worker import Worker
from rookery.settings import Settings
from tests.lifecycle import session_trials


async def work(database_url: str, home: str) -> None:
    settings = Settings(home=home, database=database_url, plugins=False, runtime="scripted", pause_grace_s=0.2)
    platform = make_platform(settings, extra={"trial": session_trials})
    print("up", flush=True)
    await Worker(platform, concurrency=4).run()


if __name__ == "__main__":
    asyncio.run(work(sys.argv[1], sys.argv[2]))
