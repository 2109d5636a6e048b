import asyncio
import time

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError

from rookery.core.errors import PermissionDenied
from rookery.db.tx import Tx
from tests.platform_fixtures import Fleet

LIMIT_S = 10


async def settled(fleet: Fleet, calls: int) -> None:
    """Make calls, and wait until all records are chained, which PostgreSQL does a moment later."""
    for _ in range(calls):
        await fleet.call(fleet.actor(), "ping")
    limit = time.monotonic() + LIMIT_S
    while (await fleet.call(fleet.owner, "verify_audit")).records < calls:
        assert time.monotonic() < limit
        await asyncio.sleep(0.02)


def tamper(fleet: Fleet, statement: str) -> None:
    """Change the log as only someone with the database in their hands could."""

    def change(tx: Tx) -> None:
        if tx.dialect == "postgresql":
            tx.run(sa.text("ALTER TABLE audit_log DISABLE TRIGGER ALL"))
        else:
            for name in ("audit_log_no_update", "audit_log_no_delete"):
                tx.run(sa.text(f"DROP TRIGGER {name}"))
        assert tx.run(sa.text(statement)) > 0

    fleet.platform.database.direct(change, write=True)


async def test_an_agent_cannot_verify_the_log(fleet: Fleet) -> None:
    with pytest.raises(PermissionDenied) as caught:
        await fleet.call(fleet.actor(), "verify_audit")
    assert caught.value.layer == "principal"


async def test_an_untouched_log_is_intact(fleet: Fleet) -> None:
    await settled(fleet, 5)
    state = await fleet.call(fleet.owner, "verify_audit")
    assert state.intact
    assert (state.broken_at, state.why) == (None, None)
    assert state.records >= 5
    assert len(state.head) == 64


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE audit_log SET outcome = 'refused' WHERE position = 2",
        "UPDATE audit_log SET tool = 'pong' WHERE position = 3",
        "DELETE FROM audit_log WHERE position = 2",
    ],
)
async def test_a_changed_or_removed_record_breaks_the_chain_where_it_was(fleet: Fleet, change: str) -> None:
    await settled(fleet, 5)
    tamper(fleet, change)
    state = await fleet.call(fleet.owner, "verify_audit")
    assert not state.intact
    assert state.broken_at in (2, 3)
    assert state.why


async def test_the_database_itself_refuses_to_change_the_log(fleet: Fleet) -> None:
    await settled(fleet, 2)
    for statement in ("UPDATE audit_log SET tool = 'pong'", "DELETE FROM audit_log"):
        with pytest.raises(DBAPIError, match="append-only"):
            fleet.platform.database.direct(lambda tx, text=statement: tx.run(sa.text(text)), write=True)
    assert (await fleet.call(fleet.owner, "verify_audit")).intact
