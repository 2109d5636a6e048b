import pytest

from rookery.core.errors import PermissionDenied
from rookery.domains.memory.recalls import recalls_of
from tests.domains.memory.minds import Minds


async def test_no_agent_has_it(minds: Minds) -> None:
    with pytest.raises(PermissionDenied):
        await minds.fleet.call(minds.ada, "report_memories")


async def test_it_counts_what_piles_up_and_tells_nothing_of_it(minds: Minds) -> None:
    bob = await minds.agent("bob")
    await minds.save(minds.ada, "deploy", "The deploy script needs the staging flag before noon")
    await minds.save(minds.ada, "lunch", "Lunch is at one in the room behind the garden")
    await minds.save(bob, "colour", "The logo is teal on white and never the other way round")
    await minds.save(minds.stranger(), "secret", "Somebody else's plan for the winter holidays")
    await minds.recall(minds.ada, key="deploy")
    minds.fleet.platform.database.direct(recalls_of(minds.fleet.platform.calls).flush, write=True)
    await minds.fleet.call(minds.ada, "forget_memory", key="lunch", archive=True)
    told = (await minds.fleet.call(minds.fleet.owner, "report_memories")).owners
    assert [(each["memories"], each["archived"], each["never_recalled"], each["duplicates"]) for each in told] == [
        (2, 1, 1, 0),
        (1, 0, 1, 0),
    ]
    assert "staging" not in str(told)
    assert "deploy" not in str(told)
