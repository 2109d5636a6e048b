"""Runs and their events in the database: legal moves only, numbers without gaps, nothing changed afterwards."""

import asyncio
import contextlib
import itertools
import json
from collections.abc import Iterator
from typing import Any, cast

import pytest
import sqlalchemy as sa
from sqlalchemy import exc

from rookery.core.errors import Conflict, NotFound, ValidationFailed
from rookery.db.database import Database, open_database
from rookery.db.migrate import migrate
from rookery.identity import tables as identity_tables
from rookery.lifecycle import run_events, run_tables
from rookery.lifecycle.run_events import SUBTYPES, RunEvent
from rookery.lifecycle.run_store import EventFilter, NewRun, Runs, Usage
from rookery.lifecycle.states import RUN
from rookery.repute import tables as repute_tables
from tests.lifecycle.run_rows import RunRows, said, texts, used


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    with contextlib.closing(open_database(database_url)) as opened:
        needed = {"identity": identity_tables, "repute": repute_tables, "runs": run_tables}
        migrate(opened, {name: tables.MIGRATIONS for name, tables in needed.items()}, None)
        yield opened


@pytest.fixture
def rows(database: Database) -> RunRows:
    return RunRows(database)


def test_a_run_of_another_tenant_is_not_found_by_anything(rows: RunRows, database: Database) -> None:
    run = rows.start(issue_id="iss-1")
    other = RunRows(database, "other")
    for attempt in (
        lambda runs: runs.of(run),
        lambda runs: runs.move(run, "succeeded"),
        lambda runs: runs.spend(run, Usage(cost_micros=1)),
        lambda runs: runs.append(run, [said("hello")]),
        lambda runs: runs.append(run, [said("hello")], after=0),
        lambda runs: runs.append(run, []),
    ):
        with pytest.raises(NotFound, match=f"there is no run {run}"):
            other.change(attempt)
    assert other.look(lambda runs: runs.recent("iss-1", 10)) == []
    assert other.look(lambda runs: runs.events(EventFilter(run_id=run), limit=10)) == ([], 0)
    kept = rows.look(lambda runs: runs.of(run))
    assert (kept.status, kept.cost_micros, kept.event_count) == ("running", 0, 0)


def test_runs_of_a_closed_project_do_not_exist(rows: RunRows, database: Database) -> None:
    run, open_run = rows.start("prj-1", issue_id="iss-1"), rows.start("prj-2", issue_id="iss-1")
    for each in (run, open_run):
        rows.append(each, said(each))

    def look(work: Any) -> Any:
        return database.direct(lambda tx: work(Runs(tx, "default", closed=frozenset({"prj-1", "prj-9"}))))

    with pytest.raises(NotFound, match=f"there is no run {run}"):
        look(lambda runs: runs.of(run))
    assert [each.id for each in look(lambda runs: runs.recent("iss-1", 10))] == [open_run]
    assert look(lambda runs: runs.page(10, project_id="prj-1")) == []
    found, total = look(lambda runs: runs.events(EventFilter(issue_id="iss-1"), limit=10))
    assert (texts(found), total) == ([open_run], 1)


def test_a_run_waits_starts_and_ends_once(rows: RunRows) -> None:
    new = NewRun(project_id="prj-1", issue_id="iss-1", agent="agt-1", profile="worker", phase="ready", attempt=2)
    run = rows.change(lambda runs: runs.queue(new))
    assert run.id.startswith("run-")
    assert (run.status, run.started_ms, run.ended_ms, run.attempt, run.profile) == ("queued", None, None, 2, "worker")
    started = rows.change(lambda runs: runs.move(run.id, "running", session="ses-1"))
    assert (started.status, started.session, started.ended_ms) == ("running", "ses-1", None)
    ended = rows.change(lambda runs: runs.move(run.id, "failed", error="out of memory"))
    assert (ended.status, ended.error, ended.session) == ("failed", "out of memory", "ses-1")
    assert run.created_ms < started.started_ms < ended.ended_ms == ended.updated_ms


def test_whatever_a_process_said_last_can_be_its_error(rows: RunRows) -> None:
    run = rows.start()
    ended = rows.change(lambda runs: runs.move(run, "failed", error="core \0dumped \ud800 " + "x" * 10_000))
    assert ended.error.startswith("core dumped ? xxx")
    assert len(ended.error) < 5001


def brought_to(rows: RunRows, state: Any) -> str:
    """A run in this state."""
    run = rows.change(lambda runs: runs.queue(NewRun(project_id="prj-1"))).id
    if state not in ("queued", "running") and state not in RUN.legal("queued"):
        rows.change(lambda runs: runs.move(run, "running"))
    if state != "queued":
        rows.change(lambda runs: runs.move(run, state))
    return run


