"""A worker with scripted agents in a process of its own, to be killed."""

import asyncio
import sys

from rookery.app import make_platform
from rookery.jobs.worker import Worker
from rookery.settings import Settings

LEASE_S = 1.0


async def work(database_url: str, home: str) -> None:
    settings = Settings(home=home, database=database_url, plugins=False, runtime="scripted")
    platform = make_platform(settings, extra={})
    print("up", flush=True)
    await Worker(platform, concurrency=4, lease_s=LEASE_S).run()


if __name__ == "__main__":
    asyncio.run(work(sys.argv[1], sys.argv[2]))
