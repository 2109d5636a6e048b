"""Sessions and their messages as they are kept, on SQLite and on PostgreSQL."""

import asyncio

import pytest
import sqlalchemy as sa

from rookery.core.errors import Conflict, NotFound, ValidationFailed
from rookery.jobs.tables import jobs
from rookery.lifecycle.sessions import Outcome
from rookery.sessions.store import MAX_QUEUED, MAX_TEXT, Row, SessionRows, binding_of, of_pass
from rookery.sessions.tables import agent_sessions
from tests.platform_fixtures import Fleet
from tests.sessions.kept import opened, rows


def test_nobody_finds_the_session_of_another_tenant(fleet: Fleet) -> None:
    session = opened(fleet)
    for stranger in (session.id, session.id.upper(), "", "\0", "ses-none", "%"):
        with pytest.raises(NotFound):
            rows(fleet, lambda sessions, name=stranger: sessions.of(name), "other")
    with pytest.raises(NotFound):
        rows(fleet, lambda sessions: sessions.queue(session.id, "hello", "them"), "other")
    with pytest.raises(NotFound):
        rows(fleet, lambda sessions: sessions.interrupt(session.id), "other")


def test_a_session_of_a_closed_project_does_not_exist(fleet: Fleet) -> None:
    session = opened(fleet)
    closed = frozenset({session.project_id})
    with pytest.raises(NotFound):
        rows(fleet, lambda sessions: sessions.of(session.id), closed=closed)
    assert rows(fleet, lambda sessions: sessions.page(10), closed=closed) == []
    assert rows(fleet, lambda sessions: sum(sessions.counts().values()), closed=closed) == 0


@pytest.mark.parametrize("text", ["", "  \n", "x" * (MAX_TEXT + 1), "a\0b", "half \ud800"])
def test_what_is_no_message_is_refused(fleet: Fleet, text: str) -> None:
    session = opened(fleet)
    with pytest.raises(ValidationFailed):
        rows(fleet, lambda sessions: sessions.queue(session.id, text, "me"))
    assert rows(fleet, lambda sessions: sessions.messages(session.id)) == []


def test_an_ended_session_takes_nothing_more_and_drops_what_waits(fleet: Fleet) -> None:
    session = opened(fleet)
    waiting = rows(fleet, lambda sessions: sessions.queue(session.id, "one", "me"))
    rows(fleet, lambda sessions: sessions.end(session.id))
    assert rows(fleet, lambda sessions: sessions.message(session.id, waiting.message.id)).state == "dropped"
    for wish in (
        lambda sessions: sessions.queue(session.id, "two", "me"),
        lambda sessions: sessions.interrupt(session.id),
        lambda sessions: sessions.change(session.id, mode="ask"),
        lambda sessions: sessions.end(session.id),
    ):
        with pytest.raises(Conflict, match="has ended"):
            rows(fleet, wish)
    assert rows(fleet, lambda sessions: sessions.began(session, "run-1")) is None
    left = fleet.platform.database.direct(
        lambda tx: tx.all(sa.select(jobs.c.state).where(jobs.c.kind == "sessions.turn"))
    )
    assert [row.state for row in left] == ["cancelled"]


def test_messages_wait_in_their_order_and_the_same_id_adds_nothing(fleet: Fleet) -> None:
    session = opened(fleet)
    sent = [rows(fleet, lambda sessions, n=n: sessions.queue(session.id, f"{n}", "me", f"msg-{n}")) for n in range(3)]
    assert [each.position for each in sent] == [0, 1, 2]
    again = rows(fleet, lambda sessions: sessions.queue(session.id, "other words", "me", "msg-1"))
    assert (again.message.text, again.position) == ("1", 1)
    assert rows(fleet, lambda sessions: sessions.take(session.id)).text == "0"
    assert rows(fleet, lambda sessions: sessions.first(session.id, "taken")).id == "msg-0"
    rows(fleet, lambda sessions: sessions.end_message("msg-0", "done", "run-1"))
    rows(fleet, lambda sessions: sessions.end_message("msg-0", "lost"))
    assert [row.state for row in rows(fleet, lambda sessions: sessions.messages(session.id))] == [
        "done",
        "queued",
        "queued",
    ]
    assert rows(fleet, lambda sessions: sessions.drop(session.id, "msg-2")).state == "dropped"
    with pytest.raises(Conflict, match="done already"):
        rows(fleet, lambda sessions: sessions.drop(session.id, "msg-0"))
    with pytest.raises(NotFound):
        rows(fleet, lambda sessions: sessions.drop(session.id, "msg-9"))