def test_only_the_moves_of_the_table_are_made(rows: RunRows) -> None:
    new: Any
    for old, new in itertools.product(RUN.states, RUN.states):
        run = brought_to(rows, old)
        before = rows.look(lambda runs, run=run: runs.of(run))
        if new in RUN.legal(old, "orchestrator"):
            assert rows.change(lambda runs, run=run, new=new: runs.move(run, new)).status == new
            continue
        with pytest.raises(Conflict, match=f"the run is {old}") as caught:
            rows.change(lambda runs, run=run, new=new: runs.move(run, new))
        assert all(state in (caught.value.hint or "") for state in RUN.legal(old, "orchestrator"))
        assert rows.look(lambda runs, run=run: runs.of(run)) == before


def test_a_person_may_cancel_a_run_and_nothing_else(rows: RunRows) -> None:
    run = rows.start()
    with pytest.raises(Conflict, match="only orchestrator may move"):
        rows.change(lambda runs: runs.move(run, "succeeded", who="human"))
    assert rows.change(lambda runs: runs.move(run, "cancelled", who="human")).status == "cancelled"


def test_a_state_that_there_is_not_is_refused(rows: RunRows) -> None:
    run, unheard_of = rows.start(), cast("Any", "finished")
    with pytest.raises(Conflict, match="the run is running and cannot become finished"):
        rows.change(lambda runs: runs.move(run, unheard_of))


async def test_of_many_who_end_a_run_at_once_one_does(rows: RunRows, database: Database) -> None:
    run = rows.start()
    ends: list[Any] = ["succeeded", "failed", "timed_out", "stalled", "cancelled"] * 2
    moves = [database.change(lambda tx, end=end: rows.runs(tx).move(run, end)) for end in ends]
    found = await asyncio.gather(*moves, return_exceptions=True)
    assert sorted(type(each).__name__ for each in found) == ["Conflict"] * 9 + ["Row"]


async def test_what_many_spend_at_once_adds_up(rows: RunRows, database: Database) -> None:
    run = rows.start()
    usage = Usage(cost_micros=1500, input_tokens=10, output_tokens=3)
    await asyncio.gather(*(database.change(lambda tx: rows.runs(tx).spend(run, usage)) for _ in range(8)))
    spent = rows.look(lambda runs: runs.of(run))
    assert (spent.cost_micros, spent.input_tokens, spent.output_tokens) == (12_000, 80, 24)


def test_the_newest_runs_of_an_issue_come_first(rows: RunRows) -> None:
    made = [rows.start(issue_id="iss-1") for _ in range(5)]
    rows.start(issue_id="iss-2")
    rows.start()
    assert [run.id for run in rows.look(lambda runs: runs.recent("iss-1", 3))] == made[:1:-1]


def test_pages_of_runs_made_in_the_same_millisecond_miss_none(database: Database) -> None:
    def at_once(tx: Any) -> list[str]:
        runs = Runs(tx, "default", now=lambda: 7)
        return [runs.queue(NewRun(project_id="prj-1")).id for _ in range(7)]

    made, found = database.direct(at_once, write=True), list[str]()
    before: tuple[int, str] | None = None
    for _ in range(4):
        page = database.direct(lambda tx, before=before: Runs(tx, "default").page(2, before=before))
        found += [run.id for run in page]
        before = (page[-1].created_ms, page[-1].id)
    assert found == sorted(made, reverse=True)


@pytest.mark.parametrize(
    ("kind", "subtype"),
    [("system", None), ("system", "text"), ("assistant", None), ("assistant", "tool_result"), ("user", "text"),
     ("result", "text"), ("rate_limit_event", "init"), ("thought", None), ("assistant", "TEXT")],
)  # fmt: skip
def test_an_event_of_no_known_kind_is_refused_with_the_whole_batch(rows: RunRows, kind: Any, subtype: Any) -> None:
    run = rows.start()
    with pytest.raises(ValidationFailed) as caught:
        rows.append(run, said("fine"), RunEvent(kind, subtype, {}))
    hint = caught.value.hint or ""
    assert ", ".join(SUBTYPES.get(kind, SUBTYPES)) in hint
    assert rows.numbers(run) == []
    assert rows.look(lambda runs: runs.of(run)).event_count == 0


