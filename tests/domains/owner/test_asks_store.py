"""Asks of every kind, as the rest of the product keeps them: opened once, taken back, ended when their time is over."""

import asyncio
import uuid
from collections.abc import Callable
from typing import Any, TypeVar

import pytest
import sqlalchemy as sa
from sqlalchemy import event

from rookery.asks.store import MINUTE_MS, Asks, Kind, NewAsk, digest_of
from rookery.asks.tables import KINDS, asks
from rookery.asks.waiting import until_settled
from rookery.core.errors import PermissionDenied
from rookery.core.ids import new_id
from rookery.db.tx import Tx
from rookery.jobs.store import Jobs
from tests.domains.owner.reception import Reception
from tests.jobs.working import running_worker, settled

T = TypeVar("T")


def change(reception: Reception, work: Callable[[Asks], T]) -> T:
    return reception.platform.database.direct(lambda tx: work(Asks(tx, "default")), write=True)


async def expired(reception: Reception) -> None:
    """Let a worker end and forget what is over."""

    def defer(tx: Tx) -> None:
        Jobs(tx, "default").defer("owner.expire_asks", {}, key=new_id("now"))

    async with running_worker(reception.platform):
        reception.platform.database.direct(defer, write=True)
        await settled(reception.platform)


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


@pytest.mark.parametrize("once", [True, False])
def test_an_answer_that_counts_once_stands_until_it_was_heard(reception: Reception, once: bool) -> None:
    new = approval(kind="question", key="k", once=once)
    first, _ = change(reception, lambda store: store.open(new))
    change(reception, lambda store: store.answer(first.id, "yes", "per-1", "cli"))
    unheard, _ = change(reception, lambda store: store.open(new))
    change(reception, lambda store: store.tell(first.id))
    heard, is_new = change(reception, lambda store: store.open(new))
    assert (unheard.id, unheard.status) == (first.id, "answered")
    assert (heard.status, is_new) == (("open", True) if once else ("answered", False))


@pytest.mark.parametrize("kind", KINDS)
def test_an_ask_of_any_kind_is_opened_answered_and_over(reception: Reception, kind: Kind) -> None:
    row, is_new = change(reception, lambda store: store.open(approval(kind=kind, subject="iss-1")))
    assert (is_new, row.kind, row.status, row.subject) == (True, kind, "open", "iss-1")
    (answered,) = change(reception, lambda store: store.answer(row.id, "1", "per-1", "telegram"))
    assert (answered.status, answered.answer) == ("answered", {"text": row.options[0], "option": 1})
    assert (answered.answered_by, answered.answered_via) == ("per-1", "telegram")
    assert change(reception, lambda store: store.withdraw(row.id)) is None


def test_of_one_key_one_ask_is_open_at_a_time(reception: Reception) -> None:
    first, is_new = change(reception, lambda store: store.open(approval(key="k")))
    again, is_new_again = change(reception, lambda store: store.open(approval(key="k", question="other words?")))
    assert (is_new, is_new_again, again.id) == (True, False, first.id)
    change(reception, lambda store: store.answer(first.id, "no", "per-1", "cli"))
    assert change(reception, lambda store: store.open(approval(key="k")))[0].id == first.id, "nobody was told yet"
    reception.pass_hours(71)
    assert change(reception, lambda store: store.open(approval(key="k")))[0].id == first.id, "nobody was told yet"
    change(reception, lambda store: store.tell(first.id))
    assert change(reception, lambda store: store.open(approval(key="k")))[1], "it is asked anew"


async def test_what_was_withdrawn_or_has_expired_is_asked_anew(reception: Reception) -> None:
    first, _ = change(reception, lambda store: store.open(approval(key="k")))
    taken = change(reception, lambda store: store.withdraw(first.id))
    assert taken is not None
    second, is_new = change(reception, lambda store: store.open(approval(key="k")))
    assert is_new
    reception.pass_hours(73)
    third, is_new = change(reception, lambda store: store.open(approval(key="k")))
    assert is_new
    await expired(reception)
    assert [each.subject for each in reception.told("AskExpired")] == [second.id], "nobody overlooks its end"
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
    how = {"similar": True, "seen_ms": other.created_ms}
    assert len(change(reception, lambda store: store.answer(row.id, "yes", "per-1", "cli", **how))) == 2


def test_a_digest_is_the_same_for_the_same_values_only() -> None:
    assert digest_of("a", ["b"], None) == digest_of("a", ["b"], None)
    assert len({digest_of("a", "b"), digest_of("ab", ""), digest_of(["a", "b"]), digest_of("a", None)}) == 4


