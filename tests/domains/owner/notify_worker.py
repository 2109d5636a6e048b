"""A worker in a process of its own, to be killed."""

import asyncio
import sys
from typing import Any

from rookery.app import make_platform
from rookery.jobs.worker import Worker
from rookery.settings import Settings
from tests.domains.owner.telling import HERE, Everywhere

LEASE_S = 1.0


async def work(database_url: str, home: str) -> None:
    settings = Settings(home=home, database=database_url, plugins=False, outgoing_allow=HERE)
    print("up", flush=True)
    platform = make_platform(settings, extra={})
    facts: Any = platform.calls.facts
    facts["outgoing"] = Everywhere(HERE)
    await Worker(platform, concurrency=4, lease_s=LEASE_S).run()


if __name__ == "__main__":
    asyncio.run(work(sys.argv[1], sys.argv[2]))
