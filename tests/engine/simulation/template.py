"""A database with the agents of every role, made once for a run and copied for each history."""

import random
import tempfile
from functools import cache
from typing import Any

from rookery.identity.binding import Binding
from rookery.identity.store import DEFAULT_TENANT
from rookery.ledger.store import Ledger, wallet_of
from rookery.settings import Settings
from tests.engine.simulation.clock import VirtualLoop, virtual_time
from tests.engine.simulation.disk import Disk
from tests.engine.simulation.log import Log
from tests.engine.simulation.process import RUNTIME, Process

AGENTS = ("judge", "worker", "planner", "architect", "researcher", "intake", "scanner")
CREDITS = 1_000_000


@cache
def template() -> bytes:
    """The file as bytes: the same in every run."""
    loop = VirtualLoop(random.Random("template"))
    with tempfile.TemporaryDirectory(prefix="rookery-simulation-") as home, virtual_time(loop):
        disk = Disk(None, loop, Log(loop.time, keep=False))
        try:
            loop.run_until_complete(_fill(disk, home))
            return disk.driver.serialize()
        finally:
            disk.close()
            loop.close()


async def _fill(disk: Disk, home: str) -> None:
    # With a runtime, so that what that needs is loaded now: what is random in loading must not be a part of a history.
    settings = Settings(home=home, plugins=False, runtime=RUNTIME)
    process = Process("template", disk, settings, lambda: 0.001, disk.log, works=False, prepare=True)
    platform = process.platform
    owner = process.database.direct(lambda tx: platform.resolver.resolve(tx, Binding(as_owner=True))).actor

    async def call(tool: str, **arguments: Any) -> Any:
        return (await platform.calls.call(owner, tool, arguments)).value

    for name in AGENTS:
        wallet = wallet_of((await call("create_agent", name=name)).id)
        await process.database.change(lambda tx, to=wallet: Ledger(tx, DEFAULT_TENANT).grant(to, CREDITS, "start"))
