"""Reputation events: there with what they tell of, once, and for good."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import DatabaseError

from rookery.core.errors import PermissionDenied
from rookery.core.record import Record
from rookery.db.tx import Tx
from rookery.ledger.store import InsufficientCredits, Ledger
from rookery.repute import heard
from rookery.repute.events import ReputationEvent, add_events, agent_called
from rookery.repute.tables import reputation_events
from tests.platform_fixtures import Fleet

ONE = ReputationEvent(tenant="default", agent_id="agt_ada", type="task_completed", impact=5, key="task:1")
RECORD = Record(
    at_ms=1, tenant="default", kind="agent", subject="agt_ada", agent="agt_ada", profile=None, project=None, issue=None,
    session="ses-1", source="stdio", request="req", trace=None, tool="save_memory", effect="write", outcome="done",
    code=None, layer=None, input_digest="", duration_us=1,
)  # fmt: skip


@pytest.fixture
def fleet(database_url: str, make_fleet: Callable[..., Fleet]) -> Fleet:
    return make_fleet(database_url, extra={})


def write(fleet: Fleet, work: Callable[[Tx], Any]) -> Any:
    return fleet.platform.database.direct(work, write=True)


def types(fleet: Fleet) -> list[str]:
    wanted = sa.select(reputation_events.c.type).order_by(reputation_events.c.seq)
    return [row.type for row in fleet.platform.database.direct(lambda tx: tx.all(wanted))]


def test_events_can_only_be_added(fleet: Fleet) -> None:
    write(fleet, lambda tx: add_events(tx, [ONE]))
    for change in (sa.update(reputation_events).values(impact=99), sa.delete(reputation_events)):
        with pytest.raises(DatabaseError, match="append-only"):
            write(fleet, lambda tx, change=change: tx.run(change))


def test_what_is_undone_leaves_no_event(fleet: Fleet) -> None:
    def spend(tx: Tx) -> None:
        ledger = Ledger(tx, "default")
        ledger.grant("agent:agt_ada", 3, "gift")
        ledger.deduct("agent:agt_ada", "deduction", 4, "too much")

    with pytest.raises(InsufficientCredits):
        write(fleet, spend)
    assert types(fleet) == []


def test_the_same_key_is_the_same_event_and_without_one_each_counts(fleet: Fleet) -> None:
    other = ReputationEvent(tenant="other", agent_id="agt_ada", type="task_completed", impact=5, key="task:1")
    free = ReputationEvent(tenant="default", agent_id="agt_ada", type="credit_spent", impact=-1)
    for _ in range(2):
        write(fleet, lambda tx: add_events(tx, [ONE, free, ONE, other]))
    assert sorted(types(fleet)) == ["credit_spent"] * 2 + ["task_completed"] * 2
    write(fleet, lambda tx: add_events(tx, []))


def test_only_wallets_of_agents_tell(fleet: Fleet) -> None:
    def move(tx: Tx) -> None:
        ledger = Ledger(tx, "default")
        ledger.grant("somebody", 5, "gift")
        ledger.grant("agent:agt_ada", 5, "gift")
        held = ledger.reserve("agent:agt_ada", 4, "session")
        ledger.settle(held.id, 3)
        ledger.release(ledger.reserve("agent:agt_ada", 1, "session").id)
        ledger.refund("agent:agt_ada", 1, "sorry")

    write(fleet, move)
    assert types(fleet) == ["credit_earned", "credit_spent", "credit_earned"]


def test_an_agent_is_known_by_its_id_or_name_in_its_own_tenant(fleet: Fleet) -> None:
    agent = fleet.actor().agent
    assert write(fleet, lambda tx: agent_called(tx, "default", "default")) == agent
    assert write(fleet, lambda tx: agent_called(tx, "default", agent)) == agent
    for tenant, called in (("other", agent), ("default", "nobody"), ("default", None)):
        assert write(fleet, lambda tx, tenant=tenant, called=called: agent_called(tx, tenant, called)) is None


def test_a_session_counts_once_a_day_also_for_who_has_forgotten_it(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(heard, "REMEMBERED", 2)
    listen = heard.Heard()
    sessions = [RECORD._replace(session=f"ses-{number}") for number in (1, 2, 3, 1)]
    write(fleet, lambda tx: listen(tx, [*sessions, RECORD._replace(at_ms=90_000_000)]))
    write(fleet, lambda tx: heard.Heard()(tx, sessions))
    assert types(fleet) == ["session_completed"] * 4
    nobody = [RECORD._replace(agent=None), RECORD._replace(session=None), RECORD._replace(code="NOT_FOUND")]
    begun = RECORD._replace(session="ses-9", tool="read_issue", effect="read", outcome="allowed")
    write(fleet, lambda tx: listen(tx, [*nobody, begun, begun._replace(effect="external", outcome="intent")]))
    assert len(types(fleet)) == 4


def test_a_session_whose_first_batch_was_rolled_back_is_added_with_the_second(fleet: Fleet) -> None:
    listen = heard.Heard()

    def undone(tx: Tx) -> None:
        listen(tx, [RECORD])
        raise RuntimeError("a deadlock")

    with pytest.raises(RuntimeError):
        write(fleet, undone)
    assert types(fleet) == []
    for _ in range(3):
        write(fleet, lambda tx: listen(tx, [RECORD, RECORD]))
    assert types(fleet) == ["session_completed"]


async def test_refused_calls_at_the_same_moment_are_one_violation(fleet: Fleet) -> None:
    ada = fleet.actor()

    async def overreach(tool: str) -> None:
        with pytest.raises(PermissionDenied):
            await fleet.call(ada, tool)

    await asyncio.gather(*(overreach(tool) for tool in ("create_agent", "grant_credits", "credit_config") * 8))
    assert types(fleet) == ["security_violation"] * 3
