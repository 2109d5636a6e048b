import pytest
import sqlalchemy as sa

from rookery.core.errors import InvalidParams, NotFound, PermissionDenied
from rookery.domains.reputation.tables import known_attesters
from tests.domains.reputation.bench import Bench

KNOWN = {"tenant": "default", "log": "https://x/log.json", "agent_id": "a", "keyid": "k", "entries": 1, "hash": "h"}


async def test_only_people_forget_and_only_what_is_theirs(bench: Bench) -> None:
    bench.change(sa.insert(known_attesters).values(**KNOWN, seen_ms=1))
    with pytest.raises(PermissionDenied):
        await bench.fleet.call(bench.fleet.actor(), "forget_attester", log=KNOWN["log"])
    with pytest.raises(NotFound):
        await bench.fleet.call(bench.stranger, "forget_attester", log=KNOWN["log"])
    with pytest.raises(NotFound):
        await bench.fleet.call(bench.fleet.owner, "forget_attester", log="https://y/log.json")
    with pytest.raises(InvalidParams):
        await bench.fleet.call(bench.fleet.owner, "forget_attester", log="")
    assert len(bench.rows(sa.select(known_attesters))) == 1


async def test_what_is_forgotten_is_gone(bench: Bench) -> None:
    bench.change(sa.insert(known_attesters).values(**KNOWN, seen_ms=1))
    told = await bench.fleet.call(bench.fleet.owner, "forget_attester", log=KNOWN["log"])
    assert told.log == KNOWN["log"]
    assert bench.rows(sa.select(known_attesters)) == []


@pytest.mark.parametrize("said", ["https://x/.well-known/agent-card.json", "https://X:443/", "https://x/log.json"])
async def test_card_and_log_are_forgotten_together_by_either(bench: Bench, said: str) -> None:
    other = {"log": "https://y/log.json", "keyid": "l"}
    for row in (KNOWN, KNOWN | {"log": "https://x/.well-known/agent-card.json"}, KNOWN | other):
        bench.change(sa.insert(known_attesters).values(**row, seen_ms=1))
    await bench.fleet.call(bench.fleet.owner, "forget_attester", log=said)
    [left] = bench.rows(sa.select(known_attesters))
    assert left.log == other["log"]
    with pytest.raises(NotFound):
        await bench.fleet.call(bench.fleet.owner, "forget_attester", log="https://[")


async def test_whoever_showed_a_copy_does_not_take_the_memory_of_the_first_along(bench: Bench) -> None:
    copies = ("https://evil/log.json", "https://evil/.well-known/agent-card.json", "https://x:8443/log.json")
    for row in (KNOWN, *(KNOWN | {"log": place} for place in copies)):
        bench.change(sa.insert(known_attesters).values(**row, seen_ms=1))
    await bench.fleet.call(bench.fleet.owner, "forget_attester", log="https://evil")
    left = {row.log for row in bench.rows(sa.select(known_attesters))}
    assert left == {KNOWN["log"], "https://x:8443/log.json"}
