"""A worker with scripted agents in a process of its own, to be killed."""

import asyncio
import sys

from rookery.app import make_platform
from rookery.jobs.worker import Worker
from rookery.runtimes.scripted import Scripted
from rookery.settings import Settings

LEASE_S = 1.0


async def work(database_url: str, home: str) -> None:
    runtime = Scripted()
    platform = make_platform(Settings(home=home, database=database_url, plugins=False), extra={}, runtime=runtime)
    runtime.calls = platform.calls
    print("up", flush=True)
    await Worker(platform, concurrency=4, lease_s=LEASE_S).run()


if __name__ == "__main__":
    asyncio.run(work(sys.argv[1], sys.argv[2]))
