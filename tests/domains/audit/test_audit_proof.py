"""`show_audit_record` and `verify_audit_part`: one record with its place in the chain, and the chain in parts."""

from typing import Any

import pytest

from rookery.around.chain import GENESIS
from rookery.core.actor import Actor
from rookery.core.errors import InvalidParams, NotFound, PermissionDenied
from rookery.core.tool import Tool
from rookery.domains.audit.audit_proof import show_audit_record, verify_audit_part
from rookery.identity.store import IdentityStore
from tests.db import sample
from tests.domains.audit.test_search_audit import read, written
from tests.domains.audit.test_verify_audit import tamper
from tests.platform_fixtures import Fleet


async def parts(fleet: Fleet, limit: int = 4) -> list[Any]:
    """The whole chain, in parts."""
    checked = [await read(fleet, verify_audit_part, limit=limit)]
    while checked[-1].more:
        on = {"after": checked[-1].last, "head": checked[-1].head}
        checked.append(await read(fleet, verify_audit_part, limit=limit, **on))
    return checked


def row_at(fleet: Fleet, position: int) -> int:
    (row,) = sample.audit_rows(fleet.platform.database, f"position = {position}")
    return row.id


@pytest.mark.parametrize(("tool", "wanted"), [(show_audit_record, {"id": 1}), (verify_audit_part, {})])
async def test_an_agent_sees_no_proof(fleet: Fleet, tool: Tool, wanted: dict[str, int]) -> None:
    with pytest.raises(PermissionDenied) as caught:
        await read(fleet, tool, fleet.actor(), **wanted)
    assert caught.value.layer == "principal"


@pytest.fixture
def stranger(fleet: Fleet) -> Actor:
    fleet.platform.database.direct(lambda tx: IdentityStore(tx, "other").set_up(), write=True)
    return fleet.actor(tenant="other", as_owner=True)


async def test_a_record_of_another_tenant_is_not_there(fleet: Fleet, stranger: Actor) -> None:
    written(fleet, {})
    row = row_at(fleet, 1)
    assert (await read(fleet, show_audit_record, id=row)).record.tool == "ping"
    for actor, wanted in ((stranger, row), (fleet.owner, 10**9)):
        with pytest.raises(NotFound):
            await read(fleet, show_audit_record, actor, id=wanted)
    with pytest.raises(InvalidParams):
        await read(fleet, show_audit_record, id=0)


async def test_a_record_has_its_proof_and_the_rest_of_its_request(fleet: Fleet) -> None:
    written(fleet, {"tool": "first"}, {"tool": "second"}, {"tool": "other", "request": "req-2"})
    first, second = [await read(fleet, show_audit_record, id=row_at(fleet, n)) for n in (1, 2)]
    assert (first.previous, first.intact) == (GENESIS, True)
    assert (second.previous, second.intact) == (first.record.hash, True)
    assert [each.tool for each in first.same_request] == ["second"]
    tamper(fleet, "UPDATE audit_log SET outcome = 'done' WHERE position = 2")
    assert not (await read(fleet, show_audit_record, id=second.record.id)).intact


async def test_parts_make_up_the_whole_chain(fleet: Fleet) -> None:
    written(fleet, *({} for _ in range(9)))
    checked = await parts(fleet)
    assert all(each.intact for each in checked)
    assert [each.records for each in checked][:2] == [4, 8]
    whole = await fleet.call(fleet.owner, "verify_audit")
    assert whole.records >= checked[-1].records >= 9


async def test_a_broken_record_is_found_in_its_part_and_named_to_who_may_see_it(fleet: Fleet, stranger: Actor) -> None:
    written(fleet, *({} for _ in range(9)))
    tamper(fleet, "UPDATE audit_log SET outcome = 'done' WHERE position = 6")
    last = (await parts(fleet))[-1]
    assert (last.intact, last.more, last.broken_at, last.records) == (False, False, 6, 5)
    assert last.broken_row == row_at(fleet, 6)
    assert last.why == "record 6 does not match its hash"
    theirs = await read(fleet, verify_audit_part, stranger, limit=50)
    assert (theirs.intact, theirs.broken_at, theirs.broken_row) == (False, 6, None)


async def test_a_chain_whose_end_was_cut_off_or_written_anew_is_noticed(fleet: Fleet) -> None:
    written(fleet, *({} for _ in range(6)))
    end = row_at(fleet, 6)
    anew = await read(fleet, verify_audit_part, after=end, head="0" * 64)
    assert (anew.intact, anew.broken_at) == (False, 6)
    assert "another hash" in anew.why
    held = (await read(fleet, show_audit_record, id=end)).record.hash
    assert (await read(fleet, verify_audit_part, after=end, head=held)).intact
    tamper(fleet, "DELETE FROM audit_log WHERE position >= 6")
    # The next record may have taken the number of the last meanwhile, but not its hash.
    cut = await read(fleet, verify_audit_part, after=end, head=held)
    assert (cut.intact, cut.more) == (False, False)
    assert f"record {end}, which was there" in cut.why
