import pytest
import sqlalchemy as sa

from rookery.core.errors import NotFound, PermissionDenied
from rookery.domains.memory.tables import memory_owners, memory_recalls
from tests.domains.memory.minds import Minds


async def test_a_profile_has_it_not(plain_minds: Minds) -> None:
    with pytest.raises(PermissionDenied):
        await plain_minds.fleet.call(plain_minds.fleet.actor(profile="worker"), "forget_memory", key="a")


async def test_what_is_unknown_or_anybody_elses_is_not_found_and_stays(minds: Minds) -> None:
    await minds.save(minds.ada, "a", "mine alone")
    for actor in (await minds.agent("bob"), minds.fleet.owner, minds.stranger()):
        for archive in (False, True):
            with pytest.raises(NotFound) as caught:
                await minds.fleet.call(actor, "forget_memory", key="a", archive=archive)
            assert caught.value.hint
    assert await minds.keys(minds.ada) == ["a"]


async def test_a_forgotten_memory_leaves_nothing_behind(minds: Minds) -> None:
    await minds.save(minds.ada, "a", "heron in the reeds")
    assert await minds.keys(minds.ada, "heron") == ["a"]
    done = await minds.fleet.call(minds.ada, "forget_memory", key="a")
    assert done.outcome == "forgotten"
    assert await minds.keys(minds.ada, "heron") == []
    assert minds.rows() == []
    (counts,) = minds.rows(sa.select(memory_owners))
    assert (counts.memories, counts.words, counts.plain) == (0, 0, 0)
    # Recalls are written by a thread of their own, which finds no memory to count for.
    assert [row for row in minds.rows(sa.select(memory_recalls)) if row.recalls > 1] == []
    with pytest.raises(NotFound):
        await minds.fleet.call(minds.ada, "forget_memory", key="a")


async def test_an_archived_memory_is_found_by_its_key_alone_until_it_is_saved_again(minds: Minds) -> None:
    await minds.save(minds.ada, "a", "heron in the reeds")
    assert (await minds.fleet.call(minds.ada, "forget_memory", key="a", archive=True)).outcome == "archived"
    await minds.fleet.call(minds.ada, "forget_memory", key="a", archive=True)
    assert await minds.keys(minds.ada, "heron") == []
    assert await minds.keys(minds.ada) == []
    (found,) = await minds.recall(minds.ada, key="a")
    assert (found["content"], found["archived"]) == ("heron in the reeds", True)
    assert (await minds.save(minds.ada, "a", "heron in the reeds")).outcome == "updated"
    assert await minds.keys(minds.ada, "heron") == ["a"]
    (row,), (counts,) = minds.rows(), minds.rows(sa.select(memory_owners))
    assert (counts.memories, counts.words) == (1, row.words)