async def test_a_worker_ends_what_nobody_answered_and_tells_whoever_waits(reception: Reception) -> None:
    old, _ = change(reception, lambda store: store.open(approval(question="old?")))
    fresh, _ = change(reception, lambda store: store.open(approval(question="fresh?", open_for_ms=200 * 3_600_000)))
    reception.pass_hours(100)

    waiting = asyncio.create_task(until_settled(reception.platform.database, "default", old.id, 20))
    await expired(reception)
    assert (await waiting).status == "expired"
    assert reception.row(fresh.id).status == "open"
    assert [each.subject for each in reception.told("AskExpired")] == [old.id]


def test_asks_that_end_in_the_same_minute_are_ended_by_one_job(reception: Reception) -> None:
    for number in range(30):
        change(reception, lambda store, number=number: store.open(approval(question=f"{number}?")))
    ends = {row.expires_ms // MINUTE_MS for row in reception.rows()}
    assert len(reception.jobs("owner.expire_asks")) == len(ends) <= 2


def test_what_tells_and_ends_asks_is_tried_more_often_than_other_jobs(reception: Reception) -> None:
    change(reception, lambda store: store.open(approval()))
    for kind in ("owner.expire_asks", "owner.deliver_ask"):
        (found,) = reception.rows(sa.text(f"SELECT attempts FROM jobs WHERE kind = '{kind}'"))
        assert found.attempts == 5


async def test_what_is_long_over_is_forgotten(reception: Reception) -> None:
    made = [
        change(reception, lambda store, n=n: store.open(approval(question=f"{n}?", key=f"{n}")))[0] for n in range(5)
    ]
    change(reception, lambda store: store.answer(made[0].id, "yes", "owner", "cli"))
    change(reception, lambda store: store.withdraw(made[1].id))
    reception.pass_hours(24 * 89)
    await expired(reception)
    assert len(reception.rows()) == 5
    kept = change(reception, lambda store: store.open(approval(question="new?")))[0]
    reception.pass_hours(24 * 2, but=("expires_ms",))
    assert change(reception, lambda store: store.forget(90, room=1)) == 1
    await expired(reception)
    # Those that expired did so three days after they were asked.
    assert {row.id for row in reception.rows()} == {kept.id, *(row.id for row in made[2:])}
    reception.pass_hours(24 * 5)
    await expired(reception)
    assert [row.id for row in reception.rows()] == [kept.id]


def test_asks_are_found_without_looking_at_those_of_years(reception: Reception) -> None:
    row, _ = change(reception, lambda store: store.open(approval()))
    over_for_long(reception, row, 2000)
    for work, index in (
        (lambda store: store.of(row.id[:8]), "asks_short"),
        (lambda store: store.open_of("agt-1"), "asks_open"),
        (lambda store: store.similar(row), "asks_open"),
        (lambda store: store.answer(row.id, "later", "owner", "cli", similar=True, seen_ms=10**13), "asks_open"),
    ):
        assert index in plans(reception, work)


def over_for_long(reception: Reception, row: Any, count: int) -> None:
    """Many asks of the same agent that were answered at some time."""
    ids = [uuid.uuid4().hex for _ in range(count)]
    over = {**row._mapping, "status": "answered", "answer": {"text": "yes", "option": None}}
    rows = [{**over, "id": each, "short_id": each[:8], "created_ms": number} for number, each in enumerate(ids)]

    def insert(tx: Tx) -> None:
        tx.run(sa.insert(asks), rows)
        tx.run(sa.text("ANALYZE asks"))

    reception.platform.database.direct(insert, write=True)


def plans(reception: Reception, work: Callable[[Asks], object]) -> str:
    """How the database goes about the statements of `work`."""
    found: list[str] = []
    busy = False

    def explain(connection: Any, cursor: Any, statement: str, values: Any, context: Any, many: bool) -> None:
        nonlocal busy
        if not busy and statement.startswith("SELECT") and "FROM asks" in statement:
            busy = True
            how = "EXPLAIN QUERY PLAN " if connection.dialect.name == "sqlite" else "EXPLAIN "
            found.extend(str(line) for line in connection.exec_driver_sql(how + statement, values).all())
            busy = False

    def explained(tx: Tx) -> None:
        event.listen(tx.connection, "before_cursor_execute", explain)
        try:
            work(Asks(tx, "default"))
        finally:
            event.remove(tx.connection, "before_cursor_execute", explain)

    reception.platform.database.direct(explained, write=True)
    return "\n".join(found)


async def test_an_ask_that_is_withdrawn_lets_its_waiter_go(reception: Reception) -> None:
    call, row = await reception.ask()
    change(reception, lambda store: store.withdraw(row.id))
    told = await call
    assert (told.status, "withdrawn" in told.note) == ("withdrawn", True)
