"""Asks of every kind, as the rest of the product keeps them: opened once, taken back, ended when their time is over."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import pytest

from rookery.asks import waiting as asks_waiting
from rookery.asks.store import MINUTE_MS, Asks, Kind, NewAsk, digest_of
from rookery.asks.tables import KINDS
from rookery.asks.waiting import until_settled
from rookery.core.errors import DatabaseError, PermissionDenied
from rookery.db.database import Database
from rookery.db.tx import Tx
from rookery.db.wakes import Listener
from rookery.jobs.store import Jobs
from tests.domains.owner.reception import Reception
from tests.jobs.working import running_worker

T = TypeVar("T")


def change(reception: Reception, work: Callable[[Asks], T]) -> T:
    return reception.platform.database.direct(lambda tx: work(Asks(tx, "default")), write=True)


def approval(**given: Any) -> NewAsk:
    about: dict[str, Any] = {
        "kind": "approval",
        "agent_id": "agt-1",
        "question": "delete it?",
        "options": ["yes", "no"],
    }
    return NewAsk(**{**about, **given})


@pytest.mark.parametrize("kind", ["approval", "schedule", "verdict"])
def test_what_gives_rights_is_not_decided_at_the_agents_own_client(reception: Reception, kind: Kind) -> None:
    row, _ = change(reception, lambda store: store.open(approval(kind=kind)))
    with pytest.raises(PermissionDenied):
        change(reception, lambda store: store.answer(row.id, "yes", "the person at it", "elicitation"))
    assert reception.row(row.id).status == "open"


@pytest.mark.parametrize("kind", KINDS)
def test_an_ask_of_any_kind_is_opened_answered_and_over(reception: Reception, kind: Kind) -> None:
    row, is_new = change(reception, lambda store: store.open(approval(kind=kind, subject="iss-1")))
    assert (is_new, row.kind, row.status, row.subject) == (True, kind, "open", "iss-1")
    (answered,) = change(reception, lambda store: store.answer(row.id, "1", "per-1", "telegram"))
    assert (answered.status, answered.answer) == ("answered", {"text": "yes", "option": 1})
    assert (answered.answered_by, answered.answered_via) == ("per-1", "telegram")
    assert change(reception, lambda store: store.withdraw(row.id)) is None


def test_of_one_key_one_ask_is_open_at_a_time(reception: Reception) -> None:
    first, is_new = change(reception, lambda store: store.open(approval(key="k")))
    again, is_new_again = change(reception, lambda store: store.open(approval(key="k", question="other words?")))
    assert (is_new, is_new_again, again.id) == (True, False, first.id)
    change(reception, lambda store: store.answer(first.id, "no", "per-1", "cli"))
    assert change(reception, lambda store: store.open(approval(key="k")))[0].id == first.id, "nobody was told yet"
    change(reception, lambda store: store.tell(first.id))
    assert change(reception, lambda store: store.open(approval(key="k")))[1], "it is asked anew"


def test_what_was_withdrawn_or_has_expired_is_asked_anew(reception: Reception) -> None:
    first, _ = change(reception, lambda store: store.open(approval(key="k")))
    taken = change(reception, lambda store: store.withdraw(first.id))
    assert taken is not None
    second, is_new = change(reception, lambda store: store.open(approval(key="k")))
    assert is_new
    reception.pass_hours(73)
    third, is_new = change(reception, lambda store: store.open(approval(key="k")))
    assert is_new
    assert {row.id: row.status for row in reception.rows()} == {
        first.id: "withdrawn",
        second.id: "expired",
        third.id: "open",
    }


def test_two_tenants_can_use_the_same_key(reception: Reception) -> None:
    reception.stranger()
    for tenant in ("default", "other"):
        row, is_new = reception.platform.database.direct(
            lambda tx, tenant=tenant: Asks(tx, tenant).open(approval(key="k")), write=True
        )
        assert (is_new, row.tenant) == (True, tenant)


def test_a_batch_key_of_the_callers_own_decides_what_is_alike(reception: Reception) -> None:
    for question in ("delete a?", "delete b?"):
        change(reception, lambda store, question=question: store.open(approval(question=question, batch_key="rm")))
    change(reception, lambda store: store.open(approval(question="delete c?", batch_key="rm", agent_id="agt-2")))
    change(reception, lambda store: store.open(approval(kind="question", question="delete d?", batch_key="rm")))
    row = reception.rows()[0]
    (other,) = change(reception, lambda store: store.similar(row))
    assert other.question == "delete b?"
    assert len(change(reception, lambda store: store.answer(row.id, "yes", "per-1", "cli", similar=True))) == 2


def test_a_digest_is_the_same_for_the_same_values_only() -> None:
    assert digest_of("a", ["b"], None) == digest_of("a", ["b"], None)
    assert len({digest_of("a", "b"), digest_of("ab", ""), digest_of(["a", "b"]), digest_of("a", None)}) == 4


async def test_a_worker_ends_what_nobody_answered_and_tells_whoever_waits(reception: Reception) -> None:
    old, _ = change(reception, lambda store: store.open(approval(question="old?")))
    fresh, _ = change(reception, lambda store: store.open(approval(question="fresh?", open_for_ms=200 * 3_600_000)))
    reception.pass_hours(100)

    def defer(tx: Tx) -> None:
        Jobs(tx, "default").defer("owner.expire_asks", {}, key="now")

    async with running_worker(reception.platform):
        reception.platform.database.direct(defer, write=True)
        row = await until_settled(reception.platform.database, "default", old.id, 20)
    assert row.status == "expired"
    assert reception.row(fresh.id).status == "open"
    assert [event.subject for event in reception.told("AskExpired")] == [old.id]


def test_asks_that_end_in_the_same_minute_are_ended_by_one_job(reception: Reception) -> None:
    for number in range(30):
        change(reception, lambda store, number=number: store.open(approval(question=f"{number}?")))
    ends = {row.expires_ms // MINUTE_MS for row in reception.rows()}
    assert len(reception.jobs("owner.expire_asks")) == len(ends) <= 2


async def test_an_ask_that_is_withdrawn_lets_its_waiter_go(reception: Reception) -> None:
    call, row = await reception.ask()
    change(reception, lambda store: store.withdraw(row.id))
    told = await call
    assert (told.status, "withdrawn" in told.note) == ("withdrawn", True)


class Faltering:
    """A database that is out of reach for the first few looks."""

    def __init__(self, real: Database, failures: int) -> None:
        self._real = real
        self.failures = failures

    async def read(self, work: Callable[[Any], T], *, timeout_s: float = 60.0) -> T:
        if self.failures:
            self.failures -= 1
            raise DatabaseError("the database is out of reach")
        return await self._real.read(work, timeout_s=timeout_s)

    def on_wake(self, listener: Listener) -> Callable[[], None]:
        return self._real.on_wake(listener)


async def test_who_waits_outlasts_a_database_that_is_away_for_a_moment(
    reception: Reception, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asks_waiting, "LOOK_S", 0.01)
    row, _ = change(reception, lambda store: store.open(approval()))
    change(reception, lambda store: store.answer(row.id, "yes", "owner", "cli"))
    database = cast(Database, Faltering(reception.platform.database, 3))
    found = await until_settled(database, "default", row.id, 5)
    assert found.status == "answered"
    with pytest.raises(DatabaseError):
        await until_settled(cast(Database, Faltering(reception.platform.database, 10_000)), "default", row.id, 0.1)
