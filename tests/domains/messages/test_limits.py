"""The rate of a sender and the breaker of a receiver: by themselves, and as agents meet them."""

import asyncio
from collections.abc import Callable
from typing import cast

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rookery.core.errors import Conflict, RateLimited, ServiceUnavailable
from rookery.db.database import Database
from rookery.db.tx import Tx
from rookery.domains.messages.forgetting import KEPT_REFUSED
from rookery.domains.messages.limits import Limits, circuit_open, note_failure, note_success
from rookery.domains.messages.tables import breakers, messages
from rookery.lifecycle.sessions import Runtime
from tests.domains.messages.post_office import PostOffice
from tests.platform_fixtures import Fleet

LIMITS = Limits(per_minute=10, failures=3, reset_ms=100, successes=2)
STEPS = st.lists(st.sampled_from(["fail", "succeed", "wait", "ask"]), max_size=40)


async def test_the_eleventh_message_of_a_minute_is_refused_and_kept_as_failed(office: PostOffice) -> None:
    office.use(None)
    for number in range(10):
        await office.post("bob", f"message {number}")
    with pytest.raises(RateLimited, match="RATE_LIMITED: at most 10 messages a minute") as caught:
        await office.post("carol", "one too many")
    assert "try again in" in (caught.value.hint or "")
    refused = [row for row in office.rows if row.accepted_ms is None]
    assert [(row.content, row.status, row.error_code) for row in refused] == [
        ("one too many", "failed", "RATE_LIMITED")
    ]
    assert await office.inbox("carol") == []
    assert (await office.post("carol", "hello", sender=office.agent("bob"))).status == "delivered"
    # The window slides: what is older than a minute counts no more.
    office.pass_time(60_001)
    assert (await office.post("carol", "one too many")).status == "delivered"


async def test_two_servers_let_no_more_pass_than_there_is_room_for(
    office: PostOffice, database_url: str, make_fleet: Callable[..., Fleet]
) -> None:
    other = PostOffice(make_fleet(database_url, extra={}))
    for each in (office, other):
        each.use(None)
    both = (office, other) * 12
    given = await asyncio.gather(
        *(each.post("bob", f"message {number}") for number, each in enumerate(both)), return_exceptions=True
    )
    assert sum(isinstance(each, RateLimited) for each in given) == 14
    assert sum(row.status == "delivered" for row in office.rows) == 10


async def test_only_the_newest_refused_messages_are_kept(office: PostOffice) -> None:
    office.use(None)
    for number in range(10):
        await office.post("bob", f"message {number}")
    for number in range(KEPT_REFUSED + 3):
        with pytest.raises(RateLimited):
            await office.post("bob", f"refused {number}")
    kept = {row.content for row in office.rows if row.accepted_ms is None}
    assert len(kept) == KEPT_REFUSED
    assert "refused 2" not in kept
    assert f"refused {KEPT_REFUSED + 2}" in kept


async def test_a_receiver_that_fails_five_times_is_left_alone_and_tried_again(
    office: PostOffice, database_url: str, make_fleet: Callable[..., Fleet]
) -> None:
    for number in range(5):
        with pytest.raises(ServiceUnavailable, match="DELIVERY_FAILED"):
            await office.send("bob", f"!fail {number}")
    other = PostOffice(make_fleet(database_url, extra={}))
    for each in (office, other):
        with pytest.raises(ServiceUnavailable, match=r"CIRCUIT_OPEN: bob .* no session was created"):
            await each.send("bob", "!say hello", sender=office.agent("carol"))
    assert office.rows[-1].error_code == "CIRCUIT_OPEN"
    assert len(office.runtime.asked) == 5
    assert (await office.send("carol", "!say hello")).reply == "hello"
    office.pass_time(30_000)
    with pytest.raises(ServiceUnavailable, match="DELIVERY_FAILED"):
        await office.send("bob", "!fail the trial")
    with pytest.raises(ServiceUnavailable, match="CIRCUIT_OPEN"):
        await office.send("bob", "!say hello")
    office.pass_time(30_000)
    for word in ("one", "two"):
        assert (await other.send("bob", f"!say {word}")).reply == word
    (breaker,) = office.select(sa.select(breakers).where(breakers.c.target == office.id_of("bob")))
    assert (breaker.failures, breaker.successes, breaker.opened_ms) == (0, 0, None)