def test_a_message_id_belongs_to_one_session(fleet: Fleet) -> None:
    one, other = opened(fleet), opened(fleet)
    rows(fleet, lambda sessions: sessions.queue(one.id, "hello", "me", "msg-x"))
    with pytest.raises(Conflict, match="another session"):
        rows(fleet, lambda sessions: sessions.queue(other.id, "hello", "me", "msg-x"))
    with pytest.raises(Conflict, match="another session"):
        rows(fleet, lambda sessions: sessions.drop(other.id, "msg-x"))


def test_two_tenants_may_use_the_same_message_id(fleet: Fleet) -> None:
    session = opened(fleet)
    rows(fleet, lambda sessions: sessions.queue(session.id, "ours", "me", "1"))
    theirs = opened(fleet, "other")
    assert (
        rows(fleet, lambda sessions: sessions.queue(theirs.id, "theirs", "them", "1"), "other").message.text == "theirs"
    )
    assert rows(fleet, lambda sessions: sessions.message(session.id, "1")).text == "ours"


async def test_the_same_message_sent_many_times_at_once_is_queued_once(fleet: Fleet) -> None:
    session, database = opened(fleet), fleet.platform.database
    sends = [database.change(lambda tx: SessionRows(tx, "default").queue(session.id, "x", "me", "m")) for _ in range(8)]
    assert {queued.message.id for queued in await asyncio.gather(*sends)} == {"m"}
    assert len(rows(fleet, lambda sessions: sessions.messages(session.id))) == 1


def test_of_two_that_begin_a_turn_at_once_one_does(fleet: Fleet) -> None:
    seen = opened(fleet)
    assert rows(fleet, lambda sessions: sessions.began(seen, "run-1")).run_id == "run-1"
    assert rows(fleet, lambda sessions: sessions.began(seen, "run-2")) is None


def test_a_session_is_found_by_what_its_runtime_calls_it(fleet: Fleet) -> None:
    session, other = opened(fleet), opened(fleet)
    for each in (session, other):
        rows(fleet, lambda sessions, name=each.id: sessions.note(name, native_id="native-1"))
    rows(fleet, lambda sessions: sessions.note(other.id, native_id=session.id))
    assert rows(fleet, lambda sessions: sessions.of("native-1")).id == session.id
    assert rows(fleet, lambda sessions: sessions.of(session.id)).id == session.id


def test_only_so_many_messages_wait(fleet: Fleet) -> None:
    session = opened(fleet)
    for number in range(MAX_QUEUED):
        rows(fleet, lambda sessions, n=number: sessions.queue(session.id, f"{n}", "me"))
    with pytest.raises(Conflict, match="wait already"):
        rows(fleet, lambda sessions: sessions.queue(session.id, "one more", "me"))


def test_what_turns_have_used_adds_up(fleet: Fleet) -> None:
    session = opened(fleet)
    rows(fleet, lambda sessions: sessions.began(session, "run-1"))
    used = Outcome("done", cost_usd=0.25, turns=2, input_tokens=100, output_tokens=10)
    again = rows(fleet, lambda sessions: sessions.turn_over(session.id, "run-1", used))
    rows(fleet, lambda sessions: sessions.began(again, "run-2"))
    row = rows(fleet, lambda sessions: sessions.turn_over(session.id, "run-2", used, "it broke"))
    assert (row.state, row.turns, row.cost_micros, row.input_tokens, row.error) == ("idle", 4, 500_000, 200, "it broke")
    stats = rows(fleet, lambda sessions: sessions.stats())
    assert (stats.states["idle"], stats.turns, stats.cost_micros, stats.output_tokens) == (1, 4, 500_000, 20)
    assert rows(fleet, lambda sessions: sessions.stats(agent="agt-none")).turns == 0


def test_what_is_said_of_a_turn_that_was_lost_leaves_the_one_after_it_as_it_is(fleet: Fleet) -> None:
    session = opened(fleet)
    begun = rows(fleet, lambda sessions: sessions.began(session, "run-1"))
    rows(fleet, lambda sessions: sessions.began(begun, "run-2"))
    rows(fleet, lambda sessions: sessions.note(session.id, run_id="run-1", native_id="native-1"))
    row = rows(fleet, lambda sessions: sessions.turn_over(session.id, "run-1", Outcome("done", cost_usd=0.25), "late"))
    assert (row.state, row.run_id, row.native_id, row.error, row.cost_micros) == (
        *("running", "run-2", None, None),
        250_000,
    )


