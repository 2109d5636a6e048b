"""A worker in a process of its own, to be killed. Its agents say that they have begun, and answer at an open gate."""

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

from rookery.app import make_platform
from rookery.jobs.worker import Worker
from rookery.lifecycle.sessions import Outcome
from rookery.settings import Settings

LEASE_S = 1.0
LOOK_S = 0.02


class Waiting:
    """An agent that waits for the gate."""

    def __init__(self, key: str, folder: Path) -> None:
        self.id = f"ses-{os.getpid()}-{key}"
        self._folder = folder

    async def wait(self) -> Outcome:
        while not (self._folder / "gate").exists():
            await asyncio.sleep(LOOK_S)
        return Outcome("done", output=f"said by {os.getpid()}")

    async def stop(self) -> None:
        return None


class Gated:
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def start_session(self, actor: Any, prompt: str, *, key: str, **how: Any) -> Waiting:
        with (self._folder / "witness").open("a", encoding="utf-8") as witness:
            witness.write(f"{os.getpid()} {key}\n")
        return Waiting(key, self._folder)


async def work(database_url: str, home: str, folder: str) -> None:
    settings = Settings(home=home, database=database_url, plugins=False)
    platform = make_platform(settings, extra={}, runtime=Gated(Path(folder)))
    print("up", flush=True)
    await Worker(platform, concurrency=8, lease_s=LEASE_S).run()


if __name__ == "__main__":
    asyncio.run(work(sys.argv[1], sys.argv[2], sys.argv[3]))