def test_events_of_every_kind_are_kept_in_order(rows: RunRows) -> None:
    run = rows.start(issue_id="iss-1")
    pairs: list[Any] = [(kind, subtype) for kind, subtypes in SUBTYPES.items() for subtype in subtypes or (None,)]
    assert rows.append(run, *(RunEvent(kind, subtype, {"n": 1}, at_ms=5) for kind, subtype in pairs)) == len(pairs)
    found, total = rows.look(lambda runs: runs.events(EventFilter(run_id=run), limit=100))
    assert [(each.type, each.subtype) for each in found] == pairs
    assert {(each.at_ms, each.project_id, each.issue_id, each.tenant) for each in found} == {
        (5, "prj-1", "iss-1", "default")
    }
    assert [each.number for each in found] == [*range(1, total + 1)]


@pytest.mark.parametrize("payload", [{"n": object()}, {"n": b"x"}, {"n": {1, 2}}, {(1, 2): 3}])
def test_a_payload_that_is_not_json_is_refused(rows: RunRows, payload: dict[str, Any]) -> None:
    run = rows.start()
    with pytest.raises(ValidationFailed, match="not JSON"):
        rows.append(run, said("fine"), RunEvent("result", None, payload))
    assert rows.numbers(run) == []


def test_a_payload_comes_back_as_it_was(rows: RunRows) -> None:
    payloads: list[dict[str, Any]] = [
        {}, {"text": "a\0b 🐦 '; DROP TABLE run_events --"}, {"deep": [{"er": [None, True, 1.5, 2**53]}]},
        {"": "", "%s": ":x", "{": "}"},
    ]  # fmt: skip
    run = rows.start()
    rows.append(run, *(RunEvent("result", None, payload) for payload in payloads))
    found, _ = rows.look(lambda runs: runs.events(EventFilter(run_id=run), limit=100))
    assert [each.payload for each in found] == payloads


def nested(levels: int) -> dict[str, Any]:
    """A payload of so many levels."""
    value: Any = {}
    for level in range(levels - 1):
        value = [value] if level % 2 else {"in": value}
    return {"in": value}