async def test_what_no_session_answers_passes_the_breaker_and_is_no_trial(office: PostOffice) -> None:
    for number in range(5):
        with pytest.raises(ServiceUnavailable, match="DELIVERY_FAILED"):
            await office.send("bob", f"!fail {number}")
    with pytest.raises(Conflict, match="WORK_TASK_ERROR"):
        await office.send("bob", "[WORK] while it is open")
    office.use(None)
    assert (await office.post("bob", "tea?")).status == "delivered"
    office.use(cast(Runtime, office.runtime))
    office.pass_time(60_001)
    with pytest.raises(Conflict, match="WORK_TASK_ERROR"):
        await office.send("bob", "[WORK] when it may be tried again")
    assert (await office.send("bob", "!say the trial")).reply == "the trial"


async def test_of_two_servers_that_try_again_at_once_one_does(
    office: PostOffice, database_url: str, make_fleet: Callable[..., Fleet]
) -> None:
    other = make_fleet(database_url, extra={}).platform.database

    def admitted(tx: Tx) -> bool:
        return circuit_open(tx, "default", "bob", "bob", 1_000, LIMITS) is None

    for _ in range(3):
        office.platform.database.direct(lambda tx: note_failure(tx, "default", "bob", 500, LIMITS), write=True)
    both = (office.platform.database, other) * 4
    assert sum(await asyncio.gather(*(each.change(admitted) for each in both))) == 1


class Breaker:
    """What a breaker is, in plain Python."""

    def __init__(self) -> None:
        self.failures = self.successes = 0
        self.opened: int | None = None

    def ask(self, now: int) -> bool:
        if self.opened is None:
            return True
        if now - self.opened < LIMITS.reset_ms:
            return False
        self.opened = now
        return True

    def fail(self, now: int) -> None:
        self.failures, self.successes = self.failures + 1, 0
        if self.opened is not None or self.failures >= LIMITS.failures:
            self.opened = now

    def succeed(self) -> None:
        self.successes += self.opened is not None
        if self.opened is None or self.successes >= LIMITS.successes:
            self.failures, self.successes, self.opened = 0, 0, None
        else:
            self.opened = 0


@pytest.fixture
def books(database_url: str, make_fleet: Callable[..., Fleet]) -> Database:
    return make_fleet(database_url, extra={}).platform.database


@settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(steps=STEPS)
def test_the_breaker_agrees_with_its_model(books: Database, steps: list[str]) -> None:
    model = Breaker()

    def work(tx: Tx) -> None:
        tx.run(sa.delete(breakers))
        now = 10_000
        for step in steps:
            if step == "wait":
                now += LIMITS.reset_ms // 2
            elif step == "fail":
                note_failure(tx, "default", "bob", now, LIMITS)
                model.fail(now)
            elif step == "succeed":
                note_success(tx, "default", "bob", LIMITS)
                model.succeed()
            else:
                assert (circuit_open(tx, "default", "bob", "bob", now, LIMITS) is None) == model.ask(now)

    books.direct(work, write=True)


async def test_the_limits_are_those_of_the_settings(database_url: str, make_fleet: Callable[..., Fleet]) -> None:
    office = PostOffice(make_fleet(database_url, extra={}, agent_rate_limit_per_min=2, agent_cb_failure_threshold=1))
    await office.open()
    with pytest.raises(ServiceUnavailable, match="DELIVERY_FAILED"):
        await office.send("bob", "!fail")
    with pytest.raises(ServiceUnavailable, match="CIRCUIT_OPEN"):
        await office.send("bob", "!say hello")
    await office.send("carol", "!say hello")
    with pytest.raises(RateLimited, match="at most 2 messages"):
        await office.send("carol", "!say again")
    assert len(office.select(sa.select(messages.c.id))) == 4


async def test_a_session_sends_no_more_to_no_more_agents_and_no_faster_than_it_may(
    database_url: str, make_fleet: Callable[..., Fleet]
) -> None:
    limits = {"session_max_agent_messages": 3, "session_max_unique_targets": 1, "session_message_interval_ms": 3000}
    office = PostOffice(make_fleet(database_url, extra={}, **limits))
    await office.open()
    office.use(None)
    sender = office.agent(session="ses-1")
    await office.post("bob", "one", sender=sender)
    with pytest.raises(RateLimited, match="waits 3000 ms") as caught:
        await office.post("bob", "two", sender=sender)
    assert caught.value.hint == "try again in 3 s"
    office.pass_time(3000)
    with pytest.raises(RateLimited, match="write to 1 agents"):
        await office.post("carol", "two", sender=sender)
    for text in ("two", "three"):
        await office.post("bob", text, sender=sender)
        office.pass_time(3000)
    with pytest.raises(RateLimited, match="send 3 messages"):
        await office.post("bob", "four", sender=sender)
    for other in (office.agent(session="ses-2"), office.agent(), office.agent(session="ses-1", shared=True)):
        assert (await office.post("carol", f"from {other.session}", sender=other)).status == "delivered"
