from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import DatabaseError as SqlError

from rookery.core.errors import ConfigurationError, DatabaseError, NotFound, PermissionDenied, ServiceUnavailable
from rookery.domains.memory.ledger import Entry, append, broken_at
from rookery.domains.memory.tables import memory_ledger
from rookery.domains.memory.tools import LEDGER_COPY
from tests.domains.memory.minds import Minds


class DeafLedger:
    """A ledger that is out of reach."""

    async def put(self, entry: Entry) -> str:
        raise ServiceUnavailable("no answer")


class SlowLedger:
    """A ledger that takes so long that the memory is changed meanwhile."""

    def __init__(self, minds: Minds) -> None:
        self.minds = minds

    async def put(self, entry: Entry) -> str:
        await self.minds.save(self.minds.ada, "a", "something else by now")
        return "ltx-late"


def use(minds: Minds, ledger: Any) -> None:
    minds.fleet.platform.calls.facts = {**minds.fleet.platform.calls.facts, "ledger": ledger}


async def promote(minds: Minds, key: str = "a") -> Any:
    return await minds.fleet.call(minds.ada, "promote_memory", key=key)


async def test_a_profile_has_it_not(sealed_minds: Minds) -> None:
    with pytest.raises(PermissionDenied):
        await sealed_minds.fleet.call(sealed_minds.fleet.actor(profile="worker"), "promote_memory", key="a")


async def test_without_a_key_nothing_goes_to_the_ledger(plain_minds: Minds) -> None:
    await plain_minds.save(plain_minds.ada, "a", "the heron")
    with pytest.raises(ConfigurationError) as caught:
        await promote(plain_minds)
    assert "ROOKERY_MNEMONIC" in str(caught.value.hint)
    assert plain_minds.rows(sa.select(memory_ledger)) == []


async def test_nobody_elses_memory_is_promoted(sealed_minds: Minds) -> None:
    await sealed_minds.save(sealed_minds.fleet.owner, "a", "the heron")
    with pytest.raises(NotFound):
        await promote(sealed_minds)


async def test_a_promoted_memory_is_confirmed_with_a_sealed_copy_and_recall_shows_it(sealed_minds: Minds) -> None:
    minds = sealed_minds
    await minds.save(minds.ada, "a", "the heron nests")
    done = await promote(minds)
    (found,) = await minds.recall(minds.ada, key="a")
    assert (done.status, found["status"], found["txid"]) == ("confirmed", "confirmed", done.txid[-8:])
    (entry,) = minds.rows(sa.select(memory_ledger))
    assert (entry.txid, entry.memory_id) == (done.txid, minds.rows()[0].id)
    assert b"heron" not in entry.payload
    keyring = minds.fleet.platform.calls.facts["keyring"]
    assert keyring.open(LEDGER_COPY, entry.payload, entry.memory_id) == "[MEMORY:a] the heron nests"


async def test_promoting_twice_writes_once_and_a_changed_memory_again(sealed_minds: Minds) -> None:
    minds = sealed_minds
    await minds.save(minds.ada, "a", "the heron nests")
    first = await promote(minds)
    await minds.save(minds.ada, "a", "the heron nests")
    assert (await promote(minds)).txid == first.txid
    await minds.save(minds.ada, "a", "the heron has left")
    assert [found["status"] for found in await minds.recall(minds.ada)] == ["none"]
    assert (await promote(minds)).txid != first.txid
    assert len(minds.rows(sa.select(memory_ledger))) == 2


async def test_a_ledger_that_fails_leaves_the_memory_failed_to_be_promoted_again(sealed_minds: Minds) -> None:
    minds = sealed_minds
    await minds.save(minds.ada, "a", "the heron nests")
    use(minds, DeafLedger())
    with pytest.raises(ServiceUnavailable):
        await promote(minds)
    assert [found["status"] for found in await minds.recall(minds.ada)] == ["failed"]
    use(minds, None)
    assert (await promote(minds)).status == "confirmed"


async def test_what_was_changed_meanwhile_is_not_confirmed(sealed_minds: Minds) -> None:
    minds = sealed_minds
    await minds.save(minds.ada, "a", "the heron nests")
    use(minds, SlowLedger(minds))
    with pytest.raises(Exception, match="changed meanwhile"):
        await promote(minds)
    assert [found["status"] for found in await minds.recall(minds.ada)] == ["none"]


async def test_the_ledger_is_whole_and_tells_what_was_changed_in_it(sealed_minds: Minds) -> None:
    minds = sealed_minds
    for number in range(3):
        await minds.save(minds.ada, f"a{number}", f"heron number {number}")
        await promote(minds, f"a{number}")
    assert minds.direct(broken_at) is None
    rows = minds.rows(sa.select(memory_ledger).order_by(memory_ledger.c.seq))
    with pytest.raises((DatabaseError, SqlError)):
        minds.direct(lambda tx: tx.run(sa.update(memory_ledger).values(owner="agent:eve")))
    with pytest.raises((DatabaseError, SqlError)):
        minds.direct(lambda tx: tx.run(sa.delete(memory_ledger)))
    kept = {name: getattr(rows[0], name) for name in rows[0]._fields if name != "seq"}
    minds.direct(lambda tx: tx.run(sa.insert(memory_ledger), [{**kept, "txid": "ltx-forged"}]))
    assert minds.direct(broken_at) == rows[-1].seq + 1


def test_an_entry_gets_an_id_of_its_own(sealed_minds: Minds) -> None:
    entry = Entry(tenant="default", owner="agent:a", memory_id="mem-1", key_version=1, payload=b"sealed")
    ids = {sealed_minds.direct(lambda tx: append(tx, entry)) for _ in range(3)}
    assert len(ids) == 3