def test_what_would_make_the_record_unreadable_is_stored_so_that_it_can_be_read(rows: RunRows) -> None:
    run, long = rows.start(), said("ä" * (run_events.MAX_PAYLOAD // 2))
    deep, deeper = (RunEvent("result", None, nested(run_events.MAX_DEPTH + more)) for more in (-1, 1))
    odd = RunEvent("result", None, {"half": "a\ud800b", "n": [float("nan"), -float("inf")]})
    for _ in range(2):
        assert rows.append(run, long, deep, deeper, odd, after=0) == 4
    found, _ = rows.look(lambda runs: runs.events(EventFilter(run_id=run), limit=100))
    cut, whole, cut_too, mended = (each.payload for each in found)
    assert cut["cut"].startswith('{"text": "ä')
    assert (len(cut["cut"].encode()), cut["bytes"]) == (run_events.KEPT, len('{"text": ""}') + run_events.MAX_PAYLOAD)
    assert whole == deep.payload
    assert cut_too["cut"] == json.dumps(deeper.payload)
    assert mended == {"half": "a?b", "n": ["NaN", "-Infinity"]}


async def test_eight_who_append_at_once_leave_no_gap_and_no_double(database_url: str, rows: RunRows) -> None:
    run, beside = rows.start(), rows.start()
    with contextlib.ExitStack() as stack:
        databases = [stack.enter_context(contextlib.closing(open_database(database_url))) for _ in range(2)]

        async def write(writer: int) -> None:
            for batch in range(6):
                events = [said(f"{writer}.{batch}.{at}") for at in range(batch + 1)]
                database = databases[writer % 2]
                last = await database.change(lambda tx, events=events: rows.runs(tx).append(run, events))
                assert last >= len(events)
                await database.change(lambda tx: rows.runs(tx).append(beside, [used("ls")]))

        await asyncio.gather(*(write(writer) for writer in range(8)))
    assert rows.numbers(run) == [*range(1, 8 * 21 + 1)]
    assert rows.numbers(beside) == [*range(1, 8 * 6 + 1)]
    found, total = rows.look(lambda runs: runs.events(EventFilter(run_id=run), limit=1000))
    assert len({*texts(found)}) == total == rows.look(lambda runs: runs.of(run)).event_count
    batches = [text.rpartition(".")[0] for text in texts(found)]
    assert len([key for key, _ in itertools.groupby(batches)]) == 8 * 6


async def test_a_refused_batch_takes_no_numbers(rows: RunRows, database: Database) -> None:
    run = rows.start()

    def fail(tx: Any) -> None:
        rows.runs(tx).append(run, [said("lost")])
        raise Conflict("never mind")

    writes = [
        database.change(fail if at % 2 else lambda tx: rows.runs(tx).append(run, [said("kept")])) for at in range(8)
    ]
    await asyncio.gather(*writes, return_exceptions=True)
    assert rows.numbers(run) == [1, 2, 3, 4]


async def test_what_is_sent_again_is_stored_once(rows: RunRows, database: Database) -> None:
    run, events = rows.start(), [said(str(number)) for number in range(1, 6)]
    sends = [database.change(lambda tx: rows.runs(tx).append(run, events, after=0)) for _ in range(8)]
    assert await asyncio.gather(*sends) == [5] * 8
    assert rows.append(run, *events[3:], said("6"), said("7"), after=3) == 7
    assert rows.append(run, *events[1:3], after=1) == 7
    found, _ = rows.look(lambda runs: runs.events(EventFilter(run_id=run), limit=100))
    assert texts(found) == ["1", "2", "3", "4", "5", "6", "7"]


def test_a_number_that_another_event_has_is_a_conflict(rows: RunRows) -> None:
    run = rows.start()
    rows.append(run, said("1"), said("2"))
    for others in ([said("1"), said("other")], [said("other")], [used("ls")]):
        with pytest.raises(Conflict, match="is another one"):
            rows.append(run, *others, said("3"), after=0)
    assert rows.numbers(run) == [1, 2]


def test_a_gap_is_a_conflict_that_says_where_to_go_on(rows: RunRows) -> None:
    run = rows.start()
    rows.append(run, said("1"))
    with pytest.raises(Conflict, match="has 1 events, so nothing can follow event 3") as caught:
        rows.append(run, said("4"), after=3)
    assert caught.value.hint == "send the events after 1 again"
    assert rows.numbers(run) == [1]


def test_last_words_may_come_after_the_end(rows: RunRows) -> None:
    run = rows.start()
    rows.change(lambda runs: runs.move(run, "stalled"))
    assert rows.append(run, said("still here")) == 1
    assert rows.look(lambda runs: runs.of(run)).status == "stalled"


def test_events_of_an_issue_are_those_of_all_its_runs_in_order(rows: RunRows) -> None:
    one, two, other = rows.start(issue_id="iss-1"), rows.start(issue_id="iss-1"), rows.start(issue_id="iss-2")
    for at, run in enumerate((one, two, other, one, two)):
        rows.append(run, said(str(at)), used("ls"))
    wanted = EventFilter(issue_id="iss-1", subtype="text")
    found, total = rows.look(lambda runs: runs.events(wanted, limit=2, offset=1))
    assert (texts(found), total) == (["1", "3"], 4)


def test_the_last_events_are_the_last(rows: RunRows) -> None:
    run = rows.start()
    rows.append(run, *(said(str(number)) for number in range(7)))
    assert texts(rows.look(lambda runs: runs.last_events(runs.of(run), 3))) == ["4", "5", "6"]
    assert len(rows.look(lambda runs: runs.last_events(runs.of(run), 100))) == 7


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE run_events SET payload = '{}'",
        "UPDATE run_events SET number = number + 10",
        "DELETE FROM run_events",
        "DELETE FROM run_events WHERE number = 1",
    ],
)
def test_the_database_refuses_to_change_or_remove_an_event(rows: RunRows, database: Database, statement: str) -> None:
    run = rows.start()
    rows.append(run, said("1"), said("2"))
    with pytest.raises(exc.DBAPIError, match="run_events is append-only"):
        database.direct(lambda tx: tx.run(sa.text(statement)), write=True)
    assert rows.numbers(run) == [1, 2]


def test_the_database_refuses_the_ways_around(rows: RunRows, database: Database) -> None:
    run = rows.start()
    rows.append(run, said("1"))
    around = {
        "sqlite": "INSERT OR REPLACE INTO run_events SELECT * FROM run_events",
        "postgresql": "TRUNCATE run_events",
    }
    with pytest.raises(exc.DBAPIError, match="run_events is append-only"):
        database.direct(lambda tx: tx.run(sa.text(around[tx.dialect])), write=True)
    twice = "INSERT INTO run_events (tenant, run_id, number, project_id, type, payload, at_ms) "
    twice += "SELECT tenant, run_id, number, project_id, type, payload, at_ms FROM run_events"
    with pytest.raises(exc.IntegrityError):
        database.direct(lambda tx: tx.run(sa.text(twice)), write=True)
    assert rows.numbers(run) == [1]
