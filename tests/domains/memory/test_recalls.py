import time

import sqlalchemy as sa

from rookery.core.errors import DatabaseError
from rookery.domains.memory.recalls import MOST, Recalls, recalls_of
from rookery.domains.memory.tables import memory_recalls
from tests.domains.memory.minds import Minds

LONGEST_S = 20


def counted(minds: Minds) -> dict[int, int]:
    """How often each memory was recalled, once everything is written."""
    minds.direct(recalls_of(minds.fleet.platform.calls).flush)
    return {row.memory_seq: row.recalls for row in minds.rows(sa.select(memory_recalls))}


async def test_what_is_found_by_key_words_or_address_is_counted_and_what_is_only_listed_is_not(minds: Minds) -> None:
    for key in ("a", "b", "c"):
        await minds.save(minds.ada, key, f"heron of {key}{key}{key}")
    first, second, _ = (row.seq for row in minds.rows())
    await minds.recall(minds.ada)
    await minds.recall(minds.ada, key="a")
    await minds.recall(minds.ada, query="aaa")
    await minds.fleet.platform.calls.read(minds.ada, "memory://b")
    wanted, limit = {first: 2, second: 1}, time.monotonic() + LONGEST_S
    # The thread that writes may have some of them in hand.
    while counted(minds) != wanted and time.monotonic() < limit:
        pass
    assert counted(minds) == wanted


async def test_counts_come_into_the_database_by_themselves(minds: Minds) -> None:
    await minds.save(minds.ada, "a", "heron")
    await minds.recall(minds.ada, key="a")
    limit = time.monotonic() + LONGEST_S
    while not minds.rows(sa.select(memory_recalls)) and time.monotonic() < limit:
        pass
    assert [row.recalls for row in minds.rows(sa.select(memory_recalls))] == [1]


async def test_a_memory_that_is_gone_is_not_counted(minds: Minds) -> None:
    recalls = Recalls(minds.fleet.platform.database)
    recalls.add([99])
    minds.direct(recalls.flush)
    assert minds.rows(sa.select(memory_recalls)) == []


def test_what_cannot_be_written_harms_nobody_and_memory_is_bounded(minds: Minds) -> None:
    recalls = Recalls(minds.fleet.platform.database)
    recalls.add(range(MOST + 5))
    assert recalls.pending <= MOST

    class Broken:
        def direct(self, work: object, *, write: bool) -> None:
            raise DatabaseError("no")

    broken = Recalls(Broken())  # pyright: ignore[reportArgumentType]
    broken.add([1])
    broken.close()
