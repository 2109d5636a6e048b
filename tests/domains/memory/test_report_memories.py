from collections.abc import Callable

import pytest

from rookery.core.errors import ConfigurationError, PermissionDenied
from rookery.domains.memory.recalls import recalls_of
from tests.domains.memory.minds import WORDS, Minds


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


async def test_what_says_the_same_is_counted_as_a_duplicate(plain_minds: Minds) -> None:
    minds = plain_minds
    for number in (1, 2):
        await minds.save(minds.ada, f"port {number}", f"The port of server {number} is the usual one")
    minds.change(content=b"The port is the usual one")
    (told,) = (await minds.fleet.call(minds.fleet.owner, "report_memories")).owners
    assert (told["memories"], told["duplicates"]) == (2, 1)


async def test_a_server_that_lost_its_key_writes_nothing_plain(make_minds: Callable[..., Minds]) -> None:
    sealed = make_minds(mnemonic=WORDS)
    await sealed.save(sealed.ada, "deploy", "The deploy script needs the staging flag before noon")
    without = make_minds()
    with pytest.raises(ConfigurationError, match="no key is set"):
        await without.save(without.ada, "lunch", "Lunch is at one in the room behind the garden")
    assert len(sealed.rows()) == 1
