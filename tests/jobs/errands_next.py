"""What the next version of the errands can do besides."""

from collections.abc import Callable

from rookery.db.tx import Tx
from rookery.jobs.kinds import job
from rookery.jobs.running import Running
from tests.jobs.errands import Errand, effect


@job("errands.novel")
async def novel(running: Running, args: Errand) -> Callable[[Tx], None]:
    return lambda tx: effect(tx, running, args.word)
