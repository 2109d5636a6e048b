import subprocess
import sys
from pathlib import Path

import pytest
import sqlalchemy as sa

from rookery.core.errors import ConfigurationError
from rookery.domains.memory import rotation
from rookery.domains.memory.rotation import rotate
from rookery.domains.memory.tables import memories, memory_owners
from rookery.sealing.keyring import Keyring
from tests.domains.memory.minds import Minds

OLD_SECRET, NEW_SECRET = bytes(range(32)), bytes(range(32, 64))
OLD, NEW = Keyring(OLD_SECRET), Keyring(NEW_SECRET)
ROOT = Path(__file__).parents[3]


def use(minds: Minds, keyring: Keyring | None, *, hide_keys: bool = False) -> Minds:
    """The same server as if it had been started with this key."""
    calls = minds.fleet.platform.calls
    calls.facts = {**calls.facts, "keyring": keyring, "hide_keys": hide_keys}
    return minds


async def fill(minds: Minds, number: int) -> None:
    for each in range(number):
        await minds.save(minds.ada, f"note {each}", f"heron number {each}")
    await minds.fleet.call(minds.ada, "forget_memory", key="note 0", archive=True)


async def check(minds: Minds, number: int) -> None:
    """Everything is there as it was saved, by key and by words."""
    for each in range(number):
        (found,) = await minds.recall(minds.ada, key=f"note {each}")
        assert found["content"] == f"heron number {each}"
    assert len(await minds.keys(minds.ada, "herons", limit=50)) == number - 1


def versions(minds: Minds) -> set[int | None]:
    return {row.key_version for row in minds.rows(sa.select(memories.c.key_version))}


async def test_with_a_wrong_old_key_nothing_is_changed(plain_minds: Minds) -> None:
    minds = use(plain_minds, OLD)
    await fill(minds, 3)
    before = minds.rows()
    with pytest.raises(ConfigurationError):
        rotate(minds.fleet.platform.database, NEW, Keyring(b"another key of more than 32 bytes"))
    assert minds.rows() == before
    with pytest.raises(ConfigurationError):
        rotate(minds.fleet.platform.database, None, NEW)
    assert minds.rows() == before


@pytest.mark.parametrize("start", [None, OLD])
async def test_every_memory_opens_with_the_new_key_and_is_found_with_it(
    plain_minds: Minds, start: Keyring | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rotation, "BATCH", 4)
    minds = use(plain_minds, start)
    await fill(minds, 10)
    told: list[int] = []
    assert rotate(minds.fleet.platform.database, start, NEW, told=told.append) == 10
    assert sum(told) == 10
    use(minds, NEW)
    await check(minds, 10)
    assert len(versions(minds)) == 1
    (counts,) = minds.rows(sa.select(memory_owners))
    assert (counts.memories, counts.plain) == (10, 0)
    assert rotate(minds.fleet.platform.database, None, NEW) == 0
    with pytest.raises(ConfigurationError):
        await use(minds, OLD).recall(minds.ada)
    with pytest.raises(ConfigurationError) as caught:
        await use(minds, None).recall(minds.ada)
    assert "ROOKERY_MNEMONIC" in str(caught.value.hint)


async def test_keys_are_hidden_and_shown_again(plain_minds: Minds) -> None:
    minds = use(plain_minds, OLD)
    await fill(minds, 3)
    rotate(minds.fleet.platform.database, OLD, OLD, hide_keys=True)
    assert [row.key for row in minds.rows() if "note" in row.key] == []
    await check(use(minds, OLD, hide_keys=True), 3)
    rotate(minds.fleet.platform.database, OLD, OLD, hide_keys=False)
    assert [row.key for row in minds.rows()] == ["note 0", "note 1", "note 2"]
    await check(use(minds, OLD), 3)


async def test_killed_half_way_it_goes_on_from_there(plain_minds: Minds) -> None:
    minds = use(plain_minds, OLD)
    await fill(minds, 40)
    url = minds.fleet.platform.database.url
    keys = (OLD_SECRET.hex(), NEW_SECRET.hex())
    command = [sys.executable, "-m", "tests.domains.memory.rotator", url, *keys, "1"]
    for _ in range(3):
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout
            assert process.stdout.readline() == "1\n"
            process.kill()
    assert len(versions(minds)) == 2
    left = rotate(minds.fleet.platform.database, OLD, NEW)
    assert 0 < left < 40
    await check(use(minds, NEW), 40)