def test_a_model_that_somebody_wants_is_not_undone_by_the_one_that_runs(fleet: Fleet) -> None:
    session = opened(fleet, model="small")
    for wanted, kept in (("small", "small-1"), ("large", "large"), (None, "small-1")):
        fleet.platform.database.direct(
            lambda tx, m=wanted: tx.run(sa.update(agent_sessions).values(model=m)), write=True
        )
        models = ("small", None)
        rows(fleet, lambda sessions, m=models: sessions.note(session.id, models=m, model="small-1"))
        assert rows(fleet, lambda sessions: sessions.of(session.id)).model == kept


def test_a_turn_that_ends_after_its_session_leaves_it_ended(fleet: Fleet) -> None:
    session = opened(fleet)
    rows(fleet, lambda sessions: sessions.began(session, "run-1"))
    rows(fleet, lambda sessions: sessions.end(session.id))
    assert rows(fleet, lambda sessions: sessions.turn_over(session.id, "run-1", Outcome("failed"))).state == "ended"


def test_no_mode_leads_beyond_that_of_the_agent(fleet: Fleet) -> None:
    session = opened(fleet)
    held = session.binding | {"held": session.binding["held"] | {"mode": "act"}}
    fleet.platform.database.direct(lambda tx: tx.run(sa.update(agent_sessions).values(binding=held)), write=True)
    for wanted, counts in (("ask", "ask"), ("act", "act"), ("autonomy", "act")):
        row = rows(fleet, lambda sessions, mode=wanted: sessions.change(session.id, mode=mode))
        assert (row.mode, binding_of(row).mode) == (wanted, counts)


def test_a_session_is_bound_as_its_agent_was(fleet: Fleet) -> None:
    session = opened(fleet)
    bound = binding_of(session)
    again = fleet.platform.database.direct(lambda tx: fleet.platform.resolver.resolve(tx, bound)).actor
    actor = fleet.actor()
    assert (again.agent, again.project, again.session, again.mode) == (actor.agent, actor.project, session.id, "act")


def test_the_pass_of_a_session_is_its_newest_and_counts_in_a_turn_alone(fleet: Fleet) -> None:
    session = opened(fleet)
    rows(fleet, lambda sessions: sessions.began(session, "run-1"))
    first = rows(fleet, lambda sessions: sessions.new_pass(session.id))
    second = rows(fleet, lambda sessions: sessions.new_pass(session.id))

    def found(key: str) -> str | None:
        row = fleet.platform.database.direct(lambda tx: of_pass(tx, key))
        return row.id if row is not None else None

    assert (found(first), found(second), found("")) == (None, session.id, None)
    assert second not in str(rows(fleet, lambda sessions: sessions.of(session.id)))
    rows(fleet, lambda sessions: sessions.turn_over(session.id, "run-1", Outcome("done")))
    assert found(second) is None


def test_sessions_are_listed_by_when_they_were_last_active(fleet: Fleet) -> None:
    made = [opened(fleet).id for _ in range(3)]
    rows(fleet, lambda sessions: sessions.change(made[0], title="first again"))
    listed = rows(fleet, lambda sessions: sessions.page(10))
    assert listed[0].active_ms >= listed[1].active_ms >= listed[2].active_ms
    page = rows(fleet, lambda sessions: sessions.page(1))
    rest = rows(fleet, lambda sessions: sessions.page(10, before=(page[0].active_ms, page[0].id)))
    assert sorted([page[0].id, *(row.id for row in rest)]) == sorted(made)
    assert len(rows(fleet, lambda sessions: sessions.page(10, state="ended"))) == 0


def test_a_session_of_a_job_ends_with_its_turn_unless_somebody_joined_in(fleet: Fleet) -> None:
    def turn(session: Row) -> str:
        run_id = f"run-{session.turns}"
        assert rows(fleet, lambda sessions: sessions.began(session, run_id)) is not None
        return rows(fleet, lambda sessions: sessions.turn_over(session.id, run_id, Outcome("done"))).state

    session = opened(fleet, origin="message", id="message:1")
    assert turn(session) == "ended"
    again = opened(fleet, origin="message", id="message:1")
    assert (again.id, again.state, again.ended_ms) == (session.id, "idle", None)
    rows(fleet, lambda sessions: sessions.queue(session.id, "one more thing", "me"))
    assert turn(again) == "idle"
    mine = opened(fleet)
    assert turn(mine) == "idle"
    rows(fleet, lambda sessions: sessions.end(mine.id))
    assert opened(fleet, id=mine.id).state == "ended"
