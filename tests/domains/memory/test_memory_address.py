import pytest

from rookery.core.errors import NotFound
from tests.domains.memory.minds import Minds


async def test_nobody_elses_memory_can_be_read_by_its_address(minds: Minds) -> None:
    await minds.save(minds.ada, "a", "mine alone")
    for actor in (await minds.agent("bob"), minds.fleet.owner, minds.stranger()):
        with pytest.raises(NotFound):
            await minds.fleet.platform.calls.read(actor, "memory://a")
        assert await entries(minds, actor) == []


async def entries(minds: Minds, actor: object) -> list[str]:
    calls = minds.fleet.platform.calls
    declared = next(each for each in minds.fleet.platform.registry.resources() if each.name == "memory")
    assert declared.entries
    return [entry.uri for entry in await calls.look_up(actor, declared, "entries", declared.entries, {})]  # pyright: ignore


async def test_a_memory_is_read_whole_and_listed_by_an_address_that_leads_to_it(minds: Minds) -> None:
    text = "word " * 1_000
    await minds.save(minds.ada, "deploy/staging: größer?", text)
    (address,) = await entries(minds, minds.ada)
    (part,) = await minds.fleet.platform.calls.read(minds.ada, address)
    assert (part.text, part.mime_type) == (text, "text/plain")
