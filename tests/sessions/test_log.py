"""What happens in a session is seen once, in order and without a gap, however often a reader is cut off."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rookery.core.errors import AuditUnavailable, DatabaseError, NotFound, ServiceUnavailable
from rookery.db.database import Database
from rookery.db.postgres import PostgresDatabase
from rookery.lifecycle.run_events import MAX_PAYLOAD
from rookery.lifecycle.run_tables import run_events
from rookery.sessions import log as session_log
from rookery.sessions.events import SessionEvent
from rookery.sessions.log import SessionLog
from rookery.sessions.writing import Kept
from tests.platform_fixtures import Fleet
from tests.sessions.kept import line, opened, rows, run_of, text

pytestmark = pytest.mark.anyio
LIMIT_S = 20.0


async def read(log: SessionLog, session_id: str, upto: int, after: int = 0, tenant: str = "default") -> list[Kept]:
    """The events after a number, up to another."""
    seen: list[Kept] = []
    async with asyncio.timeout(LIMIT_S):
        following = log.follow(tenant, session_id, after)
        async for some in following:
            seen += some
            if seen[-1].number >= upto:
                break
        await following.aclose()
    return seen


def said(events: Sequence[Kept]) -> str:
    return "".join(event.data["text"] for event in events)


async def test_events_are_numbered_without_gaps_over_several_runs(fleet: Fleet) -> None:
    log, session = SessionLog(fleet.platform.database), opened(fleet)
    first, second = run_of(fleet), run_of(fleet)
    log.put("default", session.id, first, line("a"), line("b"))
    log.put("default", session.id, second, line("c"))
    await log.flush(session.id)
    log.put("default", session.id, second, line("d"))
    kept = await read(log, session.id, 4)
    assert [(event.number, event.data["text"], event.run_id) for event in kept] == [
        (1, "a", first),
        (2, "b", first),
        (3, "c", second),
        (4, "d", second),
    ]
    stored = fleet.platform.database.direct(lambda tx: tx.all(sa.select(run_events).order_by(run_events.c.seq)))
    assert [(row.run_id, row.number) for row in stored] == [(first, 1), (first, 2), (second, 1), (second, 2)]
    await log.close()


async def test_pieces_of_one_text_are_kept_together_and_others_apart(fleet: Fleet) -> None:
    log, session, run = SessionLog(fleet.platform.database), opened(fleet), run_of(fleet)
    call = [SessionEvent("tool_call_delta", {"call_id": name, "text": "x"}) for name in ("1", "1", "2")]
    log.put("default", session.id, run, text("Hel"), text("lo"), *call, text("!"), text("x" * 20_000), text("y"))
    await log.flush(session.id)
    kept = await read(log, session.id, 6)
    assert [len(event.data["text"]) for event in kept] == [5, 2, 1, 1, 20_000, 1]
    await log.close()


async def test_what_is_too_long_to_keep_still_tells_where_it_belongs(fleet: Fleet) -> None:
    log, session, run = SessionLog(fleet.platform.database), opened(fleet), run_of(fleet)
    data = {"call_id": "c1", "tool": "Read", "text": "x" * (MAX_PAYLOAD + 1), "is_error": False}
    log.put("default", session.id, run, SessionEvent("tool_result", data))
    (kept,) = await read(log, session.id, 1)
    assert (kept.name, kept.data["call_id"], kept.data["is_error"]) == ("tool_result", "c1", False)
    assert kept.data["bytes"] > MAX_PAYLOAD
    await log.close()


async def test_nobody_follows_the_session_of_another_tenant(fleet: Fleet) -> None:
    log, session, run = SessionLog(fleet.platform.database), opened(fleet), run_of(fleet)
    log.put("default", session.id, run, line("secret"))
    await log.flush(session.id)
    following = log.follow("other", session.id)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.3):
            await anext(following)
    await log.close()


async def test_a_reader_in_another_process_sees_everything_too(fleet: Fleet, make_fleet: Callable[..., Fleet]) -> None:
    session, run = opened(fleet), run_of(fleet)
    writing = SessionLog(fleet.platform.database)
    elsewhere = SessionLog(make_fleet(fleet.platform.settings.database_url).platform.database)
    reading = asyncio.create_task(read(elsewhere, session.id, 30))
    for number in range(30):
        writing.put("default", session.id, run, line(f"{number},"))
        await writing.flush(session.id)
    assert said(await reading) == "".join(f"{number}," for number in range(30))
    await writing.close()


class Trouble:
    """A database that refuses to write as long as it is told to. `tries` counts what it was asked for."""

    def __init__(self, database: Database, monkeypatch: pytest.MonkeyPatch, after: bool = False) -> None:
        self.error: Exception | None = None
        self.tries = 0
        self._after = after
        self._change = database.change
        monkeypatch.setattr(database, "change", self._refuse)
        monkeypatch.setattr(session_log, "AGAIN_S", 0.01)

    async def _refuse(self, work: Callable[[Any], Any]) -> Any:
        self.tries += 1
        for _ in range(5):
            await asyncio.sleep(0)
        done = await self._change(work) if self._after or self.error is None else None
        if self.error is not None:
            raise self.error
        return done


FULL = DatabaseError("database or disk is full")


async def test_events_wait_while_the_database_takes_none(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    session, run = opened(fleet), run_of(fleet)
    log, trouble = SessionLog(fleet.platform.database), Trouble(fleet.platform.database, monkeypatch)
    trouble.error = FULL
    log.put("default", session.id, run, line("a"))
    for said_too in ("b", "c"):
        with pytest.raises(DatabaseError, match="disk is full"):
            await log.flush(session.id)
        log.put("default", session.id, run, line(said_too))
    with pytest.raises(DatabaseError, match="disk is full"):
        await log.flush(session.id)
    assert log.trouble == "database or disk is full"
    for limit, much in (("MOST_WAITING", 2), ("MOST_CHARACTERS", 2)):
        with monkeypatch.context() as patch:
            patch.setattr(session_log, limit, much)
            with pytest.raises(ServiceUnavailable, match="disk is full"):
                log.put("default", session.id, run, line("d"))
    trouble.error = None
    assert said(await read(log, session.id, 3)) == "abc"
    assert log.trouble is None
    await log.close()


async def test_a_database_that_takes_nothing_is_not_tried_for_each_session(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    sessions, run = [opened(fleet) for _ in range(10)], run_of(fleet)
    log, trouble = SessionLog(fleet.platform.database), Trouble(fleet.platform.database, monkeypatch)
    trouble.error = FULL
    for session in sessions:
        log.put("default", session.id, run, line("x"))
    with pytest.raises(DatabaseError):
        await log.flush(sessions[-1].id)
    assert trouble.tries == 1
    trouble.error = None
    for session in sessions:
        assert said(await read(log, session.id, 1)) == "x"
    await log.close()


async def test_what_was_written_although_nobody_was_told_is_not_written_twice(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    session, run = opened(fleet), run_of(fleet)
    log = SessionLog(fleet.platform.database)
    for known in (0, 3):
        with monkeypatch.context() as patch:
            trouble = Trouble(fleet.platform.database, patch, after=True)
            trouble.error = AuditUnavailable("the answer was lost")
            log.put("default", session.id, run, line("a"), text("b"), text("c"))
            with pytest.raises(AuditUnavailable):
                await log.flush(session.id)
            log.put("default", session.id, run, text("d"))
            trouble.error = None
            assert said(await read(log, session.id, known + 3, after=known)) == "abcd"
    assert rows(fleet, lambda sessions: sessions.of(session.id)).event_count == 6
    await log.close()


async def test_a_flush_never_says_kept_of_what_is_not(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    session, run = opened(fleet), run_of(fleet)
    log, trouble = SessionLog(fleet.platform.database), Trouble(fleet.platform.database, monkeypatch)
    trouble.error = FULL
    log.put("default", session.id, run, line("a"))
    first = asyncio.create_task(log.flush(session.id))
    while not log._busy:
        await asyncio.sleep(0)
    log.put("default", session.id, run, line("b"))
    second = asyncio.create_task(log.flush(session.id))
    for flushing in (first, second):
        with pytest.raises(DatabaseError):
            await flushing
    trouble.error = None
    assert said(await read(log, session.id, 2)) == "ab"
    await log.close()


async def test_what_is_being_written_when_the_log_is_closed_is_kept(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    session, run = opened(fleet), run_of(fleet)
    log, change, under_way = SessionLog(fleet.platform.database), fleet.platform.database.change, asyncio.Event()

    async def slow(work: Callable[[Any], Any]) -> Any:
        under_way.set()
        await asyncio.sleep(0.05)
        return await change(work)

    monkeypatch.setattr(fleet.platform.database, "change", slow)
    log.put("default", session.id, run, line("last words"))
    await under_way.wait()
    await log.close()
    with pytest.raises(ServiceUnavailable):
        log.put("default", session.id, run, line("too late"))
    assert said(await read(SessionLog(fleet.platform.database), session.id, 1)) == "last words"


async def test_what_cannot_be_kept_takes_no_other_event_along(fleet: Fleet) -> None:
    log, session, run = SessionLog(fleet.platform.database), opened(fleet), run_of(fleet)
    bad = SessionEvent("tool_result", {"call_id": "c", "image": b"\x89PNG"})
    log.put("default", session.id, run, line("a"), bad, SessionEvent("done", {"reason": "completed"}))
    kept = await read(log, session.id, 3)
    assert [event.name for event in kept] == ["system", "system", "done"]
    assert "tool_result cannot be recorded" in kept[1].data["text"]
    await log.close()


async def test_who_has_seen_all_asks_the_database_for_nothing(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    log, session, run = SessionLog(fleet.platform.database), opened(fleet), run_of(fleet)
    looks, look = list[int](), session_log.kept_after

    def counted(tx: Any, tenant: str, session_id: str, after: int) -> list[Kept]:
        looks.append(after)
        return look(tx, tenant, session_id, after)

    monkeypatch.setattr(session_log, "kept_after", counted)
    reading = asyncio.create_task(read(log, session.id, 11))
    log.put("default", session.id, run, line("0"))
    await log.flush(session.id)
    for number in range(1, 11):
        log.put("default", session.id, run, line(f"{number}"))
        await log.flush(session.id)
    assert len(await reading) == 11
    assert len(looks) <= 3
    await log.close()


async def test_much_is_read_in_parts(fleet: Fleet) -> None:
    log, session, run = SessionLog(fleet.platform.database), opened(fleet), run_of(fleet)
    for _ in range(4):
        log.put("default", session.id, run, *(line("x" * 200_000) for _ in range(5)))
        await log.flush(session.id)
    following, sizes = SessionLog(fleet.platform.database).follow("default", session.id), list[int]()
    while sum(sizes) < 20:
        some = await anext(following)
        sizes.append(len(some))
        assert sum(len(event.data["text"]) for event in some) <= 1_300_000
    assert (sum(sizes), len(sizes) >= 4) == (20, True)
    await following.aclose()
    await log.close()


@pytest.mark.parametrize(
    "how", ["RAISE EXCEPTION 'full' USING ERRCODE = '53100'", "PERFORM pg_terminate_backend(pg_backend_pid())"]
)
async def test_nothing_is_lost_on_a_full_disk_or_a_cut_connection(
    fleet: Fleet, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = fleet.platform.database
    if not isinstance(database, PostgresDatabase):
        pytest.skip("the triggers are PostgreSQL's")
    monkeypatch.setattr(session_log, "AGAIN_S", 0.05)
    log, session, run = SessionLog(database), opened(fleet), run_of(fleet)

    def spoil(tx: Any) -> None:
        body = f"CREATE FUNCTION spoil() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {how}; RETURN NEW; END $$"
        tx.run(sa.text(body))
        tx.run(sa.text("CREATE TRIGGER spoil BEFORE INSERT ON run_events FOR EACH ROW EXECUTE FUNCTION spoil()"))

    database.direct(spoil, write=True)
    log.put("default", session.id, run, line("a"))
    with pytest.raises(DatabaseError):
        await log.flush(session.id)
    assert log.trouble is not None
    log.put("default", session.id, run, line("b"))
    database.direct(lambda tx: tx.run(sa.text("DROP TRIGGER spoil ON run_events")), write=True)
    assert said(await read(log, session.id, 2)) == "ab"
    await log.close()


async def test_events_that_belong_nowhere_hold_up_nobody(fleet: Fleet) -> None:
    log, session, run = SessionLog(fleet.platform.database), opened(fleet), run_of(fleet)
    log.put("default", "ses-none", run, line("lost"))
    log.put("default", session.id, run, line("kept"))
    with pytest.raises(NotFound):
        await log.flush("ses-none")
    assert said(await read(log, session.id, 1)) == "kept"
    await log.close()


async def test_who_follows_has_no_buffer_that_grows(fleet: Fleet) -> None:
    log, session, run = SessionLog(fleet.platform.database), opened(fleet), run_of(fleet)
    following = log.follow("default", session.id)
    log.put("default", session.id, run, line("0"))
    assert [event.number for event in await anext(following)] == [1]
    for number in range(1, 1200):
        log.put("default", session.id, run, line(f"{number}"))
    await log.flush(session.id)
    numbers: list[int] = []
    while len(numbers) < 1199:
        some = await anext(following)
        assert len(some) <= 500
        numbers += [event.number for event in some]
    assert numbers == list(range(2, 1201))
    await following.aclose()
    await log.close()


async def test_numbers_go_on_where_another_process_left_off(fleet: Fleet) -> None:
    session, run = opened(fleet), run_of(fleet)
    for part in ("one", "two"):
        log = SessionLog(fleet.platform.database)
        log.put("default", session.id, run, line(part))
        await log.flush(session.id)
        await log.close()
    assert rows(fleet, lambda sessions: sessions.of(session.id)).event_count == 2


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(
    writes=st.lists(st.integers(1, 40), min_size=1, max_size=12),
    cuts=st.lists(st.integers(1, 25), min_size=0, max_size=12),
)
async def test_a_reader_that_is_cut_off_anywhere_sees_every_event_once(
    fleet: Fleet, writes: list[int], cuts: list[int]
) -> None:
    log, session, run = SessionLog(fleet.platform.database), opened(fleet), run_of(fleet)
    total = sum(writes)

    async def write() -> None:
        for many in writes:
            log.put("default", session.id, run, *(line("x") for _ in range(many)))
            await asyncio.sleep(0)
            if many % 2:
                await log.flush(session.id)

    writing, seen, left = asyncio.create_task(write()), list[int](), list(cuts)
    async with asyncio.timeout(LIMIT_S):
        while len(seen) < total:
            patience = left.pop(0) if left else total
            following = log.follow("default", session.id, seen[-1] if seen else 0)
            async for some in following:
                # Cut off in the middle of what was sent: the rest was never seen.
                taken = [event.number for event in some][:patience]
                seen += taken
                patience -= len(taken)
                if not patience or len(seen) >= total:
                    break
            await following.aclose()
    await writing
    assert seen == list(range(1, total + 1))
    await log.close()
