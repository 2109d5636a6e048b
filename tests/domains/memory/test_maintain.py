"""The upkeep of memories: what is over goes, what nobody ever looked for is put away, and the rest stays."""

import sqlalchemy as sa

from rookery.domains.memory.search import DAY_MS
from rookery.domains.memory.store import now_ms
from rookery.domains.memory.tables import memories, memory_owners, memory_recalls
from rookery.jobs.store import Jobs
from tests.domains.memory.minds import Minds
from tests.jobs.working import running_worker, settled


async def maintain(minds: Minds, agent_id: str | None) -> None:
    minds.direct(lambda tx: Jobs(tx, "default").defer("memory.maintain", {"agent_id": agent_id}))
    async with running_worker(minds.fleet.platform):
        await settled(minds.fleet.platform)


def age(minds: Minds, days: int, **more: object) -> None:
    minds.change(updated_ms=now_ms() - days * DAY_MS, **more)


async def test_memories_of_others_are_left_alone(minds: Minds) -> None:
    bob = await minds.agent("bob")
    await minds.save(minds.ada, "a", "a heron by the lake")
    await minds.save(minds.stranger(), "a", "a stork on the roof")
    age(minds, 365, expires_ms=1)
    await maintain(minds, bob.agent)
    assert [row.archived for row in minds.rows()] == [False, False]


async def test_what_is_over_is_removed_however_much_it_is(minds: Minds) -> None:
    for number in range(110):
        await minds.save(minds.ada, f"key{number}", f"memory of the number {number} and word{number}")
    await minds.save(minds.ada, "kept", "a heron by the lake")
    over = sa.update(memories).where(memories.c.seq.not_in(sa.select(sa.func.max(memories.c.seq))))
    minds.direct(lambda tx: tx.run(over.values(expires_ms=1)))
    await maintain(minds, minds.ada.agent)
    assert await minds.keys(minds.ada) == ["kept"]
    (counts,) = minds.rows(sa.select(memory_owners))
    (left,) = minds.rows()
    assert (counts.memories, counts.words) == (1, left.words)


async def test_what_is_old_and_was_never_recalled_is_archived_and_what_was_recalled_is_not(minds: Minds) -> None:
    for key in ("used", "unused"):
        await minds.save(minds.ada, key, f"a heron that is {key}{key}")
    seq = minds.rows()[0].seq
    minds.direct(lambda tx: tx.run(sa.insert(memory_recalls).values(memory_seq=seq, recalls=1, recalled_ms=1)))
    age(minds, 89)
    await maintain(minds, minds.ada.agent)
    assert sorted(await minds.keys(minds.ada)) == ["unused", "used"]
    age(minds, 91)
    await maintain(minds, minds.ada.agent)
    assert await minds.keys(minds.ada) == ["used"]
    assert await minds.keys(minds.ada, "heron") == ["used"]
    assert [found["content"] for found in await minds.recall(minds.ada, key="unused")] == [
        "a heron that is unusedunused"
    ]
    (counts,) = minds.rows(sa.select(memory_owners))
    assert (counts.memories, counts.words) == (2, sum(row.words for row in minds.rows()))
