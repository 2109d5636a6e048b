"""The upkeep of an agent's memories, as a job of its own or as a part of another."""

from rookery.db.tx import Tx
from rookery.domains.memory.row_seal import RowSeal
from rookery.domains.memory.search import DAY_MS
from rookery.domains.memory.store import SWEEP, Memories, now_ms
from rookery.domains.memory.words import Owner
from rookery.jobs.kinds import JobArgs, job
from rookery.jobs.running import Running

UNUSED_DAYS = 90
"""What nobody has found for so long is archived: kept, and found by its key alone."""
MAX_ROUNDS = 1_000


class MaintainArgs(JobArgs):
    agent_id: str


@job("memory.maintain")
async def maintain(job: Running, args: MaintainArgs) -> None:
    """Remove an agent's memories whose time is over, and archive old ones that were never recalled.

    A little at a time, each in a transaction of its own: what was done stays done, and nobody waits for long.
    """
    seal = RowSeal(job.platform.calls.facts.get("keyring"))
    owner = Owner(job.tenant, f"agent:{args.agent_id}")
    before_ms = now_ms() - UNUSED_DAYS * DAY_MS

    def round_(tx: Tx) -> int:
        memories = Memories(tx, owner, seal)
        return max(memories.sweep(), memories.archive_unused(before_ms))

    for _ in range(MAX_ROUNDS):
        if await job.write(round_) < SWEEP:
            return
